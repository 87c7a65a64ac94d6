"""v2.0 bytes from values, in either byte order, as HotSpot lays them out."""

from __future__ import annotations

import sys
from struct import Struct

from ..errors import CounterNameError
from .layout import BIG_ENDIAN, ENTRY_HEADER, ENTRY_HEADER_SIZE, LITTLE_ENDIAN, MAGIC, PROLOGUE, PROLOGUE_SIZE

NATIVE_BIG = sys.byteorder == "big"

_PROLOGUES = (Struct("<" + PROLOGUE), Struct(">" + PROLOGUE))
_HEADERS = (Struct("<" + ENTRY_HEADER), Struct(">" + ENTRY_HEADER))

_LONG = ord("J")
_BYTE = ord("B")


def prologue(
    *,
    used: int = 0,
    overflow: int = 0,
    mod_time_stamp: int = 0,
    num_entries: int = 0,
    accessible: int = 0,
    big: bool = NATIVE_BIG,
) -> bytes:
    """The 32 bytes before the first entry. `used` counts them too, once there is an entry."""
    return _PROLOGUES[big].pack(
        MAGIC,
        BIG_ENDIAN if big else LITTLE_ENDIAN,
        2,
        0,
        accessible,
        used,
        overflow,
        mod_time_stamp,
        PROLOGUE_SIZE,
        num_entries,
    )


def data_offset(name: str, data_type: int) -> int:
    """Where, in the entry of this name, its data starts: after the name's NUL, aligned to the element."""
    end = ENTRY_HEADER_SIZE + len(name) + 1
    return (end + 7) & ~7 if data_type == _LONG else end


def entry(
    name: str,
    *,
    units: int,
    variability: int,
    value: int | bytes,
    capacity: int = 0,
    flags: int = 1,
    big: bool = NATIVE_BIG,
) -> bytes:
    """One entry: a `J` scalar for an int, a `B` vector of max(capacity, len + 1) bytes for bytes.

    The capacity counts the closing NUL. Raises CounterNameError for a name that holds anything but
    printable ASCII without blanks; struct.error or OverflowError for a number that its field cannot hold.
    """
    if not name or not name.isascii() or not name.isprintable() or " " in name:
        raise CounterNameError(f"counter name {name!r} is not printable ASCII without blanks; choose another")
    if isinstance(value, int):
        data_type, vector_length = _LONG, 0
        data = value.to_bytes(8, "big" if big else "little", signed=True)
    else:
        data_type, vector_length = _BYTE, max(capacity, len(value) + 1)
        data = value.ljust(vector_length, b"\0")
    start = data_offset(name, data_type)
    length = (start + len(data) + 7) & ~7
    header = _HEADERS[big].pack(length, ENTRY_HEADER_SIZE, vector_length, data_type, flags, units, variability, start)
    return (header + name.encode("ascii")).ljust(start, b"\0") + data.ljust(length - start, b"\0")
