"""Floats: entries whose number is the bits of a double. Their names end in `#f64`."""

from __future__ import annotations

from struct import pack, unpack

from vmscope.native import FLOAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def double(bits: int) -> float:
    return float(unpack("=d", pack("=q", bits))[0])


def bits(number: float) -> int:
    return int(unpack("=q", pack("=d", number))[0])


def with_floats(values: Mapping[str, int | str]) -> dict[str, int | float | str]:
    """The values, but floats as such and under their names without the mark.

    Of a counter the entry of this name has the sum of whole amounts, and the one with the mark that of the others: both
    are added up.
    """
    found: dict[str, int | float | str] = {}
    for name, value in values.items():
        plain = name.removesuffix(FLOAT)
        if plain != name and isinstance(value, int):
            whole = values.get(plain, 0)
            if isinstance(whole, int):
                found[plain] = whole + double(value)
                continue
        found.setdefault(name, value)
    return found
