"""OpenTelemetry's metrics in the region: a MeterProvider whose instruments are counters of this process.

    from opentelemetry import metrics
    from vmscope.integrations.opentelemetry import MeterProvider

    metrics.set_meter_provider(MeterProvider())

    Counter, ObservableCounter                                  a counter
    UpDownCounter, Gauge, ObservableUpDownCounter,
    ObservableGauge                                             a gauge of floats
    Histogram                                                   a histogram

An instrument's name is the counter's, whatever its meter; attributes are labels. An instrument has 1,999 sets of them;
what comes with others is counted under otel_metric_overflow="true", as OpenTelemetry's SDK does. The unit `s` or `ms`
makes seconds, `By` bytes. An instrument whose name another kind of counter has counts nothing, and a warning says so.
"""

from __future__ import annotations

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions

from vmscope import log
from vmscope.counters.kinds import BYTES, EVENTS, NONE, TICKS
from vmscope.counters.registry import REGISTRY
from vmscope.errors import VMScopeError
from vmscope.integrations import label_name
from vmscope.integrations.asked import Asked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
    from typing import Any

    from opentelemetry.metrics import CallbackT, Observation

SETS = 1_999  # of attributes, besides that of the overflow: as in OpenTelemetry's specification
# Those of OpenTelemetry's SDK, and the same in seconds.
BOUNDS = (0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000)
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_TIMES = {"s": 1.0, "ms": 0.001}


