"""Names: of a region's entries, and of the metrics that are made of them."""

from __future__ import annotations

import json
import re

from vmscope.terminal import printable
from vmscope.wire.codes import Units

Labels = tuple[tuple[str, str], ...]

LONGEST_NAME = 200  # characters of a metric's or a label's name
LONGEST_VALUE = 256  # characters of a label's value
_ELLIPSIS = "..."
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_INVALID = re.compile(r"[^a-zA-Z0-9_:]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LEGACY = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")

# What a metric's name ends in, by the units of its counter.
SUFFIXES = {Units.TICKS: "_seconds", Units.BYTES: "_bytes", Units.HERTZ: "_hertz"}


class Entry:
    """An entry's name, taken apart: `shop.sales#max{method="GET"}` has a base, marks and labels.

    Marks may stand behind the labels too.
    """

    __slots__ = ("base", "labels", "marks")

    def __init__(self, name: str) -> None:
        base, _, rest = name.partition("{")
        inner, end, behind = rest.rpartition("}")
        labels = label_list(inner) if end and behind[:1] in ("", "#") else None
        if labels is None:  # no labels, or what is not understood and belongs to the name
            base, labels, behind = name, (), ""
        base, *marks = base.split("#")
        self.base, self.labels = base, labels
        self.marks = frozenset([*marks, *behind.split("#")]) - {""}


def label_list(text: str) -> Labels | None:
    """The labels of an entry; None where they are not as vmscope writes them."""
    found: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _LABEL.match(text, position)
        if match is None:
            return None
        try:
            value = json.loads(f'"{match[2]}"')
        except ValueError:
            return None
        found.append((match[1][:LONGEST_NAME], limited(value)))
        position = match.end()
    return tuple(found) if len(dict(found)) == len(found) else None


def limited(value: str) -> str:
    """A label's value: at most LONGEST_VALUE characters, all of them printable."""
    if len(value) > LONGEST_VALUE:
        value = value[: LONGEST_VALUE - len(_ELLIPSIS)] + _ELLIPSIS
    return printable(value)


def legacy(name: str) -> str:
    """The name with an underscore for each character that Prometheus's classic names do not have."""
    name = _INVALID.sub("_", name[:LONGEST_NAME])
    return f"_{name}" if name[:1].isdigit() or not name else name


def is_legacy(name: str) -> bool:
    return _LEGACY.fullmatch(name) is not None


def snake(name: str) -> str:
    """`python.gil.waitTime`: python_gil_wait_time."""
    return legacy(_CAMEL.sub("_", name).lower())


def with_unit(name: str, units: int, kind: str) -> str:
    """The name of a family: it ends in the unit, and has no `_total`, which belongs to a counter's sample."""
    if kind == "counter":
        name = name.removesuffix("_total").removesuffix(".total")
    suffix = SUFFIXES.get(Units(units), "") if units in Units.__members__.values() else ""
    return name if not suffix or name.endswith((suffix, suffix.replace("_", "."))) else name + suffix
