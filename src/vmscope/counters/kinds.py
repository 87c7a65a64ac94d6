"""The kinds of counter: a name, units, and the slot that holds the value.

Codes are the format's own numbers (wire/codes.py names them; start-up is too short for an enum).
"""

from __future__ import annotations

from time import time, time_ns

from vmscope import native
from vmscope.errors import CounterNameError
from vmscope.native import FLOAT as FLOAT
from vmscope.native import TIME as TIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from vmscope.counters.registry import Registry
    from vmscope.memory.region import Entry

RECENT = "#mostrecent", "#livemostrecent"  # marks of gauges that note when they are set
EXEMPLAR = "#exemplar"  # the mark of a text: labels, a value and a time, as OpenMetrics writes them
LONGEST_EXEMPLAR = 128  # characters of all names and values of its labels, as in OpenMetrics
EXEMPLAR_CAPACITY = 255  # bytes of the text: one that is longer is not shown
CONSTANT, MONOTONIC, VARIABLE = 1, 2, 3
NONE, BYTES, TICKS, EVENTS, STRING, HERTZ = 1, 2, 3, 4, 5, 6


class Counter(native.CounterSlot):
    """A number that only grows: a Monotonic entry of the region. Made by `vmscope.counter`.

    `value` is the number now: an int of 64 bits, or a float once an amount was not whole; `name` and `units` are as it
    was made. Updates are atomic.
    """

    __slots__ = ("_registry", "name", "units")

    def __init__(self, name: str, units: int, registry: Registry) -> None:
        self.name = name
        self.units = units
        self._registry = registry

    def entries(self) -> Sequence[Entry]:
        return ((self.name, self.cells[0], self.units, MONOTONIC, self, 0),)

    def fraction(self) -> Entry:
        """The entry that a counter has besides, once an amount was not whole: readers add both."""
        return (self.name + FLOAT, self.cells[1], self.units, MONOTONIC, self, 1)

    def _show_fraction(self) -> None:
        self._registry.show_fraction(self)

    def _child(self, labels: dict[str, str], full: bool, /) -> Counter:
        return self._registry.counter(child_name(self, labels, full), units=self.units)

    def __repr__(self) -> str:
        return f"<vmscope.Counter {self.name} = {self.value}>"


class Gauge(native.GaugeSlot):
    """A number that goes up and down: a Variable entry of the region. Made by `vmscope.gauge`.

    `value` is the number now, an int of 64 bits; `name` and `units` are as it was made. Updates are atomic.
    """

    __slots__ = ("_registry", "name", "units")

    def __init__(self, name: str, units: int, registry: Registry) -> None:
        self.name = name
        self.units = units
        self._registry = registry

    def entries(self) -> Sequence[Entry]:
        return ((self.name, self.value, self.units, VARIABLE, self, 0),)

    def _child(self, labels: dict[str, str], full: bool, /) -> Gauge:
        return self._registry.gauge(child_name(self, labels, full), units=self.units)

    def __repr__(self) -> str:
        return f"<vmscope.Gauge {self.name} = {self.value}>"


class FloatGauge(native.FloatGaugeSlot):
    """A float that goes up and down: a Variable entry of the region, its bits. Made by `vmscope.float_gauge`.

    `value` is the number now, a float; `name` and `units` are as it was made. Its entry is called `name#f64`. Updates
    are atomic.
    """

    __slots__ = ("_registry", "name", "units")

    def __init__(self, name: str, units: int, registry: Registry) -> None:
        self.name = name
        self.units = units
        self._registry = registry

    def entries(self) -> Sequence[Entry]:
        return ((self.name + FLOAT, self.cells[0], self.units, VARIABLE, self, 0),)

    def _child(self, labels: dict[str, str], full: bool, /) -> FloatGauge:
        return self._registry.float_gauge(child_name(self, labels, full), units=self.units)

    def __repr__(self) -> str:
        return f"<vmscope.FloatGauge {self.name} = {self.value}>"


class _Recent:
    """A gauge of mode mostrecent: of several processes the value counts that was set last. A gauge beside it, `set_at`,
    says when that was, in ns since the epoch."""

    __slots__ = ()
    set_at: Gauge

    def set(self, value: float, /) -> None:
        super().set(value)  # type: ignore[misc]
        self.set_at.set(time_ns())

    def add(self, amount: float, /) -> None:
        super().add(amount)  # type: ignore[misc]
        self.set_at.set(time_ns())

    def inc(self) -> None:
        super().inc()  # type: ignore[misc]
        self.set_at.set(time_ns())

    def dec(self) -> None:
        super().dec()  # type: ignore[misc]
        self.set_at.set(time_ns())


class RecentGauge(_Recent, Gauge):
    """The gauge of a name with the mark `#mostrecent`."""

    __slots__ = ("set_at",)


class RecentFloatGauge(_Recent, FloatGauge):
    """The same of floats."""

    __slots__ = ("set_at",)


