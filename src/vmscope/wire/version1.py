"""The walk along a v1.0 region's entries (JDK 1.4), with the checks of the JDK's own reader."""

from __future__ import annotations

from struct import Struct

from ..errors import DataError, EntryTypeError, FormatError, StructureError
from ..native import decode_text
from .layout import V1_ENTRY_HEADER, V1_ENTRY_HEADER_SIZE, V1_PROLOGUE_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

_HEADERS = (Struct("<" + V1_ENTRY_HEADER), Struct(">" + V1_ENTRY_HEADER))
_LENGTHS = (Struct("<i"), Struct(">i"))

# Version 1.0 numbers its types as the class file's newarray instruction does.
_V1_LONG = 11
_V1_BYTE = 8
_STRING_UNITS = 5
_MONOTONIC = 2
_NAMESAKES = 8


def scan(buffer: Buffer, big: bool) -> tuple[list[tuple[int, str, int, int, int, int, int, int]], int]:
    """As `native.scan`; the types come out as 2.0's. StructureError, DataError, EntryTypeError.

    Names and texts lie within their entry or just behind it, so no budget is needed to stay linear.
    """
    data = buffer if isinstance(buffer, bytes) else bytes(memoryview(buffer))
    limit = len(data)
    entries: list[tuple[int, str, int, int, int, int, int, int]] = []
    start = V1_PROLOGUE_SIZE
    while True:
        if start & 3:
            raise _error(StructureError, "entry offset is not a multiple of 4", start, start)
        if start == limit:
            return entries, start
        if limit - start < 4:
            raise _error(StructureError, "entry header runs past the region's end, which is", limit, start)
        length = _LENGTHS[big].unpack_from(data, start)[0]
        if length < 0 or length > limit - start:
            raise _error(StructureError, "entry length is negative or runs past the region's end", length, start)
        if length == 0:
            return entries, start
        if limit - start < V1_ENTRY_HEADER_SIZE:
            raise _error(StructureError, "entry header runs past the region's end, which is", limit, start)

        _, name_length, vector_length, data_type, flags, units, variability = _HEADERS[big].unpack_from(data, start)
        if not 0 < name_length <= length:
            raise _error(StructureError, "name length is not positive or more than its entry's", name_length, start + 4)
        if not 0 <= vector_length <= length:
            raise _error(StructureError, "vector length is negative or more than its entry's", vector_length, start + 8)
        first = start + V1_ENTRY_HEADER_SIZE
        if first + name_length - 1 > limit:
            raise _error(StructureError, "name runs past the region's end, length", name_length, start + 4)
        name = decode_text(data[first : first + name_length - 1])
        if not 1 <= variability <= 3:
            raise _error(DataError, "unknown variability code", variability, start + 15, name)
        if not 1 <= units <= 6:
            raise _error(DataError, "unknown units code", units, start + 14, name)
        if vector_length == 0:
            if data_type != _V1_LONG:
                raise _error(EntryTypeError, "scalar of a type other than long", data_type, start + 12, name)
            value_type, value = ord("J"), start + length - 8
        else:
            if data_type != _V1_BYTE:
                raise _error(EntryTypeError, "vector of a type other than byte", data_type, start + 12, name)
            if units != _STRING_UNITS:
                raise _error(EntryTypeError, "vector with other units than String", units, start + 14, name)
            value_type, value = ord("B"), first + name_length
            if vector_length > limit - value:
                raise _error(StructureError, "vector runs past the region's end", vector_length, start + 8, name)
            if variability == _MONOTONIC:
                raise _error(DataError, "vector with variability Monotonic", variability, start + 15, name)
        entries.append((start, name, value_type, units, variability, flags, vector_length, value))
        start += length


def find(buffer: Buffer, big: bool, names: tuple[str, ...]) -> dict[str, int | str]:
    """The values of the entries of these names: looked for by their names, with no walk along the others."""
    data = buffer if isinstance(buffer, bytes) else bytes(memoryview(buffer))
    values: dict[str, int | str] = {}
    for name in names:
        end = len(data)
        for _ in range(_NAMESAKES):  # the last of several counts; a text may hold the name too
            end = data.rfind(name.encode() + b"\0", 0, end)
            start = end - V1_ENTRY_HEADER_SIZE
            if start < V1_PROLOGUE_SIZE:
                break
            length = _LENGTHS[big].unpack_from(data, start)[0]
            if not V1_ENTRY_HEADER_SIZE < length <= len(data) - start:
                continue
            alone = bytes(V1_PROLOGUE_SIZE) + data[start : start + length]
            try:
                entries, _ = scan(alone, big)
            except FormatError:
                continue
            if entries and entries[0][1] == name:
                values[name] = _value(alone, entries[0], big)
                break
    return values


def _value(data: bytes, entry: tuple[int, str, int, int, int, int, int, int], big: bool) -> int | str:
    _, _, data_type, _, _, _, length, start = entry
    if data_type == ord("J"):
        return int.from_bytes(data[start : start + 8], "big" if big else "little", signed=True)
    return decode_text(data[start : start + length].partition(b"\0")[0]) if length > 1 else ""


def _error(cls: type[FormatError], what: str, value: int, offset: int, name: str = "") -> FormatError:
    where = f"offset {offset}, entry {name!r}" if name else f"offset {offset}"
    return cls(f"{what}: {value} ({where})", offset=offset, entry=name)
