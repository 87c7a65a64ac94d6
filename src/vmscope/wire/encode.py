"""v2.0 bytes from values, in either byte order, as HotSpot lays them out (layout.py has the structs).

Spelt with `int.to_bytes`: every start of a process comes through here, and `struct` would have to be loaded for it.
"""

from __future__ import annotations

import sys

from ..errors import CounterNameError
from .layout import BIG_ENDIAN, ENTRY_HEADER_SIZE, LITTLE_ENDIAN, MAGIC, PROLOGUE_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Order = Literal["big", "little"]

NATIVE_BIG = sys.byteorder == "big"

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
    order: Order = "big" if big else "little"
    return b"".join(
        (
            MAGIC,
            bytes((BIG_ENDIAN if big else LITTLE_ENDIAN, 2, 0, accessible)),
            used.to_bytes(4, order, signed=True),
            overflow.to_bytes(4, order, signed=True),
            mod_time_stamp.to_bytes(8, order, signed=True),
            PROLOGUE_SIZE.to_bytes(4, order),
            num_entries.to_bytes(4, order, signed=True),
        )
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
    printable ASCII without blanks; OverflowError for a number that its field cannot hold.
    """
    if not name or not name.isascii() or not name.isprintable() or " " in name:
        raise CounterNameError(f"counter name {name!r} is not printable ASCII without blanks; choose another")
    order: Order = "big" if big else "little"
    if isinstance(value, int):
        data_type, vector_length = _LONG, 0
        data = value.to_bytes(8, order, signed=True)
    else:
        data_type, vector_length = _BYTE, max(capacity, len(value) + 1)
        data = value.ljust(vector_length, b"\0")
    start = data_offset(name, data_type)
    length = (start + len(data) + 7) & ~7
    header = b"".join(
        (
            length.to_bytes(4, order),
            ENTRY_HEADER_SIZE.to_bytes(4, order),
            vector_length.to_bytes(4, order),
            data_type.to_bytes(1, order),
            flags.to_bytes(1, order, signed=True),
            units.to_bytes(1, order, signed=True),
            variability.to_bytes(1, order, signed=True),
            start.to_bytes(4, order),
            name.encode("ascii"),
        )
    )
    return header.ljust(start, b"\0") + data.ljust(length - start, b"\0")
