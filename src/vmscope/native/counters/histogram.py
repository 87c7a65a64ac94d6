"""The Python twin of histogram.c: the same counts for the same values."""

from __future__ import annotations

from _thread import get_ident
from math import isfinite, isnan, ldexp
from time import monotonic_ns

from vmscope.native.counters import slots
from vmscope.native.counters.labels import Labelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self

__all__ = ["HistogramSlot"]

_MAX_BOUNDS = 100
_LIMIT = 2.0**63


class HistogramSlot(Labelled):
    """Counts of values up to each of `bounds` and above the last, and their sum times `scale`; for 0 a double."""

    __slots__ = ("_cells", "_scale", "bounds")
    bounds: tuple[float, ...]
    _cells: list[float]  # the sum is one where the scale is 0
    _scale: int

    def __new__(cls, bounds: Iterable[float], scale: int = 10**9) -> Self:
        given = tuple(bounds)
        if scale < 0:
            raise ValueError("the scale is 0 or more")
        if not 1 <= len(given) <= _MAX_BOUNDS:
            raise ValueError(f"a histogram has 1 to {_MAX_BOUNDS} bounds, not {len(given)}")
        floats: list[float] = []
        for bound in given:
            value = ldexp(bound, 0)  # the one call that takes a number as C does, and gives it back
            if not isfinite(value):
                raise ValueError(f"bounds are finite, unlike {bound!r}; the bucket above the last one is always there")
            if floats and not floats[-1] < value:
                raise ValueError(f"bounds grow, but {given[len(floats) - 1]!r} is followed by {bound!r}")
            floats.append(value)
        self = super().__new__(cls)
        self._children = None
        self._scale = scale
        self.bounds = tuple(floats)
        self._cells = [0 if scale else 0.0, *[0] * (len(floats) + 1)]
        return self

    @property
    def cells(self) -> tuple[int, ...]:
        """The sum as it is kept, then the count of each bucket."""
        total = self._cells[0] if self._scale else slots.bits(self._cells[0])
        return (int(total), *map(int, self._cells[1:]))

    @property
    def count(self) -> int:
        """How many values were observed."""
        return int(sum(self._cells[1:]))

    @property
    def sum(self) -> float:
        """Their sum."""
        return self._cells[0] / (self._scale or 1)

    def observe(self, value: float, /, *, exemplar: dict[str, str] | None = None) -> None:
        """Counts a value. An exemplar is a dict of labels, of 128 characters at most, that say where the value comes
        from. ValueError: it is nan; OverflowError: the sum could not hold it; nothing has changed then."""
        self._count(value)
        if exemplar:
            self._note(exemplar, value)

    def _note(self, exemplar: dict[str, str], amount: Any, /) -> None:
        """Keeps an exemplar that came with a value."""

    def _count(self, value: float) -> None:
        x = ldexp(value, 0)
        if not self._scale:
            slots.add_double(self._cells, None if isnan(x) else self._bucket(x), x)
            return
        amount = x * self._scale
        if not -_LIMIT <= amount < _LIMIT:
            if isnan(x):
                raise ValueError("observe() takes a number, not nan")
            raise OverflowError("the value is too large for the sum, which has 64 bits")
        slots.add_cells(self._cells, self._bucket(x), round(amount))

    def _bucket(self, x: float) -> int:
        low, high = 0, len(self.bounds)
        while low < high:
            middle = (low + high) // 2
            if self.bounds[middle] < x:
                low = middle + 1
            else:
                high = middle
        return low

    def time(self) -> Timer:
        """A context manager or decorator that observes the seconds from its begin to its end."""
        return Timer(self)

    def _reset(self) -> None:
        self._cells = [0 if self._scale else 0.0, *[0] * (len(self._cells) - 1)]


class Timer:
    """Observes how long something takes, in seconds: `with`, or a decorator."""

    __slots__ = ("_histogram", "_runs")

    def __init__(self, histogram: HistogramSlot) -> None:
        self._histogram = histogram
        self._runs: list[tuple[int, int]] = []

    def __enter__(self) -> Self:
        self._runs.append((get_ident(), monotonic_ns()))
        return self

    def __exit__(self, *_: object) -> None:
        ended, thread = monotonic_ns(), get_ident()
        if not self._runs:
            raise RuntimeError("a timer is left that was not entered")
        # of a generator that went on to another thread, the last of all
        run = next((run for run in reversed(self._runs) if run[0] == thread), self._runs[-1])
        self._runs.remove(run)
        self._histogram.observe((ended - run[1]) / 1e9)

    def __call__(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        from vmscope.native.counters.timed import timed

        return timed(self._histogram, function)
