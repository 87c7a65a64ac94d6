"""Values from bytes: regions of version 2.0 and 1.0, in either byte order.

Reads exactly what the JDK's own reader reads (see `native`), with one more error: bytes
that are not region at all. Whether a region is `accessible` yet is for the caller to look at.
"""

from __future__ import annotations

from struct import Struct

from .. import native
from ..errors import MagicError, StructureError, VersionError
from .layout import (
    BIG_ENDIAN,
    BYTE_ORDER_OFFSET,
    IDENTITY_SIZE,
    MAGIC,
    MAJOR_OFFSET,
    MINOR_OFFSET,
    PROLOGUE,
    PROLOGUE_SIZE,
    V1_PROLOGUE,
    V1_PROLOGUE_SIZE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

_PROLOGUES = (Struct("<" + PROLOGUE), Struct(">" + PROLOGUE))
_V1_PROLOGUES = (Struct("<" + V1_PROLOGUE), Struct(">" + V1_PROLOGUE))
_LONGS = (Struct("<q"), Struct(">q"))
_LONG = ord("J")


class Prologue:
    """What stands before the entries. Version 1.0 has no accessible, entry_offset and num_entries: 1, 24 and 0."""

    __slots__ = (
        "accessible",
        "byte_order",
        "entry_offset",
        "major",
        "minor",
        "mod_time_stamp",
        "num_entries",
        "overflow",
        "used",
    )

    def __init__(
        self,
        byte_order: int,
        major: int,
        minor: int,
        accessible: int,
        used: int,
        overflow: int,
        mod_time_stamp: int,
        entry_offset: int,
        num_entries: int,
    ) -> None:
        self.byte_order = byte_order
        self.major = major
        self.minor = minor
        self.accessible = accessible
        self.used = used
        self.overflow = overflow
        self.mod_time_stamp = mod_time_stamp
        self.entry_offset = entry_offset
        self.num_entries = num_entries

    @property
    def big(self) -> bool:
        """Big-endian; every byte order other than 0 counts as little-endian."""
        return self.byte_order == BIG_ENDIAN

    def __repr__(self) -> str:
        return f"Prologue({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"


class Entry:
    """One counter's place and nature. Offsets are from the region's start; `data_type` is ord("J") or ord("B")."""

    __slots__ = ("data_offset", "data_type", "flags", "name", "offset", "units", "variability", "vector_length")

    def __init__(
        self,
        offset: int,
        name: str,
        data_type: int,
        units: int,
        variability: int,
        flags: int,
        vector_length: int,
        data_offset: int,
    ) -> None:
        self.offset = offset
        self.name = name
        self.data_type = data_type
        self.units = units
        self.variability = variability
        self.flags = flags
        self.vector_length = vector_length
        self.data_offset = data_offset

    @property
    def supported(self) -> bool:
        return bool(self.flags & 1)

    def __repr__(self) -> str:
        return f"<Entry {self.name!r} at {self.offset}>"


class Region:
    """A region's structure: `prologue`, `entries` in their order, `next_offset` where another entry would come."""

    __slots__ = ("entries", "next_offset", "prologue")

    def __init__(self, prologue: Prologue, entries: list[Entry], next_offset: int) -> None:
        self.prologue = prologue
        self.entries = entries
        self.next_offset = next_offset

    def values(self, buffer: Buffer) -> dict[str, int | str]:
        """Every entry's value in `buffer`, by name; of two with one name the last counts.

        The buffer holds this region, now or at another time. StructureError when it is too short.
        """
        data = buffer if isinstance(buffer, bytes) else bytes(memoryview(buffer))
        long = _LONGS[self.prologue.big].unpack_from
        values: dict[str, int | str] = {}
        for entry in self.entries:
            start = entry.data_offset
            length = 8 if entry.data_type == _LONG else entry.vector_length
            if length > len(data) - start:
                raise StructureError(
                    f"value runs past the buffer's end: {len(data)} (offset {start}, entry {entry.name!r})",
                    offset=start,
                    entry=entry.name,
                )
            if entry.data_type == _LONG:
                values[entry.name] = long(data, start)[0]
            elif length == 1:
                values[entry.name] = ""  # all of it is the closing NUL's place
            else:
                values[entry.name] = native.decode_text(data[start : start + length].partition(b"\0")[0])
        return values


def decode(buffer: Buffer) -> Region:
    """The structure of a region. MagicError, VersionError, StructureError, DataError, EntryTypeError."""
    found = prologue(buffer)
    if found.major == 1:
        from . import version1

        entries, next_offset = version1.scan(buffer, found.big)
    else:
        entries, next_offset = native.scan(buffer, found.entry_offset, found.big)
    return Region(found, [Entry(*entry) for entry in entries], next_offset)


def values(buffer: Buffer) -> dict[str, int | str]:
    """`decode(buffer).values(buffer)`, faster."""
    found = prologue(buffer)
    if found.major == 1:
        return decode(buffer).values(buffer)
    return native.read(buffer, found.entry_offset, found.big)


def prologue_values(found: Prologue, size: int) -> dict[str, int]:
    """The counters that the JDK's reader makes of a prologue and the region's size. An entry of the same name wins."""
    return {
        "sun.perfdata.majorVersion": found.major,
        "sun.perfdata.minorVersion": found.minor,
        "sun.perfdata.overflow": found.overflow,
        "sun.perfdata.size": size,
        "sun.perfdata.timestamp": found.mod_time_stamp,
        "sun.perfdata.used": found.used,
    }


def prologue(buffer: Buffer) -> Prologue:
    """What stands before the entries. MagicError, VersionError; StructureError when the buffer is too short."""
    if isinstance(buffer, bytes):
        size = len(buffer)
        head = buffer[:PROLOGUE_SIZE]
    else:
        with memoryview(buffer) as view, view.cast("B") as octets:
            size = len(octets)
            head = bytes(octets[:PROLOGUE_SIZE])
    if head[: len(MAGIC)] != MAGIC[: len(head)]:
        raise MagicError(f"no region: it starts with {head[: len(MAGIC)].hex(' ')}, not ca fe c0 c0")
    if size < IDENTITY_SIZE:
        raise StructureError(f"no region: {size} bytes, the least is {V1_PROLOGUE_SIZE}", offset=size)
    version = (head[MAJOR_OFFSET], head[MINOR_OFFSET])
    if version not in ((2, 0), (1, 0)):
        raise VersionError(
            f"region version {version[0]}.{version[1]} is none that can be read (2.0, 1.0)", offset=MAJOR_OFFSET
        )
    least = PROLOGUE_SIZE if version[0] == 2 else V1_PROLOGUE_SIZE
    if size < least:
        raise StructureError(f"prologue runs past the region's end: {size} bytes, the least is {least}", offset=size)
    big = head[BYTE_ORDER_OFFSET] == BIG_ENDIAN
    if version[0] == 2:
        return Prologue(*_PROLOGUES[big].unpack(head)[1:])
    _, byte_order, major, minor, _, used, overflow, mod_time_stamp = _V1_PROLOGUES[big].unpack_from(head)
    return Prologue(byte_order, major, minor, 1, used, overflow, mod_time_stamp, V1_PROLOGUE_SIZE, 0)