class Histogram(native.HistogramSlot):
    """Counts values by size. Made by `vmscope.histogram`.

    `count` is the number of values, `sum` their sum as a float, `bounds` the tuple of upper bounds; `name` and `units`
    are as it was made.

    Its entries are `name.bucket{le="bound"}` for each bound and `+Inf`, how many values were greater than the bound
    before and at most this one, and `name.sum`: in billionths for TICKS (so seconds become ns) and NONE, else whole.
    A bucket that got an exemplar has besides `name.bucket#exemplar{le="bound"}`, the last one as a text.
    """

    __slots__ = ("_exemplars", "_registry", "name", "units")

    def __new__(cls, name: str, bounds: Iterable[float], units: int, registry: Registry) -> Self:
        return super().__new__(cls, bounds, 10**9 if units in (TICKS, NONE) else 1)

    def __init__(self, name: str, bounds: Iterable[float], units: int, registry: Registry) -> None:
        self.name = name
        self.units = units
        self._registry = registry
        self._exemplars: dict[int, Text] = {}

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
        name = child_name(self, labels, full, reserved="le")
        return self._registry.histogram(name, bounds=self.bounds, units=self.units)

    def _note(self, exemplar: dict[str, str], amount: float, /) -> None:
        text = exemplar_text(exemplar, amount, time())
        bound, name = bucket(self.name, self.bounds, amount)
        self._registry.keep_exemplar(self._exemplars, bound, name, text)

    def __repr__(self) -> str:
        return f"<vmscope.Histogram {self.name}: {self.count} values, sum {self.sum}>"


class Text(native.TextSlot):
    """A text that changes: a Variable string entry of the region. Made by `vmscope.text`.

    `value` is the text now, at most `capacity` bytes of UTF-8; `name` is as it was made, `units` are `Units.STRING`.
    """

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
    """A value that never changes: a Constant entry of the region. Made by `vmscope.constant`.

    `value` is an int of 64 bits, or a text of at most `limit` bytes of UTF-8; `name` and `units` are as it was made.
    """

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


class Alias:
    """Shows another counter under a second name."""

    __slots__ = ("name", "of")

    def __init__(self, name: str, of: Counter | Gauge | Text | Constant) -> None:
        self.name = name
        self.of = of

    def entries(self) -> Sequence[Entry]:
        return tuple((self.name, *entry[1:]) for entry in self.of.entries())

    def __repr__(self) -> str:
        return f"<vmscope.Alias {self.name} of {self.of!r}>"


# -- labels ------------------------------------------------------------------------------------------

# The child that stands for every set of labels beyond those that a counter remembers.
_OVERFLOW = {"overflow": "true"}


def child_name(
    parent: Counter | Gauge | FloatGauge | Histogram, labels: dict[str, str], full: bool, reserved: str = ""
) -> str:
    """The name of a child. `full`: one that is not there yet shares a name with all others of this parent.

    All that it needs is loaded: an import here would hang in a child forked while another thread is at it.
    """
    name = labelled(parent.name, labels, reserved)
    if full and parent._registry.get(name) is None:
        return labelled(parent.name, _OVERFLOW)
    return name


def labelled(name: str, labels: dict[str, str], reserved: str = "") -> str:
    """The name with the labels, sorted, so that their order in a call does not matter.

    A value stands there as a JSON string has it, with everything but printable ASCII without blanks as `\\uXXXX`.
    CounterNameError for a name that has labels, or a label that is not a name or `reserved`.
    """
    if name.endswith("}"):
        raise CounterNameError(f"{name} has its labels already; give all of them at once to the counter without")
    for label in labels:
        if not (label.isascii() and label.isidentifier()):
            raise CounterNameError(f"label {label!r} is not made of ASCII letters, digits and underscores")
        if label == reserved:
            raise CounterNameError(f"label {label!r} belongs to the buckets of a histogram; choose another")
    return name + "{" + ",".join(f'{label}="{escaped(labels[label])}"' for label in sorted(labels)) + "}"


def bucket(name: str, bounds: Sequence[float], amount: float) -> tuple[int, str]:
    """Which bucket of a histogram a value is in, and what the region calls its exemplar."""
    place = next((i for i, bound in enumerate(bounds) if amount <= bound), len(bounds))
    bound = repr(bounds[place]) if place < len(bounds) else "+Inf"
    base, brace, labels = name.partition("{")
    return place, f'{base}.bucket{EXEMPLAR}{{le="{bound}"' + (f",{labels}" if brace else "}")


def exemplar_text(labels: dict[str, str], amount: float, seconds: float) -> str:
    """An exemplar as its entry has it. ValueError for names that are not a label's, and for too many characters."""
    for name in labels:
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(f"label {name!r} of an exemplar is not made of ASCII letters, digits and underscores")
    length = sum(len(name) + len(value) for name, value in labels.items())
    if length > LONGEST_EXEMPLAR:
        raise ValueError(f"an exemplar's labels have {LONGEST_EXEMPLAR} characters at most, not {length}")
    inner = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    return f"{{{inner}}} {float(amount)!r} {seconds:.3f}"


def escaped(value: str) -> str:
    if value.isascii() and value.isprintable() and not ({" ", '"', "\\"} & set(value)):
        return value
    return "".join(map(_escaped_character, value))


def _escaped_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if "!" <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
