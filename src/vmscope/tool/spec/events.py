"""The interface's events: one row each. The numbers and the order are JVM TI's.

A row: number, JVM TI name, the phases it is sent in, capability or None, whether it can be enabled for one thread,
and what its callback is given after the environment.
"""

from __future__ import annotations

from enum import IntEnum

from vmscope.tool.spec.codes import Phase, Phases

ANY, START, STARTED, LIVE = Phases.ANY, Phases.START, Phases.STARTED, Phases.LIVE

Row = tuple[int, str, Phases, int | None, bool, str]

# fmt: off
EVENTS: tuple[Row, ...] = (
    (50, "VMInit", LIVE, None, False, "thread:thread"),
    (51, "VMDeath", LIVE, None, False, ""),
    (52, "ThreadStart", STARTED, None, False, "thread:thread"),
    (53, "ThreadEnd", STARTED, None, True, "thread:thread"),
    (54, "ClassFileLoadHook", ANY, None, False,
     "class_being_redefined:class? loader:loader? name:text? protection_domain:object? class_data:bytes"),
    (55, "ClassLoad", STARTED, None, True, "thread:thread klass:class"),
    (56, "ClassPrepare", STARTED, None, True, "thread:thread klass:class"),
    (57, "VMStart", START, None, False, ""),
    (58, "Exception", LIVE, 17, True,
     "thread:thread method:method location:location exception:object catch_method:method? catch_location:location"),
    (59, "ExceptionCatch", LIVE, 17, True, "thread:thread method:method location:location exception:object"),
    (60, "SingleStep", LIVE, 16, True, "thread:thread method:method location:location"),
    (61, "FramePop", LIVE, 18, True, "thread:thread method:method was_popped_by_exception:bool"),
    (62, "Breakpoint", LIVE, 19, True, "thread:thread method:method location:location"),
    (63, "FieldAccess", LIVE, 2, True,
     "thread:thread method:method location:location field_klass:class object:object? field:field"),
    (64, "FieldModification", LIVE, 1, True,
     "thread:thread method:method location:location field_klass:class object:object? field:field new_value:object"),
    (65, "MethodEntry", LIVE, 24, True, "thread:thread method:method"),
    (66, "MethodExit", LIVE, 25, True,
     "thread:thread method:method was_popped_by_exception:bool return_value:object?"),
    (67, "NativeMethodBind", ANY, 30, False, "thread:thread method:method address:data"),
    (68, "CompiledMethodLoad", STARTED, 27, False, "method:method code_size:int code_address:data"),
    (69, "CompiledMethodUnload", STARTED, 27, False, "method:method code_address:data"),
    (70, "DynamicCodeGenerated", ANY, None, False, "name:text address:data length:int"),
    (71, "DataDumpRequest", LIVE, None, False, ""),
    (73, "MonitorWait", LIVE, 28, True, "thread:thread object:object timeout:long"),
    (74, "MonitorWaited", LIVE, 28, True, "thread:thread object:object timed_out:bool"),
    (75, "MonitorContendedEnter", LIVE, 28, True, "thread:thread object:object"),
    (76, "MonitorContendedEntered", LIVE, 28, True, "thread:thread object:object"),
    (80, "ResourceExhausted", LIVE, None, False, "flags:int description:text"),
    (81, "GarbageCollectionStart", LIVE, 31, False, ""),
    (82, "GarbageCollectionFinish", LIVE, 31, False, ""),
    (83, "ObjectFree", LIVE, 32, False, "tag:long"),
    (84, "VMObjectAlloc", LIVE, 29, False, "thread:thread object:object object_klass:class size:long"),
    (86, "SampledObjectAlloc", LIVE, 43, True, "thread:thread object:object object_klass:class size:long"),
    (87, "VirtualThreadStart", LIVE, 44, False, "virtual_thread:thread"),
    (88, "VirtualThreadEnd", LIVE, 44, True, "virtual_thread:thread"),
)
# fmt: on


class Event(IntEnum):
    """JVM TI's events by number."""

    VM_INIT = 50
    VM_DEATH = 51
    THREAD_START = 52
    THREAD_END = 53
    CLASS_FILE_LOAD_HOOK = 54
    CLASS_LOAD = 55
    CLASS_PREPARE = 56
    VM_START = 57
    EXCEPTION = 58
    EXCEPTION_CATCH = 59
    SINGLE_STEP = 60
    FRAME_POP = 61
    BREAKPOINT = 62
    FIELD_ACCESS = 63
    FIELD_MODIFICATION = 64
    METHOD_ENTRY = 65
    METHOD_EXIT = 66
    NATIVE_METHOD_BIND = 67
    COMPILED_METHOD_LOAD = 68
    COMPILED_METHOD_UNLOAD = 69
    DYNAMIC_CODE_GENERATED = 70
    DATA_DUMP_REQUEST = 71
    MONITOR_WAIT = 73
    MONITOR_WAITED = 74
    MONITOR_CONTENDED_ENTER = 75
    MONITOR_CONTENDED_ENTERED = 76
    RESOURCE_EXHAUSTED = 80
    GARBAGE_COLLECTION_START = 81
    GARBAGE_COLLECTION_FINISH = 82
    OBJECT_FREE = 83
    VM_OBJECT_ALLOC = 84
    SAMPLED_OBJECT_ALLOC = 86
    VIRTUAL_THREAD_START = 87
    VIRTUAL_THREAD_END = 88


def bit(event: int) -> int:
    """Its place in a set of events, which is an int: 64 bits are enough for all."""
    return 1 << event - 50


class EventKind:
    """One row, taken apart."""

    __slots__ = ("capability", "event", "name", "parameters", "per_thread", "phases")

    def __init__(
        self, number: int, name: str, phases: Phases, capability: int | None, per_thread: bool, parameters: str
    ) -> None:
        self.event = Event(number)
        self.name = name
        self.phases = int(phases)
        self.capability = capability
        self.per_thread = per_thread
        self.parameters = parameters


KINDS: dict[int, EventKind] = {row[0]: EventKind(*row) for row in EVENTS}


# Numbers from here to 113 are extension events (`tool.extensions`), which are sent in LIVE.
FIRST_EXTENSION = 100
EXTENSION_BITS = (1 << 64) - bit(FIRST_EXTENSION)

# The set of events that are sent in each phase.
SENT_IN: dict[int, int] = {
    phase: sum(bit(kind.event) for kind in KINDS.values() if kind.phases >> phase & 1)
    | (EXTENSION_BITS if phase == Phase.LIVE else 0)
    for phase in Phase
}
