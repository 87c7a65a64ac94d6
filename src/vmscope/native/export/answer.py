"""The twin of answer.c: numbers added up by columns, and written into a text."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Buffer = bytes | bytearray | memoryview | Any  # an array.array is one too
    Value = int | float | bytes

__all__ = ["add_columns", "fill", "pick"]

_MOST_DIGITS = 18


def _words(buffer: Buffer, what: str) -> memoryview:
    found = memoryview(buffer)
    if found.itemsize != 8:
        raise TypeError(f"{what} must be integers of 8 bytes")
    return found.cast("B").cast("q")


def add_columns(numbers: Buffer, width: int) -> list[int]:
    found = _words(numbers, "numbers")
    if width <= 0 or len(found) % width:
        raise ValueError(f"{len(found)} numbers are not rows of {width}")
    values = found.tolist()
    return [sum(values[column::width]) for column in range(width)]


def pick(numbers: Buffer, places: Buffer) -> list[int]:
    found, chosen = _words(numbers, "numbers"), _words(places, "places")
    for place in chosen:
        if not 0 <= place < len(found):
            raise IndexError(f"there is no number at {place}")
    return [found[place] for place in chosen]


def fill(
    template: Buffer, numbers: Buffer, sources: Buffer, digits: Buffer, others: Mapping[int, Value], end: Buffer,
    room: int,
) -> bytes:  # fmt: skip
    found, chosen, points = memoryview(numbers).cast("B").cast("q"), memoryview(sources).cast("B").cast("q"), digits
    out: list[bytes] = []
    place = 0
    text = bytes(template)
    start = 0
    while (mark := text.find(b"%", start)) >= 0:
        out.append(text[start:mark])
        kind = text[mark + 1 : mark + 2]
        if kind not in (b"%", b"d", b"a", b"b"):
            raise ValueError("a template has %d, %a, %b and %% alone")
        if kind == b"%":
            out.append(b"%")
        else:
            if place >= len(chosen) or len(chosen) != len(points):
                raise ValueError(f"there are {len(chosen)} sources and {len(points)} digits, and more places")
            source = chosen[place]
            if source >= 0 and kind != b"b":
                if source >= len(found) or points[place] > _MOST_DIGITS:
                    raise ValueError(f"there is no number at {source}, or {points[place]} digits are too many")
                out.append(_number(found[source], points[place]))
            else:
                out.append(_other(others[place]))
            place += 1
        start = mark + 2
    if place != len(chosen):
        raise ValueError(f"the template has {place} places, and there are more sources")
    return b"".join((*out, text[start:], bytes(end)))


def _number(number: int, digits: int) -> bytes:
    if not digits:
        return b"%d" % number
    whole, part = divmod(abs(number), 10**digits)
    shown = f"{part:0{digits}d}".rstrip("0") or "0"
    return f"{'-' if number < 0 else ''}{whole}.{shown}".encode()


def _other(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return b"%d" % value
    if not isinstance(value, float):
        raise TypeError(f"a value is an int, a float or bytes, not {type(value).__name__}")
    if math.isfinite(value):
        return repr(value).encode()
    return b"NaN" if math.isnan(value) else b"+Inf" if value > 0 else b"-Inf"
