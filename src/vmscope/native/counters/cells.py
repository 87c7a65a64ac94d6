"""The Python twin of cells.c: slots with the methods that prometheus_client's metrics have."""

from __future__ import annotations

from vmscope.native.counters.histogram import HistogramSlot
from vmscope.native.counters.slots import CounterSlot, FloatGaugeSlot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["CounterCell", "GaugeCell", "HistogramCell"]


class CounterCell(CounterSlot):
    """A counter that takes any real number, and exemplars."""

    __slots__ = ()

    def inc(self, amount: Any = 1, exemplar: dict[str, str] | None = None) -> None:
        number = amount if type(amount) is int else float(amount)
        if number < 0:
            raise ValueError("Counters can only be incremented by non-negative amounts.")
        if number == number:
            self.add(number)
        else:
            self._add_fraction(number)
        if exemplar:
            self._note(exemplar, amount)

    def _note(self, exemplar: dict[str, str], amount: Any, /) -> None:
        """Keeps an exemplar that came with an amount."""


class GaugeCell(FloatGaugeSlot):
    """A gauge of floats that takes any real number."""

    __slots__ = ()

    def inc(self, amount: Any = 1) -> None:
        self.add(float(amount))

    def dec(self, amount: Any = 1) -> None:
        self.add(-float(amount))

    def set(self, value: Any, timestamp: float | None = None) -> None:
        super().set(float(value))


class HistogramCell(HistogramSlot):
    """A histogram whose sum is a double, and which takes exemplars."""

    __slots__ = ()

    def observe(self, amount: Any, exemplar: dict[str, str] | None = None) -> None:
        self._count(float(amount))
        if exemplar:
            self._note(exemplar, amount)
