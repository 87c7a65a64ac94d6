"""Values of the table's types, from C and to C."""

from __future__ import annotations

from struct import Struct

from vmscope.tool.jni import jthreads
from vmscope.tool.jni import text as texts
from vmscope.tool.spec.errors import ERRORS, InvalidObject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from vmscope.tool.jni.bridge import NativeAgentBridge

    Reader = Callable[[NativeAgentBridge, int | float], object]

INT, LONG, POINTER, BOOL = Struct("i"), Struct("q"), Struct("P"), Struct("B")
FLOAT, DOUBLE = Struct("f"), Struct("d")

# What stands in an argument itself.
SCALARS = frozenset(
    "location mode event any_event error phase filter format verbose count int long float double data".split()
)
REFERENCES = frozenset("thread late_thread group object class module service loader".split())
METHODS = frozenset(("method", "code"))


class NoReference:
    """What a handle is that refers to nothing: of no type that a function takes."""

    def __repr__(self) -> str:
        return "a handle that is not a reference"


NO_REFERENCE = NoReference()

# -- arguments ------------------------------------------------------------------------------------


def reference(bridge: NativeAgentBridge, handle: int | float) -> object:
    """What a handle refers to. NO_REFERENCE for what is none or whose object has gone, so that whoever looks at the
    argument tells its own error, in its own order."""
    try:
        found = bridge.jni.resolve(int(handle))
    except LookupError:
        return NO_REFERENCE
    return NO_REFERENCE if found is None else found


def any_object(bridge: NativeAgentBridge, handle: int | float) -> object:
    found = reference(bridge, handle)
    if found is NO_REFERENCE:
        raise InvalidObject(f"{int(handle):#x} is not a reference")
    return found


def thread(bridge: NativeAgentBridge, handle: int | float) -> object:
    return jthreads.thread_of(reference(bridge, handle))


def method(bridge: NativeAgentBridge, number: int | float) -> object:
    try:
        return bridge.jni.method(int(number))
    except LookupError:
        raise ERRORS[23](f"{int(number):#x} is not a method id") from None


def field(bridge: NativeAgentBridge, number: int | float) -> str:
    """Its name: in each row the class stands before it."""
    found = bridge.field(int(number))
    if found is None:
        raise ERRORS[25](f"{int(number):#x} is not a field id")
    return found[1]


def text(bridge: NativeAgentBridge, address: int | float) -> str:
    return texts.decode(bridge.jni.text(int(address)))


def boolean(bridge: NativeAgentBridge, argument: int | float) -> bool:
    """C has no other truth than not to be 0."""
    return bool(argument)


def same(bridge: NativeAgentBridge, argument: int | float) -> object:
    return argument


READERS: dict[str, Reader] = {
    **dict.fromkeys(SCALARS, same),
    **dict.fromkeys(REFERENCES, reference),
    **dict.fromkeys(METHODS, method),
    **dict.fromkeys(("thread", "late_thread"), thread),
    "object": any_object,
    "field": field,
    "text": text,
    "bool": boolean,
}


def read_array(bridge: NativeAgentBridge, kind: str, address: int, length: int) -> list[object]:
    """Elements that are null are None: what they come to is the function's to say."""
    layout = LAYOUTS.get(kind, POINTER)
    values = [value for (value,) in layout.iter_unpack(bridge.jni.read(address, length * layout.size))]
    if kind in LAYOUTS:
        return list(values)
    return [READERS[kind](bridge, value) if value else None for value in values]


# -- results --------------------------------------------------------------------------------------

LAYOUTS = {
    **dict.fromkeys("int phase format error".split(), INT),
    **dict.fromkeys("long location".split(), LONG),
    "bool": BOOL,
    "double": DOUBLE,
}


class ResultWriter:
    """What one call writes for C: all of it when everything is ready, or nothing, and what was allocated is free again.

    `klass` is the class that fields belong to."""

    __slots__ = ("_blocks", "_places", "_references", "bridge", "klass")

    def __init__(self, bridge: NativeAgentBridge, klass: type | ModuleType | None = None) -> None:
        self.bridge = bridge
        self.klass = klass
        self._blocks: list[int] = []
        self._references: list[int] = []
        self._places: list[tuple[int, bytes]] = []

    def allocate(self, data: bytes) -> int:
        """Memory that the agent frees; null for none."""
        if not data:
            return 0
        block = self.bridge.jni.allocate(data)
        self._blocks.append(block)
        return block

    def text(self, value: str | None) -> int:
        return 0 if value is None else self.allocate(texts.encode(value) + b"\0")

    def reference(self, value: object) -> int:
        if value is None:
            return 0
        handle = self.bridge.jni.local(value)
        self._references.append(handle)
        return handle

    def array(self, kind: str, values: list[object]) -> int:
        return self.allocate(b"".join(self.packed(kind, each) for each in values))

    def put(self, address: int, data: bytes) -> None:
        """Notes what will stand there."""
        self._places.append((address, data))

    def finish(self) -> None:
        for address, data in self._places:
            self.bridge.jni.write(address, data)

    def drop(self) -> None:
        for block in self._blocks:
            self.bridge.jni.free(block)
        for handle in self._references:
            self.bridge.jni.delete(handle)

    def packed(self, kind: str, value: object) -> bytes:
        """One value as it stands in C's memory."""
        if kind in LAYOUTS:
            return LAYOUTS[kind].pack(value)
        if kind == "float":
            return FLOAT.pack(value)  # as C makes a float of a double: what is too large for one is infinite
        return POINTER.pack(self.pointer(kind, value))

    def pointer(self, kind: str, value: object) -> int:
        if value is None:
            return 0
        if kind in REFERENCES:
            return self.reference(value)
        if kind in METHODS:
            return self.bridge.jni.method_id(value)
        if kind == "field":
            assert self.klass is not None
            assert isinstance(value, str)
            return self.bridge.field_id(self.klass, value)
        if kind == "text":
            assert isinstance(value, str)
            return self.text(value)
        if kind == "data":
            assert isinstance(value, int)
            return value
        raise TypeError(f"no way for a {kind}")
