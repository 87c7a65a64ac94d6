"""How values stand in a flight recording: integers, strings, arrays, and what is made of them.

A reader takes bytes and a position, and gives back a raw value and the position behind it. It raises IndexError where
the bytes end too early and ValueError for what is not valid; `chunk.py` adds which file and where. Signs, references
and names are left to who looks at a value: most values of a recording are never looked at.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Read = Callable[[bytes, int], tuple[object, int]]

_NULL, _EMPTY, _POOLED, _UTF8, _CHARS, _LATIN1 = range(6)
_LAST_SHIFT = 56  # of the ninth byte, all of whose bits count


class PooledString(int):
    """The key of a string that stands in the pool of strings."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer of 1 to 9 bytes, 7 bits in each, the lowest first; without its sign."""
    value = data[at]
    at += 1
    if value < 128:
        return value, at
    value &= 127
    shift = 7
    while True:
        byte = data[at]
        at += 1
        if shift == _LAST_SHIFT:
            return value | byte << shift, at
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def varints(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """Several of them: most of a recording, and so as fast as Python can."""
    values: list[int] = []
    append = values.append
    for _ in range(count):
        value = data[at]
        at += 1
        if value > 127:
            value &= 127
            shift = 7
            while True:
                byte = data[at]
                at += 1
                if byte < 128 or shift == _LAST_SHIFT:
                    value |= byte << shift
                    break
                value |= (byte & 127) << shift
                shift += 7
        append(value)
    return values, at


def signed(value: int, bits: int) -> int:
    """The lowest bits as a signed number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def fixed(layout: str) -> Read:
    """A reader of a number in big-endian order."""
    number = Struct(layout)
    unpack, size = number.unpack_from, number.size

    def read(data: bytes, at: int) -> tuple[object, int]:
        try:
            return unpack(data, at)[0], at + size
        except StructError:
            raise IndexError from None

    return read


def boolean(data: bytes, at: int) -> tuple[object, int]:
    """One byte; 0 is false."""
    return data[at] != 0, at + 1


class Integers:
    """How this chunk's integers stand: as varints, or with their types' sizes."""

    __slots__ = ("char", "compressed", "int", "long", "short")

    def __init__(self, compressed: bool) -> None:
        self.compressed = compressed
        self.short: Read = varint if compressed else fixed(">h")
        self.char: Read = varint if compressed else fixed(">H")
        self.int: Read = varint if compressed else fixed(">i")
        self.long: Read = varint if compressed else fixed(">q")

    def count(self, data: bytes, at: int) -> tuple[int, int]:
        """How many bytes or elements follow: as many as there is room for, at most."""
        value, at = self.integer(data, at)
        if not 0 <= value <= len(data) - at:
            raise ValueError(f"a count of {value}, where {len(data) - at} bytes are left")
        return value, at

    def integer(self, data: bytes, at: int) -> tuple[int, int]:
        """A number of type int that is not negative."""
        value, at = self.int(data, at)
        assert isinstance(value, int)
        return value, at

    def number(self, data: bytes, at: int) -> tuple[int, int]:
        """A number of type long."""
        value, at = self.long(data, at)
        assert isinstance(value, int)
        return signed(value, 64), at

    def string(self, data: bytes, at: int) -> tuple[object, int]:
        """A string in any of the five encodings, the key of a pooled one, or None."""
        encoding = data[at]
        at += 1
        if encoding == _NULL:
            return None, at
        if encoding == _EMPTY:
            return "", at
        if encoding == _POOLED:
            key, at = self.number(data, at)
            return PooledString(key), at
        if encoding in (_UTF8, _LATIN1):
            size, at = self.count(data, at)
            text = data[at : at + size].decode("utf-8" if encoding == _UTF8 else "latin-1", "replace")
            return text, at + size
        if encoding == _CHARS:
            size, at = self.count(data, at)
            units = bytearray()
            for _ in range(size):
                unit, at = self.char(data, at)
                assert isinstance(unit, int)
                units += (unit & 0xFFFF).to_bytes(2, "little")
            return units.decode("utf-16-le", "replace"), at
        raise ValueError(f"a string of the encoding {encoding}, which is not defined")

    def array(self, one: Read) -> Read:
        """A reader of arrays, of whatever `one` reads."""

        def read(data: bytes, at: int) -> tuple[object, int]:
            count, at = self.count(data, at)
            elements = []
            for _ in range(count):
                element, at = one(data, at)
                elements.append(element)
            return elements, at

        return read

    def array_of_numbers(self, data: bytes, at: int) -> tuple[object, int]:
        """An array of what is one varint each."""
        count, at = self.count(data, at)
        return varints(data, at, count)

    def array_of_rows(self, width: int) -> Read:
        """A reader of arrays whose elements are several varints each, as the frames of a stack are."""

        def read(data: bytes, at: int) -> tuple[object, int]:
            count, at = self.count(data, at)
            flat, at = varints(data, at, count * width)
            return [flat[i : i + width] for i in range(0, len(flat), width)], at

        return read


def composite(parts: Sequence[Read]) -> tuple[Read, int]:
    """A reader of what consists of several values, as a list; and how many varints it is, 0 where it is more."""
    if all(part is varint for part in parts):
        width = len(parts)
        return lambda data, at: varints(data, at, width), width
    steps: list[tuple[int, Read]] = []  # several varints in a row are one step
    for part in parts:
        if part is varint and steps and steps[-1][1] is varint:
            steps[-1] = (steps[-1][0] + 1, varint)
        else:
            steps.append((1, part))

    def read(data: bytes, at: int) -> tuple[object, int]:
        values: list[object] = []
        for count, one in steps:
            if count > 1:
                several, at = varints(data, at, count)
                values += several
            else:
                value, at = one(data, at)
                values.append(value)
        return values, at

    return read, 0
