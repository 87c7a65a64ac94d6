"""The walk along a v2.0 region's entries: the twin of walk.c and scan.c, check for check.

The checks and their order are those of the JDK's own reader, so that both read the same regions and
refuse the same ones. That reader lets a name or a text run out of its entry, over others; so that no
region costs more than a few times its size, such bytes have a budget here: `FOREIGN` times the size, of
`FOREIGN_SIZE` at most. The number of entries is bounded too, as each becomes an object in its reader.
"""

from __future__ import annotations

from struct import Struct

from vmscope.errors import DataError, EntryTypeError, FormatError, StructureError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

    # offset, name, data_type, units, variability, flags, vector_length, data_offset
    Entry = tuple[int, str, int, int, int, int, int, int]

__all__ = ["decode_text", "find", "read", "scan"]

FOREIGN = 8
FOREIGN_SIZE = 1 << 20
MOST = 1 << 18  # entries: ten times what the largest region of a JVM has room for
_NAMED = 256  # bytes of a name that an error carries at most

_HEADERS = (Struct("<iiibbbbi"), Struct(">iiibbbbi"))
_HEADER_SIZE = 20
_LENGTHS = (Struct("<i"), Struct(">i"))
_LONGS = (Struct("<q"), Struct(">q"))

_TYPES = b"BZJISCDFVL["
_LONG = ord("J")
_BYTE = ord("B")
_STRING_UNITS = 5
_MONOTONIC = 2


def decode_text(raw: Buffer, /) -> str:
    """Text as the JDK's reader decodes it: UTF-8, U+FFFD for what is malformed, a surrogate's bytes being one such."""
    raw = _bytes(raw)
    if raw.isascii():
        return raw.decode("ascii")
    parts = raw.split(b"\xed")
    for i, part in enumerate(parts[1:], 1):
        if b"\xa0" <= part[:1] <= b"\xbf":
            size = 2 if b"\x80" <= part[1:2] <= b"\xbf" else 1
            parts[i] = b"\xff" + part[size:]  # one malformed character, not one a byte
        else:
            parts[i] = b"\xed" + part
    return b"".join(parts).decode("utf-8", "replace")


def scan(buffer: Buffer, offset: int, big: bool, /) -> tuple[list[Entry], int]:
    """The entries from `offset` to a zero length or the end, and where that is.

    Offsets in an entry's tuple are from the region's start. StructureError, DataError, EntryTypeError.
    """
    entries: list[Entry] = []
    return entries, _walk(_bytes(buffer), offset, big, entries)


def read(buffer: Buffer, offset: int, big: bool, /) -> dict[str, int | str]:
    """The values of the entries that `scan` finds, by name; of two with one name the last counts."""
    data = _bytes(buffer)
    entries: list[Entry] = []
    _walk(data, offset, big, entries)
    return {entry[1]: _value(data, entry, big) for entry in entries}


def find(buffer: Buffer, offset: int, big: bool, names: tuple[str, ...], /) -> dict[str, int | str]:
    """The values of the entries of these names, of those before any damage; its error where that leaves none."""
    if type(names) is not tuple or any(type(name) is not str for name in names):
        raise TypeError("find() takes a tuple of names")
    data = _bytes(buffer)
    entries: list[Entry] = []
    damage: FormatError | None = None
    try:
        _walk(data, offset, big, entries)
    except FormatError as error:
        damage = error
    last = {entry[1]: entry for entry in entries}
    values = {name: _value(data, last[name], big) for name in names if name in last}
    if damage is not None and not values:
        raise damage
    return values


def _value(data: bytes, entry: Entry, big: bool) -> int | str:
    _, _, data_type, _, _, _, length, start = entry
    if data_type != _LONG:
        return _string(data, start, length)
    number: int = _LONGS[big].unpack_from(data, start)[0]
    return number


def _bytes(buffer: Buffer) -> bytes:
    return buffer if isinstance(buffer, bytes) else bytes(memoryview(buffer))


def _string(data: bytes, start: int, length: int) -> str:
    if length == 1:
        return ""
    end = data.find(b"\0", start, start + length)
    return decode_text(data[start : start + length if end < 0 else end])


