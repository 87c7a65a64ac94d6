"""The Python twin of entries.c; and one entry, in either byte order.

wire/layout.py has the structs.
"""

from __future__ import annotations

import sys

from vmscope.errors import CounterNameError
from vmscope.native.counters.slots import TextSlot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from vmscope.native.region.mirror import Binding, Slot

    Order = Literal["big", "little"]

__all__ = ["EMPTY_PROLOGUE", "encode_entries"]

NATIVE_BIG = sys.byteorder == "big"
ENTRY_HEADER_SIZE = 20

EMPTY_PROLOGUE = (
    bytes((0xCA, 0xFE, 0xC0, 0xC0, not NATIVE_BIG, 2)) + bytes(18) + (32).to_bytes(4, sys.byteorder) + bytes(4)
)  # of a region that has no entries yet

_LONG = ord("J")
_BYTE = ord("B")


def encode_entries(
    entries: Sequence[tuple[str, int | bytes, int, int, Slot | None, int]], /
) -> tuple[bytes, tuple[Binding, ...]]:
    """Their bytes, and the bindings of those whose value a slot has."""
    data, bindings = b"", []
    for name, value, units, variability, slot, cell in entries:
        capacity = slot.capacity + 1 if isinstance(slot, TextSlot) else 0
        start = len(data) + data_offset(name, _LONG if isinstance(value, int) else _BYTE)
        data += entry(name, units=units, variability=variability, value=value, capacity=capacity)
        if slot is not None:
            bindings.append((slot, cell, start))
    return data, tuple(bindings)


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
