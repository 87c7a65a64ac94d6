"""Values of Java's types and of Python's: C's int and an int, a jchar and a character, a reference and an object."""

from __future__ import annotations

from struct import unpack_from

from vmscope.tool.jni.jni_errors import MisuseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.native import Jni

SLOT = 8  # bytes of a jvalue
FORMATS = {"Z": "?", "B": "b", "C": "H", "S": "h", "I": "i", "J": "q", "F": "f", "D": "d", "L": "P"}
RANGES = {
    letter: (-(1 << bits - 1), (1 << bits - 1) - 1) for letter, bits in (("B", 8), ("S", 16), ("I", 32), ("J", 64))
}
UNITS = 1 << 16


def resolve(jni: Jni, handle: int) -> object:
    """None for null and for a weak reference whose object has gone."""
    try:
        return jni.resolve(handle)
    except LookupError:
        raise MisuseError(ReferenceError, f"{handle:#x} is {jni.wrong(handle)}") from None


def read(jni: Jni, letters: str, address: int) -> list[object]:
    """The arguments that an array of jvalues holds, by their types."""
    if not letters:
        return []
    if not address:
        raise MisuseError(TypeError, "no arguments")
    raw = jni.read(address, len(letters) * SLOT)
    return [
        to_python(jni, letter, unpack_from(FORMATS[letter], raw, place * SLOT)[0])
        for place, letter in enumerate(letters)
    ]


def to_python(jni: Jni, letter: str, value: int | float) -> object:
    if letter == "L":
        return resolve(jni, int(value))
    if letter == "Z":
        return bool(value)
    if letter == "C":
        return chr(int(value))
    return value


def to_java(jni: Jni, letter: str, value: object) -> int | float:
    """As C gets it. TypeError for anything else, OverflowError for an integer that is too large
    for it. A float becomes the nearest that there is, or infinite, as Java makes one of a double."""
    if letter == "L":
        return jni.local(value)
    if letter == "V":
        return 0
    if letter == "Z":
        if isinstance(value, int):
            return int(bool(value))
    elif letter == "C":
        if isinstance(value, str) and len(value) == 1:
            value = ord(value)
        if isinstance(value, int):
            return checked(letter, int(value), 0, UNITS - 1)
    elif letter in RANGES:
        if isinstance(value, int):
            return checked(letter, int(value), *RANGES[letter])
    elif isinstance(value, int | float):
        return float(value)
    raise TypeError(f"{value!r} is not a Java {NAMES[letter]}")


NAMES = {"Z": "boolean", "B": "byte", "C": "char", "S": "short", "I": "int", "J": "long", "F": "float", "D": "double"}


def checked(letter: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise OverflowError(f"{value} does not fit into a Java {NAMES[letter]}")
    return value
