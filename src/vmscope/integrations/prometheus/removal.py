"""remove() and clear(): series that a metric has no more.

An entry stays in the region until its process ends. Another one, with the mark `#created`, says that its series is
removed: no exporter and no collector shows it then. A series that is made again goes on in its old entries, from zero.
"""

from __future__ import annotations

from functools import wraps
from time import time

from vmscope.counters.registry import REGISTRY
from vmscope.errors import VMScopeError
from vmscope.integrations.prometheus.cells import Cell, CounterCell, GaugeCell, HistogramCell
from vmscope.wire.series import CREATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType
    from typing import Any, Protocol

    class Groups(Protocol):
        markers: bool

        def remove(self, cell: Cell) -> None: ...


_removed: dict[str, list[Cell]] = {}  # by the entries that say so; none where the series was made again


def cells_of(metric: Any) -> Iterator[Cell]:
    """All cells of a metric without labels, or of a child."""
    for name in ("_value", "_count", "_sum"):
        found = getattr(metric, name, None)
        cell = getattr(found, "_cell", found)
        if isinstance(cell, CounterCell | GaugeCell | HistogramCell):
            yield cell
    for found in getattr(metric, "_cells", {}).values():  # of an Info, an Enum
        yield getattr(found, "_cell", found)


def remove(cell: Cell) -> None:
    """The series of this cell is not shown any more."""
    if not cell.private and cell not in _removed.get(name := _name(cell), ()):
        _removed.setdefault(name, []).append(cell)
        try:
            REGISTRY.gauge(name).set(0)
        except VMScopeError:  # a counter of the program's has that name
            pass
    cell.begin_anew()


def is_removed(cell: Cell) -> bool:
    return bool(_removed) and not cell.private and cell in _removed.get(_name(cell), ())


def make_again(cell: Cell) -> None:
    """It is shown from now on."""
    name = _name(cell)
    _removed[name].remove(cell)
    cell.begin_anew()
    try:
        REGISTRY.gauge(name).set(int(time() * 1000))
    except VMScopeError:
        pass


def after_fork() -> None:
    """In a child: its region has no entries of what is removed."""
    removed = dict(_removed)
    _removed.clear()
    marks = [found for name in removed if (found := REGISTRY.get(name)) is not None]
    for cells in removed.values():
        for cell in cells:
            cell.private = True
    REGISTRY.forget([*marks, *(cell for cells in removed.values() for cell in cells)])  # type: ignore[list-item]


def _name(cell: Cell) -> str:
    base, brace, labels = cell.name.partition("{")
    return base.partition("#")[0] + CREATED + brace + labels


# -- what takes the place of the methods -----------------------------------------------------------


def replacements(module: ModuleType, groups: Groups) -> Iterator[tuple[Any, str, Any]]:
    """Of the class of all metrics; `groups` have the cells that are removed."""
    base = module.MetricWrapperBase
    for name, choose in _CHOICES.items():
        if name in vars(base):  # its last versions alone have remove_by_labels
            yield base, name, _method(vars(base)[name], choose, groups)


def _method(original: Any, choose: Callable[..., Iterable[Any] | None], groups: Groups) -> Any:
    @wraps(original)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        if not self._is_parent():
            return original(self, *arguments, **named)
        with self._lock:
            chosen = choose(self, *arguments, **named)
            for key in chosen or ():
                for cell in cells_of(self._metrics.pop(key)):
                    groups.remove(cell)
        if chosen is None or groups.markers:  # it says what is wrong; or that it does not work with files
            return original(self, *arguments, **named)
        return None

    return method


def _one(metric: Any, *values: Any) -> list[Any] | None:
    key = tuple(map(str, values))
    return None if len(key) != len(metric._labelnames) else [key] if key in metric._metrics else []


def _matching(metric: Any, labels: Any) -> list[Any] | None:
    names = metric._labelnames
    if not isinstance(labels, dict) or not set(names).issuperset(labels):
        return None
    wanted = {(name, str(value)) for name, value in labels.items()}
    return [key for key in metric._metrics if wanted and wanted.issubset(zip(names, key, strict=True))]


def _all(metric: Any) -> list[Any]:
    return list(metric._metrics)


_CHOICES: dict[str, Callable[..., Iterable[Any] | None]] = {
    "remove": _one,
    "remove_by_labels": _matching,
    "clear": _all,
}
