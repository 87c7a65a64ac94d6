"""JVM TI's structs, from C and to C. Pointers are of 64 bits, and stand as the C ABI lays them out."""

from __future__ import annotations

from struct import Struct

from vmscope.tool.jni import values
from vmscope.tool.jni.values import POINTER, ResultWriter
from vmscope.tool.spec.capabilities import CapabilitySet
from vmscope.tool.spec.events import Event
from vmscope.tool.spec.heap_types import HeapCallbacks
from vmscope.tool.spec.structs import ClassDefinition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vmscope.tool.environment import Environment
    from vmscope.tool.functions.extensions import ExtensionEvent
    from vmscope.tool.functions.monitor_info import MonitorStackDepth, MonitorUsage
    from vmscope.tool.functions.stacks import FrameInfo, StackInfo
    from vmscope.tool.functions.system import TimerInfo
    from vmscope.tool.functions.thread_queries import ThreadGroupInfo, ThreadInfo
    from vmscope.tool.jni.bridge import NativeAgentBridge
    from vmscope.tool.jni.extensions import NativeExtension
    from vmscope.tool.spec.structs import LineNumberEntry, LocalVariableEntry

    Reader = Callable[[NativeAgentBridge, Environment, int, int], object]
    Packer = Callable[[ResultWriter, Any], bytes]

# -- from C ---------------------------------------------------------------------------------------

FIRST_EVENT, LAST_EVENT = 50, 88
NEVER_SENT = frozenset(  # a callback for one is taken, and never called
    (
        Event.NATIVE_METHOD_BIND,
        Event.COMPILED_METHOD_LOAD,
        Event.COMPILED_METHOD_UNLOAD,
        Event.DYNAMIC_CODE_GENERATED,
        Event.VIRTUAL_THREAD_START,
        Event.VIRTUAL_THREAD_END,
    )
)
SENT = frozenset(Event) - NEVER_SENT
CAPABILITIES_SIZE = 16
DEFINITION = Struct("Pi4xP")
HEAP_CALLBACKS = Struct("5P")
HEAP_NAMES = ("heap_iteration", "heap_reference", "primitive_field", "array_primitive_value", "string_primitive_value")


def capabilities(bridge: NativeAgentBridge, environment: Environment, address: int, size: int) -> CapabilitySet:
    bits = int.from_bytes(bridge.jni.read(address, CAPABILITIES_SIZE), "little")
    return CapabilitySet(bits=bits)


