"""statsd's metrics in the region: the clients of the packages statsd and datadog, without a daemon.

Where a client would send a datagram, the value goes to a counter of this process, and nothing is sent:

    c          the counter NAME; what is taken away is added up in NAME.decrements, as a counter only grows
    g          the gauge of floats NAME
    ms         the histogram NAME, in seconds
    h, d       the histogram NAME
    s          nothing

Tags are labels; what a label's name cannot have becomes `_`. A sample rate is ignored: each value counts once. Series
(a name with its tags) beyond the first 10,000, and names that another kind of counter has, are counted in
`statsd.dropped`, as sets are.
"""

from __future__ import annotations

import importlib
import re

from vmscope.counters.kinds import EVENTS, FLOAT, NONE, TICKS, Histogram, child_name
from vmscope.counters.registry import REGISTRY
from vmscope.errors import CounterExistsError, VMScopeError
from vmscope.integrations import label_name
from vmscope.native import HistogramSlot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType
    from typing import Any

    from vmscope.memory.region import Entry

    Update = Callable[[float], object]
    Key = tuple[str, str, tuple[str, ...]]

MODULES = ("statsd.client.base", "datadog.dogstatsd.base")
DROPPED = "statsd.dropped"
SERIES = 10_000
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BOUNDS = tuple(step * 10.0**power for power in range(-3, 7) for step in (1, 2.5, 5))
_NOT_OF_A_NAME = re.compile(r"[^!-~]|[{}#\"\\]")


def install() -> None:
    """Keeps what clients of statsd and datadog count from now on. ImportError where neither package is there."""
    found = False
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        found = True
        for owner, attribute, replacement in replacements(module):
            setattr(owner, attribute, replacement)
    if not found:
        raise ImportError("neither statsd nor datadog is installed: python -m pip install statsd")


def replacements(module: ModuleType) -> Iterator[tuple[Any, str, object]]:
    """Owner, name and replacement of what a package's module sends metrics with."""
    if hasattr(module, "StatsClientBase"):
        yield module.StatsClientBase, "_send_stat", _send_stat
    if hasattr(module, "DogStatsd"):
        yield module.DogStatsd, "_report", _report


def _send_stat(self: Any, stat: str, value: str, rate: float) -> None:
    """Of the package statsd, its pipelines too: `value` is as in the datagram, as `5|c`, `+1|g` or `320.0|ms`."""
    number, _, kind = value.partition("|")
    prefix = self._prefix
    name = f"{prefix}.{stat}" if prefix else stat
    METRICS.add("delta" if kind == "g" and number[:1] in ("+", "-") else kind, name, number)


def _report(
    self: Any, metric: str, metric_type: str, value: Any, tags: Sequence[str] | None, *_: object, **__: object
) -> bool:
    """Of the package datadog. True: it is not to be tried again."""
    if value is not None and self._enabled:
        namespace = getattr(self, "namespace", None)
        name = f"{namespace}.{metric}" if namespace else metric
        METRICS.add(metric_type, name, value, (*(tags or ()), *(getattr(self, "constant_tags", None) or ())))
    return True


class Metrics:
    """The counters that there are, by kind, name and tags."""

    def __init__(self) -> None:
        self._updates: dict[Key, Update] = {}
        self._dropped = REGISTRY.counter(DROPPED, units=EVENTS)

    def add(self, kind: str, name: str, value: Any, tags: tuple[str, ...] = ()) -> None:
        """Counts a value; whatever is wrong with it is counted as dropped."""
        try:
            number = _number(value)
            key = kind, name, tags
            update = self._updates.get(key)
            if update is None:
                update = self._updates[key] = self._find(kind, name, tags)
            update(number)
        except (ValueError, TypeError, OverflowError, VMScopeError):
            self._dropped.inc()

    def _find(self, kind: str, name: str, tags: tuple[str, ...]) -> Update:
        if len(self._updates) >= SERIES:
            raise ValueError(name)
        name, labels = _NOT_OF_A_NAME.sub("_", name), _labels(tags)
        if kind == "c":
            return _both_ways(name, labels)
        if kind in ("g", "delta"):
            gauge = _labelled(REGISTRY.float_gauge(name), labels)
            found: Update = gauge.set if kind == "g" else gauge.add
            return found
        if kind == "ms":
            seconds = _labelled(REGISTRY.histogram(name, bounds=SECONDS, units=TICKS), labels)
            return lambda number: seconds.observe(number / 1000)
        if kind in ("h", "d"):
            observe: Update = _labelled(_distribution(name), labels).observe
            return observe
        raise ValueError(kind)


def _both_ways(name: str, labels: dict[str, str]) -> Update:
    add: Update = _labelled(REGISTRY.counter(name), labels).add

    def update(number: float) -> None:
        if number >= 0:
            add(number)
        else:
            _labelled(REGISTRY.counter(f"{name}.decrements"), labels).add(-number)

    return update


class Distribution(Histogram):
    """A histogram of numbers of any size: its sum is a float."""

    __slots__ = ()

    def __new__(cls, name: str, *_: object) -> Distribution:
        return HistogramSlot.__new__(cls, BOUNDS, 0)

    def entries(self) -> Sequence[Entry]:
        *cells, total = super().entries()
        return (*cells, (total[0] + FLOAT, *total[1:]))

    def _child(self, labels: dict[str, str], full: bool, /) -> Distribution:
        return _distribution(child_name(self, labels, full, reserved="le"))


def _distribution(name: str) -> Distribution:
    found = REGISTRY.add(Distribution(name, BOUNDS, NONE, REGISTRY))
    if not isinstance(found, Distribution):
        raise CounterExistsError(f"{name} is another kind of counter")
    return found


def _labelled(parent: Any, labels: dict[str, str]) -> Any:
    return parent.labels(**labels) if labels else parent


def _labels(tags: tuple[str, ...]) -> dict[str, str]:
    """`name:value` is a label of that name, and `name` one that is true. Of two of one name the last one counts."""
    found = {}
    for tag in tags:
        name, colon, value = str(tag).partition(":")
        found[label_name(name)] = value if colon else "true"
    return found


def _number(value: Any) -> float:
    """An int where that is what it is: then counters stay exact."""
    if isinstance(value, (int, float)):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


METRICS = Metrics()
