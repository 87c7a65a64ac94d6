"""What takes the place of names in prometheus_client's modules."""

from __future__ import annotations

import os
import sys
import time
from functools import wraps
from types import MemberDescriptorType, MethodType

from vmscope.integrations.prometheus import locks, removal, states
from vmscope.integrations.prometheus.cells import (
    Bucket,
    CounterCell,
    GaugeCell,
    HistogramCell,
    Metric,
    MostRecentCell,
    Sum,
)
from vmscope.integrations.prometheus.values import (
    GROUPS,
    OLD_VARIABLE,
    VARIABLE,
    IdentifiedValues,
    MultiProcessValues,
    Values,
    own,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Replacements = list[tuple[Any, str, Any]]  # an owner, a name, what stands there from now on


_DONE = "__vmscope__"


def replacements(module: ModuleType) -> Replacements:
    """What to replace in this module; nothing where that was done."""
    if vars(module).get(_DONE):
        return []
    return [*_replacements(module), (module, _DONE, True)]


def _replacements(module: ModuleType) -> Replacements:
    if module.__name__.endswith(".values"):
        return _of_values(module)
    if module.__name__.endswith(".metrics"):
        changed = [*_of_metrics(module), *states.replacements(module), *removal.replacements(module, GROUPS)]
        return [(module, "Lock", locks.make), *changed, *_of_classes(module)]
    from vmscope.integrations.prometheus import collector

    return [(module, name, found) for name, found in collector.replacements(module).items()]


def _of_values(module: ModuleType) -> Replacements:
    single = Values()

    def multi_process_value(process_identifier: Callable[[], Any] = os.getpid) -> Values:
        return MultiProcessValues() if process_identifier is os.getpid else IdentifiedValues(process_identifier)

    def get_value_class() -> Values:
        return multi_process_value() if VARIABLE in os.environ or OLD_VARIABLE in os.environ else single

    return [
        (module, "MutexValue", single),
        (module, "MultiProcessValue", multi_process_value),
        (module, "get_value_class", get_value_class),
        (module, "ValueClass", get_value_class()),
    ]


def _of_metrics(module: ModuleType) -> Replacements:
    kinds = [(getattr(module, name), make) for name, make in _METRICS.items()]
    return [(kind, "_metric_init", make(kind, module)) for kind, make in kinds]


def _of_classes(module: ModuleType) -> Replacements:
    """The classes whose metrics have the cell's methods, wherever prometheus_client has them."""
    homes = [each for name, each in [*sys.modules.items()] if name.partition(".")[0] == "prometheus_client"]
    made: Replacements = []
    for name, methods in _METHODS.items():
        kind = getattr(module, name)
        fast = _with_methods(kind, methods)
        made += [(home, name, fast) for home in homes if vars(home).get(name) is kind]
    return made


def _with_methods(kind: Any, names: tuple[str, ...]) -> Any:
    """A subclass whose objects have slots for these methods: the interpreter calls what stands in a slot as fast as a
    method in C. Of another attribute that hides a method of the class it is three times as slow.
    """
    originals = {name: vars(kind)[name] for name in names}

    def __new__(cls: Any, *_: Any, **__: Any) -> Any:
        self = kind.__new__(cls)
        for name, function in originals.items():
            members[name].__set__(self, MethodType(function, self))
        return self

    known = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    made = type(kind)(kind.__name__, (kind,), {**known, "__slots__": names, "__new__": __new__})
    members = {name: vars(made)[name] for name in names}
    return made


def _bind(metric: Any, kind: Any, cell: object) -> None:
    """The metric's own methods are the cell's, where its class has not replaced them."""
    for name in _METHODS[kind.__name__]:
        found = getattr(type(metric), name, None)
        if found is vars(kind)[name] or isinstance(found, MemberDescriptorType):
            setattr(metric, name, getattr(cell, name))


def _counter(kind: Any, module: ModuleType) -> Callable[[Any], None]:
    original = kind._metric_init

    @wraps(original)
    def metric_init(self: Any) -> None:
        original(self)
        if isinstance(self._value, CounterCell):
            own(self._value, self)
            _bind(self, kind, self._value)

    return metric_init


def _gauge(kind: Any, module: ModuleType) -> Callable[[Any], None]:
    original = kind._metric_init

    @wraps(original)
    def metric_init(self: Any) -> None:
        original(self)
        if isinstance(self._value, GaugeCell):
            own(self._value, self)
            if not isinstance(self._value, MostRecentCell):
                _bind(self, kind, self._value)

    return metric_init


def _summary(kind: Any, module: ModuleType) -> Callable[[Any], None]:
    original = kind._metric_init

    @wraps(original)
    def metric_init(self: Any) -> None:
        original(self)
        own(self._count, self)
        own(self._sum, self)

    return metric_init


def _histogram(kind: Any, module: ModuleType) -> Callable[[Any], None]:
    original = kind._metric_init

    @wraps(original)
    def metric_init(self: Any) -> None:
        values = module.values.ValueClass
        cell = None
        if isinstance(values, Values):
            bounds = self._upper_bounds
            texts = [module.floatToGoString(bound) for bound in bounds]
            metric = Metric(self._type, self._name, self._labelnames, self._labelvalues, str(self._documentation))
            cell = values.histogram(metric, bounds[:-1], texts)
        if not isinstance(cell, HistogramCell):
            original(self)
            return
        self._created = time.time()
        self._sum = Sum(cell)
        self._buckets = [Bucket(cell, place) for place in range(len(self._upper_bounds))]
        own(cell, self)
        _bind(self, kind, cell)

    return metric_init


_METHODS = {"Counter": ("inc",), "Gauge": ("inc", "dec", "set"), "Histogram": ("observe",)}
_METRICS = {"Counter": _counter, "Gauge": _gauge, "Histogram": _histogram, "Summary": _summary}