def callbacks(
    bridge: NativeAgentBridge, environment: Environment, address: int, size: int
) -> dict[Event, Callable[..., object]]:
    """A function pointer for each event from VMInit on, as many as `size` has room for: an older agent's table is
    shorter, and what a newer one has behind vmscope's is never called."""
    count = max(0, min(size // POINTER.size, LAST_EVENT - FIRST_EVENT + 1))
    raw = bridge.jni.read(address, count * POINTER.size)
    block = bridge.address(environment)
    return {
        Event(number): bridge.jni.callback(block, number, function)
        for number, (function,) in enumerate(POINTER.iter_unpack(raw), FIRST_EVENT)
        if function and number in SENT
    }


def heap_callbacks(bridge: NativeAgentBridge, environment: Environment, address: int, size: int) -> HeapCallbacks:
    pointers = HEAP_CALLBACKS.unpack(bridge.jni.read(address, HEAP_CALLBACKS.size))
    return HeapCallbacks(
        **{
            name: bridge.jni.heap_callback(name, pointer)
            for name, pointer in zip(HEAP_NAMES, pointers, strict=True)
            if pointer
        }
    )


def definitions(bridge: NativeAgentBridge, address: int, length: int) -> list[object]:
    """Null for the class or its bytes is None."""
    found: list[object] = []
    for klass, size, data in DEFINITION.iter_unpack(bridge.jni.read(address, length * DEFINITION.size)):
        given: Any = values.reference(bridge, klass) if klass else None
        written: Any = bridge.jni.read(data, max(size, 0)) if data else None
        found.append(ClassDefinition(given, written))
    return found


def heap_callback(name: str) -> Reader:
    """One of the older functions' callbacks."""

    def read(bridge: NativeAgentBridge, environment: Environment, address: int, size: int) -> object:
        return bridge.jni.heap_callback(name, address)

    return read


def pointer(bridge: NativeAgentBridge, environment: Environment, address: int, size: int) -> int:
    """What the function itself makes something of."""
    return address


READERS: dict[str, Reader] = {
    "capabilities": capabilities,
    "callbacks": callbacks,
    "heap_callbacks": heap_callbacks,
    "object_callback": heap_callback("heap_object"),
    "root_callback": heap_callback("heap_root"),
    "stack_callback": heap_callback("stack_reference"),
    "reference_callback": heap_callback("object_reference"),
    "start_function": pointer,
    "extension_callback": pointer,
}

# -- to C -----------------------------------------------------------------------------------------

THREAD_INFO = Struct("PiB3xPP")
GROUP_INFO = Struct("PPiB3x")
MONITOR_USAGE = Struct("PiiPi4xP")
MONITOR_DEPTH = Struct("Pi4x")
FRAME = Struct("Pq")
STACK = Struct("Pi4xPi4x")
LINE = Struct("qi4x")
VARIABLE = Struct("qi4xPPPi4x")
TIMER = Struct("qBB2xiqq")
PARAMETER = Struct("PiiB7x")
EXTENSION_FUNCTION = Struct("PPPi4xPi4xP")
EXTENSION_EVENT = Struct("i4xPPi4xP")

# How an extension's parameter is handed over, and what it is
IN, IN_POINTER, ALLOCATED, ALLOCATED_TWICE, OUT = 91, 92, 94, 95, 96
PARAMETER_TYPES = {
    "int": 104,
    "long": 105,
    "location": 105,
    "bool": 108,
    "object": 109,
    "thread": 110,
    "class": 111,
    "method": 114,
    "text": 115,
    "environment": 117,
}


def thread_info(out: ResultWriter, info: ThreadInfo) -> bytes:
    group, loader = out.reference(info.thread_group), out.reference(info.context_class_loader)
    return THREAD_INFO.pack(out.text(info.name), info.priority, info.is_daemon, group, loader)


def group_info(out: ResultWriter, info: ThreadGroupInfo) -> bytes:
    return GROUP_INFO.pack(out.reference(info.parent), out.text(info.name), info.max_priority, info.is_daemon)


def monitor_usage(out: ResultWriter, usage: MonitorUsage) -> bytes:
    waiters, notified = [*usage.waiters], [*usage.notify_waiters]
    return MONITOR_USAGE.pack(
        out.reference(usage.owner),
        usage.entry_count,
        len(waiters),
        out.array("thread", [*waiters]),
        len(notified),
        out.array("thread", [*notified]),
    )


def monitor_depth(out: ResultWriter, each: MonitorStackDepth) -> bytes:
    return MONITOR_DEPTH.pack(out.reference(each.monitor), each.stack_depth)


def frame(out: ResultWriter, each: FrameInfo) -> bytes:
    return FRAME.pack(out.pointer("method", each.method), each.location)


def line(out: ResultWriter, each: LineNumberEntry) -> bytes:
    return LINE.pack(each.start_location, each.line_number)


def variable(out: ResultWriter, each: LocalVariableEntry) -> bytes:
    return VARIABLE.pack(
        each.start_location,
        each.length,
        out.text(each.name),
        out.text(each.signature),
        out.text(each.generic_signature),
        each.slot,
    )


def timer(out: ResultWriter, info: TimerInfo) -> bytes:
    return TIMER.pack(info.max_value, info.may_skip_forward, info.may_skip_backward, info.kind, 0, 0)


def stacks(out: ResultWriter, infos: list[StackInfo]) -> int:
    """In one piece, the frames behind all the stacks: it is freed in one."""
    size = STACK.size * len(infos)
    base = out.allocate(bytes(size + FRAME.size * sum(len(info.frames) for info in infos)))
    heads: list[bytes] = []
    frames: list[bytes] = []
    for info in infos:
        place = base + size + FRAME.size * len(frames)
        heads.append(STACK.pack(out.reference(info.thread), info.state, place, len(info.frames)))
        frames += [frame(out, each) for each in info.frames]
    if base:
        out.put(base, b"".join(heads + frames))
    return base


def extension_function(out: ResultWriter, known: NativeExtension) -> bytes:
    parameters = [
        out_parameter(out, each.name, way(each.direction, each.array, each.type), each.type)
        for each in known.row.parameters
    ]
    errors = [*known.row.errors]
    return EXTENSION_FUNCTION.pack(
        out.bridge.jni.extension(known.row.slot),
        out.text(known.id),
        out.text(known.description),
        len(parameters),
        out.allocate(b"".join(parameters)),
        len(errors),
        out.array("error", [*errors]),
    )


def extension_event(out: ResultWriter, event: ExtensionEvent) -> bytes:
    """Its callback is given a JNIEnv before what the event tells."""
    named = [("jni_env", "environment"), *(tuple(each.split(":")) for each in event.parameters.split())]
    parameters = [out_parameter(out, name, IN_POINTER if kind == "environment" else IN, kind) for name, kind in named]
    listed = out.allocate(b"".join(parameters))
    return EXTENSION_EVENT.pack(event.index, out.text(event.id), out.text(event.description), len(parameters), listed)


def out_parameter(out: ResultWriter, name: str, way: int, kind: str) -> bytes:
    return PARAMETER.pack(out.text(name), way, PARAMETER_TYPES[kind], 0)


def way(direction: str, array: bool, kind: str) -> int:
    if not direction:
        return IN_POINTER if kind == "text" else IN
    if array:
        return ALLOCATED_TWICE if kind == "text" else ALLOCATED
    return ALLOCATED if kind == "text" else OUT


PACKERS: dict[str, Packer] = {
    "thread_info": thread_info,
    "group_info": group_info,
    "monitor_usage": monitor_usage,
    "monitor_depth": monitor_depth,
    "frame": frame,
    "line": line,
    "variable": variable,
    "timer": timer,
    "extension_function": extension_function,
    "extension_event": extension_event,
}


def write(out: ResultWriter, kind: str, array: bool, address: int, value: Any) -> int:
    """Notes one result; how many elements it has. `address` is where the caller wants it."""
    if kind == "stack":
        out.put(address, POINTER.pack(stacks(out, value)))
        return len(value)
    if kind == "bytes":
        out.put(address, POINTER.pack(out.allocate(value)))
        return len(value)
    if kind == "capabilities":
        before = int.from_bytes(out.bridge.jni.read(address, CAPABILITIES_SIZE), "little")
        after = out.bridge.host.rules.copy(int(value), before)
        out.put(address, after.to_bytes(CAPABILITIES_SIZE, "little"))
        return 1
    if not array and kind not in ("frame", "error"):
        out.put(address, packed(out, kind, value))
        return 1
    pieces = [packed(out, kind, each) for each in value]
    block = b"".join(pieces)
    out.put(address, POINTER.pack(out.allocate(block)) if array else block)  # these two have room at the caller's
    return len(pieces)


def packed(out: ResultWriter, kind: str, value: Any) -> bytes:
    packer = PACKERS.get(kind)
    return out.packed(kind, value) if packer is None else packer(out, value)
