"""Values of the table's types, from C and to C."""

from __future__ import annotations

from struct import Struct

from vmscope.tool.errors import ERRORS
from vmscope.tool.functions import TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.tool.functions import Parameter
    from vmscope.tool.jni.machine import Machine

    Reader = Callable[[Machine, int | float], object]

INT, LONG, POINTER, BOOL = Struct("i"), Struct("q"), Struct("P"), Struct("B")

# What stands in an argument itself.
SCALARS = frozenset(
    "location mode event any_event error phase filter format verbose bool count int long float double data".split()
)
REFERENCES = frozenset("thread late_thread group object class module service loader".split())
METHODS = frozenset(("method", "code"))


def reference(kind: str) -> Reader:
    """What a handle refers to; the type's own error for what is no handle."""
    error = ERRORS[TYPES[kind][1] or 10]

    def read(machine: Machine, handle: int | float) -> object:
        try:
            found = machine.jni.resolve(int(handle))
        except LookupError:
            raise error(f"{int(handle):#x} is no reference") from None
        if found is None:
            raise error("the reference's object has gone")
        return found

    return read


def method(machine: Machine, number: int | float) -> object:
    try:
        return machine.jni.method(int(number))
    except LookupError:
        raise ERRORS[23](f"{int(number):#x} is no method id") from None


def field(machine: Machine, number: int | float) -> str:
    """Its name: in each row the class stands before it."""
    found = machine.field(int(number))
    if found is None:
        raise ERRORS[25](f"{int(number):#x} is no field id")
    return found[1]


def text(machine: Machine, address: int | float) -> str:
    return machine.jni.text(int(address)).decode("utf-8", "surrogateescape")


def same(machine: Machine, argument: int | float) -> object:
    return argument


READERS: dict[str, Reader] = {
    **dict.fromkeys(SCALARS, same),
    **{kind: reference(kind) for kind in REFERENCES},
    **dict.fromkeys(METHODS, method),
    "field": field,
    "text": text,
}


def read_array(machine: Machine, kind: str, address: int, length: int) -> list[object]:
    raw = machine.jni.read(address, length * POINTER.size)
    return [READERS[kind](machine, handle) for (handle,) in POINTER.iter_unpack(raw)]


# -- results --------------------------------------------------------------------------------------

FORMATS = {"int": INT, "long": LONG, "location": LONG, "bool": BOOL, "phase": INT, "format": INT, "error": INT}


def packed(machine: Machine, kind: str, value: object) -> bytes:
    """One value as it stands in C's memory; a text is allocated."""
    if kind in FORMATS:
        return FORMATS[kind].pack(value)
    if value is None:
        return POINTER.pack(0)
    if kind in REFERENCES:
        return POINTER.pack(machine.jni.local(value))
    if kind in METHODS:
        return POINTER.pack(machine.jni.method_id(value))
    if kind == "text":
        assert isinstance(value, str)
        return POINTER.pack(machine.jni.allocate(value.encode("utf-8", "surrogateescape") + b"\0"))
    if kind == "data":
        return POINTER.pack(value)
    raise TypeError(f"no way for a {kind}")


def write(machine: Machine, parameter: Parameter, address: int, value: object) -> int:
    """Writes a result; how many elements it has."""
    if not address:
        return 0
    if parameter.array:
        elements = list(value)  # type: ignore[call-overload]
        block = b"".join(packed(machine, parameter.type, each) for each in elements)
        machine.jni.write(address, POINTER.pack(machine.jni.allocate(block)))
        return len(elements)
    machine.jni.write(address, packed(machine, parameter.type, value))
    return 1
