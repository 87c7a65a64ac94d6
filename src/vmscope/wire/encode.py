"""v2.0 bytes from values, in either byte order, as HotSpot lays them out (layout.py has the structs).

A process makes its own region with `native.EMPTY_PROLOGUE` and `native.encode_entries`.
"""

from __future__ import annotations

from vmscope.native.region.entries import NATIVE_BIG, data_offset, entry
from vmscope.wire.layout import BIG_ENDIAN, LITTLE_ENDIAN, MAGIC, PROLOGUE_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Order = Literal["big", "little"]

__all__ = ["NATIVE_BIG", "data_offset", "entry", "prologue"]


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
