"""The kinds of counter: a name, units, and the slot that holds the value.

Codes are the format's own numbers (wire/codes.py names them; start-up is too short for an enum).
"""

from __future__ import annotations

from vmscope import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from vmscope.counters.registry import Registry
    from vmscope.memory.region import Entry

CONSTANT, MONOTONIC, VARIABLE = 1, 2, 3
NONE, BYTES, TICKS, EVENTS, STRING, HERTZ = 1, 2, 3, 4, 5, 6


class Counter(native.CounterSlot):
    """Counts up: `inc()`, `add(n)`, `value`, `labels(**labels)`. A Monotonic entry."""

    __slots__ = ("_registry", "name", "units")

    def __init__(self, name: str, units: int, registry: Registry) -> None:
        self.name = name
        self.units = units
        self._registry = registry

    def entries(self) -> Sequence[Entry]:
        return ((self.name, self.value, self.units, MONOTONIC, self, 0),)

    def _child(self, labels: dict[str, str], full: bool, /) -> Counter:
        return self._registry.counter(_child_name(self, labels, full), units=self.units)

    def __repr__(self) -> str:
        return f"<vmscope.Counter {self.name} = {self.value}>"


class Gauge(native.GaugeSlot):
    """Goes up and down: `set(n)`, `inc()`, `dec()`, `add(n)`, `value`, `labels(**labels)`. A Variable entry."""

    __slots__ = ("_registry", "name", "units")

    def __init__(self, name: str, units: int, registry: Registry) -> None:
        self.name = name
        self.units = units
        self._registry = registry

    def entries(self) -> Sequence[Entry]:
        return ((self.name, self.value, self.units, VARIABLE, self, 0),)

    def _child(self, labels: dict[str, str], full: bool, /) -> Gauge:
        return self._registry.gauge(_child_name(self, labels, full), units=self.units)

    def __repr__(self) -> str:
        return f"<vmscope.Gauge {self.name} = {self.value}>"


class Histogram(native.HistogramSlot):
    """Counts values by size: `observe(x)`, `time()`, `count`, `sum`, `labels(**labels)`.

    Its entries are `name.bucket{le="bound"}` for each bound and `+Inf`, how many values were greater than the bound
    before and at most this one, and `name.sum`: in billionths for TICKS (so seconds become ns) and NONE, else whole.
    """

    __slots__ = ("_registry", "name", "units")

    def __new__(cls, name: str, bounds: Iterable[float], units: int, registry: Registry) -> Self:
        return super().__new__(cls, bounds, 10**9 if units in (TICKS, NONE) else 1)

    def __init__(self, name: str, bounds: Iterable[float], units: int, registry: Registry) -> None:
        self.name = name
        self.units = units
        self._registry = registry

    def entries(self) -> Sequence[Entry]:
        base, brace, labels = self.name.partition("{")
        rest = f",{labels}" if brace else "}"
        total, *counts = self.cells
        shown = [*map(repr, self.bounds), "+Inf"]
        return (
            *(
                (f'{base}.bucket{{le="{bound}"{rest}', counts[i], EVENTS, MONOTONIC, self, i + 1)
                for i, bound in enumerate(shown)
            ),
            (f"{base}.sum{brace}{labels}", total, self.units, VARIABLE if self.bounds[0] < 0 else MONOTONIC, self, 0),
        )

    def _child(self, labels: dict[str, str], full: bool, /) -> Histogram:
        name = _child_name(self, labels, full, reserved="le")
        return self._registry.histogram(name, bounds=self.bounds, units=self.units)

    def __repr__(self) -> str:
        return f"<vmscope.Histogram {self.name}: {self.count} values, sum {self.sum}>"


class Text(native.TextSlot):
    """Shows a text of at most `capacity` bytes of UTF-8: `set(text)`, `value`. A string entry that is Variable."""

    __slots__ = ("name",)
    units = STRING

    def __new__(cls, name: str, capacity: int = 64) -> Self:
        return super().__new__(cls, capacity)

    def __init__(self, name: str, capacity: int = 64) -> None:
        self.name = name

    def entries(self) -> Sequence[Entry]:
        return ((self.name, self.value.encode(), STRING, VARIABLE, self, 0),)

    def __repr__(self) -> str:
        return f"<vmscope.Text {self.name} = {self.value!r}>"


class Constant:
    """Never changes: an int of 64 bits, or a text of at most `limit` bytes of UTF-8."""

    __slots__ = ("name", "units", "value")

    def __init__(self, name: str, value: int | str, units: int = NONE, limit: int = 1024) -> None:
        if isinstance(value, str):
            text = native.TextSlot(limit)  # has the rule for cutting a text
            text.set(value)
            self.value: int | str = text.value
            self.units = STRING
        else:
            number = native.GaugeSlot()
            number.set(value)
            self.value = number.value
            self.units = units
        self.name = name

    def entries(self) -> Sequence[Entry]:
        value = self.value.encode() if isinstance(self.value, str) else self.value
        return ((self.name, value, self.units, CONSTANT, None, 0),)

    def __repr__(self) -> str:
        return f"<vmscope.Constant {self.name} = {self.value!r}>"


def _child_name(parent: Counter | Gauge | Histogram, labels: dict[str, str], full: bool, reserved: str = "") -> str:
    """The name of a child. `full`: one that is not there yet shares a name with all others of this parent."""
    from vmscope.counters.labels import OVERFLOW, labelled

    name = labelled(parent.name, labels, reserved)
    if full and parent._registry.get(name) is None:
        return labelled(parent.name, OVERFLOW)
    return name
