"""The kinds of counter: a name, units, and the slot that holds the value.

Codes are the format's own numbers (wire/codes.py names them; start-up is too short for an enum).
"""

from __future__ import annotations

from vmscope import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

CONSTANT, MONOTONIC, VARIABLE = 1, 2, 3
NONE, BYTES, TICKS, EVENTS, STRING, HERTZ = 1, 2, 3, 4, 5, 6


class Counter(native.CounterSlot):
    """Counts up: `inc()`, `add(n)`, `value`. An entry that is Monotonic."""

    __slots__ = ("name", "units")
    variability = MONOTONIC
    entry_value = native.CounterSlot.value

    def __init__(self, name: str, units: int = NONE) -> None:
        self.name = name
        self.units = units

    def __repr__(self) -> str:
        return f"<vmscope.Counter {self.name} = {self.value}>"


class Gauge(native.GaugeSlot):
    """Goes up and down: `set(n)`, `inc()`, `dec()`, `add(n)`, `value`. An entry that is Variable."""

    __slots__ = ("name", "units")
    variability = VARIABLE
    entry_value = native.GaugeSlot.value

    def __init__(self, name: str, units: int = NONE) -> None:
        self.name = name
        self.units = units

    def __repr__(self) -> str:
        return f"<vmscope.Gauge {self.name} = {self.value}>"


class Text(native.TextSlot):
    """Shows a text of at most `capacity` bytes of UTF-8: `set(text)`, `value`. A string entry that is Variable."""

    __slots__ = ("name",)
    units = STRING
    variability = VARIABLE

    def __new__(cls, name: str, capacity: int = 64) -> Self:
        return super().__new__(cls, capacity)

    def __init__(self, name: str, capacity: int = 64) -> None:
        self.name = name

    @property
    def entry_value(self) -> bytes:
        return self.value.encode()

    def __repr__(self) -> str:
        return f"<vmscope.Text {self.name} = {self.value!r}>"


class Constant:
    """Never changes: an int of 64 bits, or a text of at most `limit` bytes of UTF-8."""

    __slots__ = ("name", "units", "value")
    variability = CONSTANT

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

    @property
    def entry_value(self) -> int | bytes:
        return self.value.encode() if isinstance(self.value, str) else self.value

    def __repr__(self) -> str:
        return f"<vmscope.Constant {self.name} = {self.value!r}>"