class MeterProvider(metrics.MeterProvider):
    """Gives meters. Observable instruments are asked on a thread of its own, which starts with the first of them."""

    def __init__(self) -> None:
        self._asked = Asked("opentelemetry observables")

    def get_meter(
        self, name: str, version: str | None = None, schema_url: str | None = None, attributes: Any = None
    ) -> Meter:
        return Meter(name, version, schema_url, self._asked)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Asks the observable instruments now."""
        self._asked.ask()
        return True

    def shutdown(self, timeout_millis: float = 10_000) -> None:
        """Ends the thread; what was counted stays."""
        self._asked.close()


class Meter(metrics.Meter):
    """Makes instruments; two of one name and kind are one."""

    def __init__(self, name: str, version: str | None, schema_url: str | None, asked: Asked) -> None:
        super().__init__(name, version, schema_url)
        self._asked = asked

    def create_counter(self, name: str, unit: str = "", description: str = "") -> metrics.Counter:
        return Counter(name, unit, description)

    def create_up_down_counter(self, name: str, unit: str = "", description: str = "") -> metrics.UpDownCounter:
        return UpDownCounter(name, unit, description)

    def create_gauge(self, name: str, unit: str = "", description: str = "") -> Gauge:
        return Gauge(name, unit, description)

    def create_histogram(
        self, name: str, unit: str = "", description: str = "", *,
        explicit_bucket_boundaries_advisory: Sequence[float] | None = None,
    ) -> metrics.Histogram:  # fmt: skip
        return Histogram(name, unit, description, explicit_bucket_boundaries_advisory)

    def create_observable_counter(
        self, name: str, callbacks: Sequence[CallbackT] | None = None, unit: str = "", description: str = ""
    ) -> metrics.ObservableCounter:
        return self._asked.add(ObservableCounter(name, callbacks, unit, description))

    def create_observable_up_down_counter(
        self, name: str, callbacks: Sequence[CallbackT] | None = None, unit: str = "", description: str = ""
    ) -> metrics.ObservableUpDownCounter:
        return self._asked.add(ObservableUpDownCounter(name, callbacks, unit, description))

    def create_observable_gauge(
        self, name: str, callbacks: Sequence[CallbackT] | None = None, unit: str = "", description: str = ""
    ) -> metrics.ObservableGauge:
        return self._asked.add(ObservableGauge(name, callbacks, unit, description))


# -- instruments -----------------------------------------------------------------------------------


class Series:
    """The counters of an instrument: that without attributes, and one for each set of them."""

    __slots__ = ("_children", "_parent")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._children: dict[tuple[tuple[str, Any], ...], Any] = {}
        try:
            self._parent = make()
        except (VMScopeError, ValueError, TypeError) as error:
            self._parent = None
            log.say("warning", "an instrument of OpenTelemetry counts nothing: %s", error)

    def find(self, attributes: Mapping[str, Any] | None) -> Any:
        """The counter of these attributes; None where there is none for the instrument."""
        if not attributes or self._parent is None:
            return self._parent
        try:
            key = tuple(attributes.items())
            child = self._children.get(key)
        except TypeError:  # a list as a value
            key = tuple(_labels(attributes).items())
            child = self._children.get(key)
        if child is None:
            if len(self._children) >= SETS:
                return self._parent.labels(otel_metric_overflow="true")
            child = self._children[key] = self._parent.labels(**_labels(attributes))
        return child


def _labels(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {
        label_name(name): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in attributes.items()
    }


def _units(unit: str) -> int:
    return BYTES if unit == "By" else EVENTS if unit.startswith("{") else NONE


class Counter(metrics.Counter):
    """`add(amount)` of what only grows; a negative amount is ignored."""

    def __init__(self, name: str, unit: str = "", description: str = "") -> None:
        self._series = Series(lambda: REGISTRY.counter(name, units=_units(unit)))

    def add(self, amount: float, attributes: Any = None, context: Any = None) -> None:
        counter = self._series.find(attributes)
        if counter is not None and amount >= 0:
            counter.add(amount)


class UpDownCounter(metrics.UpDownCounter):
    """`add(amount)` of what grows and shrinks."""

    def __init__(self, name: str, unit: str = "", description: str = "") -> None:
        self._series = Series(lambda: REGISTRY.float_gauge(name, units=_units(unit)))

    def add(self, amount: float, attributes: Any = None, context: Any = None) -> None:
        gauge = self._series.find(attributes)
        if gauge is not None:
            gauge.add(amount)


class Gauge(metrics._Gauge):
    """`set(amount)`."""

    def __init__(self, name: str, unit: str = "", description: str = "") -> None:
        self._series = Series(lambda: REGISTRY.float_gauge(name, units=_units(unit)))

    def set(self, amount: float, attributes: Any = None, context: Any = None) -> None:
        gauge = self._series.find(attributes)
        if gauge is not None:
            gauge.set(amount)


class Histogram(metrics.Histogram):
    """`record(amount)`, in the instrument's unit."""

    def __init__(
        self, name: str, unit: str = "", description: str = "",
        explicit_bucket_boundaries_advisory: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        self._scale = _TIMES.get(unit, 1)
        given = explicit_bucket_boundaries_advisory
        if unit in _TIMES:
            bounds = [bound * self._scale for bound in given] if given else list(SECONDS)
            self._series = Series(lambda: REGISTRY.histogram(name, bounds=bounds, units=TICKS))
        else:
            bounds = list(given or BOUNDS)
            units = BYTES if unit == "By" else NONE
            self._series = Series(lambda: REGISTRY.histogram(name, bounds=bounds, units=units))

    def record(self, amount: float, attributes: Any = None, context: Any = None) -> None:
        histogram = self._series.find(attributes)
        if histogram is not None:
            histogram.observe(amount * self._scale)


# -- observable instruments ------------------------------------------------------------------------


class _Observable:
    """An instrument whose callbacks give its values."""

    _slot: Callable[..., Any] = REGISTRY.float_gauge

    def __init__(
        self, name: str, callbacks: Sequence[CallbackT] | None = None, unit: str = "", description: str = ""
    ) -> None:
        self._callbacks = [each if callable(each) else _Generated(each) for each in callbacks or ()]
        self._series = Series(lambda: self._slot(name, units=_units(unit)))

    def ask(self) -> None:
        """Asks each callback once. What one raises is logged, and the others are asked."""
        for callback in self._callbacks:
            try:
                for observation in callback(CallbackOptions()):
                    counter = self._series.find(observation.attributes)
                    if counter is not None:
                        self._set(counter, observation.value)
            except Exception as error:
                log.say("warning", "a callback of an OpenTelemetry instrument has failed", error=error)

    def _set(self, counter: Any, value: float) -> None:
        counter.set(value)


class _Generated:
    """A generator as a callback: each value that it gives is the answer to one question."""

    def __init__(self, generator: Generator[Iterable[Observation], CallbackOptions, None]) -> None:
        self._generator = generator
        self._begun = False

    def __call__(self, options: CallbackOptions) -> Iterable[Observation]:
        try:
            if self._begun:
                return self._generator.send(options)
            self._begun = True
            return next(self._generator)
        except StopIteration:
            return ()


class ObservableCounter(_Observable, metrics.ObservableCounter):
    """The callbacks give sums. One that is smaller than before has begun anew."""

    _slot = REGISTRY.counter

    def __init__(
        self, name: str, callbacks: Sequence[CallbackT] | None = None, unit: str = "", description: str = ""
    ) -> None:
        super().__init__(name, callbacks, unit, description)
        self._last: dict[str, float] = {}

    def _set(self, counter: Any, value: float) -> None:
        last = self._last.get(counter.name, 0)
        self._last[counter.name] = value
        counter.add(value - last if value >= last else value)


class ObservableUpDownCounter(_Observable, metrics.ObservableUpDownCounter):
    """The callbacks give sums."""


class ObservableGauge(_Observable, metrics.ObservableGauge):
    """The callbacks give values."""
