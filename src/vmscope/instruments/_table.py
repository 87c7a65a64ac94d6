"""An instrument's counters, made from its rows.

A row is as those of the catalogue: (name, kind, units, feed, since, source, meaning). A name with `{label="..."}`
stands for one counter for each value of the label. The feeds are two:
    event  where what is counted happens, by the call that makes it happen
    timer  by a timer in the event loop
"""

from __future__ import annotations

from vmscope.counters.kinds import EVENTS
from vmscope.counters.registry import REGISTRY
from vmscope.errors import VMScopeError
from vmscope.native import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.counters.kinds import Counter, Gauge, Histogram

    Undo = Callable[[], bool]
    Row = tuple[str, str, int, str, str, str, str]


class InstrumentCounters:
    """Makes the counters of an instrument's rows, in their units."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self._units = {row[0]: row[2] for row in rows}

    def counter(self, name: str) -> Counter:
        return REGISTRY.counter(name, units=self._units[name])

    def gauge(self, name: str) -> Gauge:
        return REGISTRY.gauge(name, units=self._units[name])

    def histogram(self, name: str, bounds: tuple[float, ...]) -> Histogram:
        return REGISTRY.histogram(name, bounds=bounds, units=self._units[name])


def tally(name: str, label: str, limit: int = 64) -> Tally:
    """Counts events: all of them in `name`, and those of each kind in `name{label="kind"}`.

    What makes a kind is the program's, so their number is bounded: `limit` of them, and "other" for the rest.
    """
    total = REGISTRY.counter(name, units=EVENTS)
    other = total.labels(**{label: "other"})

    def make(kind: str) -> Counter:
        try:
            return total.labels(**{label: kind})
        except VMScopeError:  # the program has another counter of this name
            return other

    return Tally(total, other, make, limit)
