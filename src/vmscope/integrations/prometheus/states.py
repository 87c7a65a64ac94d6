"""Info, Enum and Gauge.set_function: what prometheus_client keeps in Python objects, as gauges of the region.

An Info is a gauge of value 1, called NAME_info, with its keys as labels: of several processes that say the same it is
one. An Enum is a gauge for each state: the number of processes that are in it. A function is asked every 5 s.
"""

from __future__ import annotations

import os
from functools import wraps
from time import time
from weakref import WeakSet, ref

from vmscope import log
from vmscope.integrations.prometheus.values import GROUPS, Values, own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

    from vmscope.integrations.asked import Asked

    Labels = tuple[tuple[str, str], ...]

_INFO, _ENUM = "livemax", "livesum"  # how several processes' become one: those of the living count
_shown: WeakSet[Any] = WeakSet()  # metrics whose state a forked child has too
_asked: Asked | None = None


def replacements(module: ModuleType) -> Iterator[tuple[Any, str, Any]]:
    yield module.Info, "info", _then_shown(module.Info.info, _show_info, module)
    for name in ("__init__", "state"):
        yield module.Enum, name, _then_shown(vars(module.Enum)[name], _show_state, module)
    yield module.Gauge, "set_function", _set_function(module.Gauge.set_function)


def _then_shown(original: Any, show: Callable[[Any, Any], None], module: ModuleType) -> Any:
    @wraps(original)
    def method(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        values = module.values.ValueClass
        if isinstance(values, Values) and self._is_observable():
            with self._lock:
                show(self, values)
            _shown.add(self)

    return method


def after_fork() -> None:
    """In a child: gauges are at zero there, but what a process is stays."""
    for metric in list(_shown):
        for key, cell in metric._cells.items():
            cell.set(int(isinstance(key, tuple) or key == metric._value))


def _show_info(metric: Any, values: Any) -> None:
    """The cell of what it says now, and no other."""
    said: Labels = tuple(sorted((name, str(value)) for name, value in metric._value.items()))
    cells = metric.__dict__.setdefault("_cells", {})
    for labels in [labels for labels in cells if labels != said]:
        cell = cells.pop(labels)
        GROUPS.remove(getattr(cell, "_cell", cell))
    if said and said not in cells:
        cells[said] = _cell(metric, values, f"{metric._name}_info", said, _INFO)
        cells[said].set(1)


def _show_state(metric: Any, values: Any) -> None:
    """A cell for each state, by its number: first that of the one in which it is, so that it is in one at least."""
    cells = metric.__dict__.setdefault("_cells", {})
    for number, state in enumerate(metric._states):
        if number not in cells:
            cells[number] = _cell(metric, values, metric._name, ((metric._name, str(state)),), _ENUM)
    cells[metric._value].set(1)
    for number, cell in cells.items():
        if number != metric._value:
            cell.set(0)


def _cell(metric: Any, values: Values, name: str, labels: Labels, mode: str) -> Any:
    """That of a gauge with these labels besides the metric's own."""
    names = (*metric._labelnames, *(each for each, _ in labels))
    texts = (*metric._labelvalues, *(text for _, text in labels))
    cell = values("gauge", name, name, names, texts, metric._documentation, multiprocess_mode=mode)
    own(cell, metric)
    return cell


# -- functions -------------------------------------------------------------------------------------


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=after_fork)


class Function:
    """What gives a gauge its value, as long as there is the gauge."""

    __slots__ = ("_function", "_metric")

    def __init__(self, metric: Any, function: Callable[[], float]) -> None:
        self._metric = ref(metric)
        self._function = function

    def ask(self) -> None:
        metric = self._metric()
        if metric is None or metric._function is not self:  # it has gone, or has another one
            if _asked is not None:
                _asked.remove(self)
            return
        try:
            metric._value.set(float(self._function()), timestamp=time())
        except Exception as error:
            log.say("warning", "the function of a gauge of prometheus_client has failed", error=error)


def ask() -> None:
    """Asks all functions now."""
    if _asked is not None:
        _asked.ask()


def _set_function(original: Any) -> Any:
    @wraps(original)
    def set_function(self: Any, f: Callable[[], float]) -> None:
        global _asked
        original(self, f)
        if hasattr(self._value, "entries") or hasattr(self._value, "_cell"):
            for name in ("inc", "dec", "set"):
                setattr(self, name, _nothing)
            if _asked is None:
                from vmscope.integrations.asked import Asked

                _asked = Asked("prometheus functions")
            self._function = function = Function(self, f)
            _asked.add(function, now=True)

    return set_function


def _nothing(*_: object, **__: object) -> None:
    """In place of the other methods of a gauge that has a function."""
