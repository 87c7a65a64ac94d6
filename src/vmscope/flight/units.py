"""Sizes and times, as the JDK's recorder writes them in its replies."""

from __future__ import annotations

import re

_LARGER = (("us", 1_000), ("ms", 1_000), ("s", 1_000), ("m", 60), ("h", 60), ("d", 24))


def size(number: int, blank: str = " ") -> str:
    """`265.0 kB`; with no blank in between `265.0kB`. Below 1 kB `12 bytes`, or the number alone."""
    if number < 1024:
        return f"{number} bytes" if blank else str(number)
    value, unit = number / 1024, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f}{blank}{unit}"


def timespan(nanoseconds: int, blank: str = "") -> str:
    """In the largest unit of which it is a whole number: `90s`, `1h`."""
    number, unit = nanoseconds, "ns"
    for larger, factor in _LARGER:
        if not number or number % factor:
            break
        number, unit = number // factor, larger
    return f"{number}{blank}{unit}"


def spaced(value: str) -> str:
    """A setting's value with the blank that a client may leave out: `20 ms`."""
    return re.sub(r"^(\d+)([a-z]+)$", r"\1 \2", value)