def _walk(data: bytes, offset: int, big: bool, entries: list[Entry]) -> int:
    """Appends the entries, as far as they can be read; where the next one would be."""
    limit = len(data)
    entry_length = _LENGTHS[big].unpack_from
    header = _HEADERS[big].unpack_from
    budget = FOREIGN * min(limit, FOREIGN_SIZE)
    start = offset
    while True:
        if start & 3:
            raise _error(StructureError, "entry offset is not a multiple of 4", start, start)
        if not 0 <= start <= limit:
            raise _error(StructureError, "entry offset lies outside the region", start, start)
        if start == limit:
            return start
        if limit - start < 4:
            raise _error(StructureError, "entry header runs past the region's end, which is", limit, start)
        length = entry_length(data, start)[0]
        if length < 0 or length > limit - start:
            raise _error(StructureError, "entry length is negative or runs past the region's end", length, start)
        if length == 0:
            return start
        if limit - start < _HEADER_SIZE:
            raise _error(StructureError, "entry header runs past the region's end, which is", limit, start)
        if len(entries) == MOST:
            raise _error(StructureError, "more entries than a region may have", MOST, start)

        _, name_offset, vector_length, data_type, flags, units, variability, data_offset = header(data, start)
        room = (data_offset - name_offset + 0x80000000 & 0xFFFFFFFF) - 0x80000000  # 32 bits, as in Java
        first = start + _HEADER_SIZE
        end = -1
        if room >= 0 and first < limit:
            end = data.find(b"\0", first, min(first + room, limit))
            if end < 0 and first + room < limit:
                end = first + room
        raw = data[first:end] if end >= 0 else b""

        if data_type < 0 or data_type not in _TYPES:
            raise _error(StructureError, "unknown type code", data_type, start + 12, raw)
        if name_offset > length:
            raise _error(StructureError, "name offset lies behind its entry", name_offset, start + 4, raw)
        if data_offset > length:
            raise _error(StructureError, "data offset lies behind its entry", data_offset, start + 16, raw)
        if not 1 <= variability <= 3:
            raise _error(DataError, "unknown variability code", variability, start + 15, raw)
        if not 1 <= units <= 6:
            raise _error(DataError, "unknown units code", units, start + 14, raw)
        if end < 0:
            raise _error(StructureError, "name has no room or no end, with name offset", name_offset, start + 4)
        value = start + data_offset
        if value < 0:
            raise _error(StructureError, "data offset lies before the region", data_offset, start + 16, raw)
        if vector_length == 0:
            if data_type != _LONG:
                raise _error(EntryTypeError, "scalar of a type other than J", data_type, start + 12, raw)
            if limit - value < 8:
                raise _error(StructureError, "value runs past the region's end, offset", data_offset, start + 16, raw)
        else:
            if data_type != _BYTE:
                raise _error(EntryTypeError, "vector of a type other than B", data_type, start + 12, raw)
            if units != _STRING_UNITS:
                raise _error(EntryTypeError, "vector with other units than String", units, start + 14, raw)
            if vector_length < 0 or vector_length > limit - value:
                raise _error(
                    StructureError,
                    "vector length is negative or runs past the region's end",
                    vector_length,
                    start + 8,
                    raw,
                )
            if variability == _MONOTONIC:
                raise _error(DataError, "vector with variability Monotonic", variability, start + 15, raw)
            if data_offset < 0 or data_offset + vector_length > length:
                budget -= vector_length
        if end > start + length:
            budget -= len(raw)
        if budget < 0:
            raise _error(StructureError, "entries share too many bytes, entry length", length, start, raw)

        entries.append((start, decode_text(raw), data_type, units, variability, flags, vector_length, value))
        start += length


def _error(cls: type[FormatError], what: str, value: int, offset: int, raw: bytes = b"") -> FormatError:
    name = decode_text(raw[:_NAMED])
    where = f"offset {offset}, entry {name!r}" if name else f"offset {offset}"
    return cls(f"{what}: {value} ({where})", offset=offset, entry=name)
