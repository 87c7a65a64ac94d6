"""Values: what stands instead of prometheus_client's classes of values, and which cells there are.

In multiprocess mode the cells belong to a folder, which names those whose metrics are collected together, and to the
identifier of a process. Nothing is written to that folder.
"""

from __future__ import annotations

import os
from weakref import ref

from vmscope.counters.registry import REGISTRY
from vmscope.integrations.prometheus import cells, removal
from vmscope.integrations.prometheus.cells import Cell, CounterCell, HistogramCell, Metric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

VARIABLE, OLD_VARIABLE = "PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"
Key = tuple[str, tuple[str, ...], tuple[str, ...]]  # name, names and values of labels


class Groups:
    """The cells of this process in multiprocess mode: by folder, by identifier, by group, and by what they are called.

    The identifier None is this process, which a forked child is too; under others it plays several.
    """

    def __init__(self) -> None:
        self.folders: dict[str, dict[Any, dict[str, dict[Key, Cell]]]] = {}
        self.forks = 0
        self.markers = False  # whether there are files that show what there is: for prometheus_client's own tests

    def cells(self, folder: str, identifier: Any, group: str) -> dict[Key, Cell]:
        groups = self.folders.setdefault(folder, {}).setdefault(identifier, {})
        if group not in groups and self.markers:
            name = os.getpid() if identifier is None else identifier
            with open(os.path.join(folder, f"{group}_{name}.db"), "ab"):
                pass
        return groups.setdefault(group, {})

    def files(self, folder: str) -> Iterator[tuple[str, dict[Key, Cell]]]:
        """The name of the file that prometheus_client would have for each group, and its cells."""
        for identifier, groups in list(self.folders.get(folder, {}).items()):
            name = os.getpid() if identifier is None else identifier
            for group, found in list(groups.items()):
                yield f"{group}_{name}.db", found

    def forget(self, folder: str, identifier: object, beginning: str) -> None:
        """A process is dead: its groups that begin so go."""
        for known, groups in list(self.folders.get(folder, {}).items()):
            if str(known) == str(identifier):
                for group in [group for group in groups if group.startswith(beginning)]:
                    del groups[group]

    def remove(self, cell: Cell) -> None:
        """A metric has it no more."""
        metric = cell.metric
        key = getattr(cell, "sample", metric.name), metric.labelnames, metric.labelvalues
        for identifiers in self.folders.values():
            for groups in identifiers.values():
                found = groups.get(metric.group, {})
                if found.get(key) is cell:
                    del found[key]
        removal.remove(cell)

    def after_fork(self) -> None:
        """In a child: all that this process has counted is the parent's."""
        removal.after_fork()
        self.forks += 1
        for identifiers in self.folders.values():
            for identifier in [*identifiers]:
                if identifier is not None:
                    for found in identifiers.pop(identifier).values():
                        for cell in found.values():
                            cell.owner = _gone
            for found in identifiers.get(None, {}).values():
                for cell in found.values():
                    if cell.private:
                        cell._reset()


def _gone() -> None:
    """The metric that a cell belonged to: its name is free."""


GROUPS = Groups()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=GROUPS.after_fork)


def folder_of_environment() -> str:
    """The folder of multiprocess mode; "" where that is off."""
    return os.environ.get(VARIABLE) or os.environ.get(OLD_VARIABLE, "")


class Values:
    """What `values.ValueClass` is: called with what is known of a metric, it makes the cell of a sample."""

    _multiprocess = False

    def __call__(
        self, type: str, metric_name: str, name: str, labelnames: Any, labelvalues: Any, help: str,
        multiprocess_mode: str = "", **_: object,
    ) -> Any:  # fmt: skip
        names, values, text = tuple(labelnames), tuple(labelvalues), str(help)
        return self._cell(Metric(type, metric_name, names, values, text, multiprocess_mode), name)

    def histogram(self, metric: Metric, bounds: list[float], texts: list[str]) -> Any:
        """The cell of a whole histogram, or None where it has to be one of several. `metric` is what it belongs to."""
        if len(bounds) < 1:
            return None
        try:
            return self._taken(HistogramCell(metric, cells.entry_name(metric, metric.name), bounds, texts))
        except ValueError:  # too many, or not what a slot takes
            return None

    def _cell(self, metric: Metric, sample: str) -> Any:
        return self._taken(cells.make(metric, sample))

    def _taken(self, cell: Cell) -> Cell:
        """The cell; or the one of this name that is in the region, where the metric that it belonged to is gone."""
        known: Any = REGISTRY.get(cell.name) if cell.name else None
        if known is None:
            cells.show(cell)
        elif type(known) is type(cell) and _is_free(known) and _alike(known, cell):
            if removal.is_removed(known):
                removal.make_again(known)
            known.owner = None
            known.begin_anew()
            known.metric = cell.metric
            taken: Cell = known
            return taken
        return cell

    def close_all_files(self) -> None:
        """There are none."""


class MultiProcessValues(Values):
    """The same in multiprocess mode: a metric that is made again goes on with what it had."""

    _multiprocess = True

    def _cell(self, metric: Metric, sample: str) -> Any:
        return self.bound(None, metric, sample)

    def histogram(self, metric: Metric, bounds: list[float], texts: list[str]) -> Any:
        known = self._known(None, metric)
        key = metric.name, metric.labelnames, metric.labelvalues
        found = known.get(key)
        if found is None:
            made = super().histogram(metric, bounds, texts)
            if made is None:
                return None
            found = known.setdefault(key, made)
            found.shared = True
        return found if isinstance(found, HistogramCell) and found.bounds == tuple(bounds) else None

    def bound(self, identifier: Any, metric: Metric, sample: str) -> Cell:
        known = self._known(identifier, metric)
        key = sample, metric.labelnames, metric.labelvalues
        found = known.get(key)
        if found is None:
            found = known.setdefault(key, self._taken(cells.make(metric, sample)))
            found.shared = True
            if identifier is not None:
                REGISTRY.text(cells.IDENTIFIER, capacity=64).set(str(identifier))
        return found

    def _known(self, identifier: Any, metric: Metric) -> dict[Key, Cell]:
        folder = folder_of_environment()
        text = REGISTRY.text(cells.FOLDER, capacity=1024)
        if not text.value:
            text.set(folder)
        return GROUPS.cells(folder, identifier, metric.group)


class IdentifiedValues(MultiProcessValues):
    """The same where the program says which process it is: whenever that changes, all begin anew."""

    def __init__(self, identify: Callable[[], Any]) -> None:
        self.identify = identify

    def _cell(self, metric: Metric, sample: str) -> Any:
        return IdentifiedCell(self, metric, sample)

    def histogram(self, metric: Metric, bounds: list[float], texts: list[str]) -> Any:
        return None


class IdentifiedCell:
    """The cell of the process that this one is just now."""

    __slots__ = ("_cell", "_forks", "_identifier", "_metric", "_sample", "_values")

    def __init__(self, values: IdentifiedValues, metric: Metric, sample: str) -> None:
        self._values = values
        self._metric = metric
        self._sample = sample
        self._forks = -1
        self._identifier: Any = None
        self._now()

    def _now(self) -> Any:
        identifier = self._values.identify()
        if self._forks != GROUPS.forks or self._identifier != identifier:
            self._identifier, self._forks = identifier, GROUPS.forks
            self._cell: Any = self._values.bound(identifier, self._metric, self._sample)
        return self._cell

    def inc(self, amount: Any) -> None:
        self._now().inc(amount)

    def set(self, value: Any, timestamp: float | None = None) -> None:
        self._now().set(value, timestamp)

    def get(self) -> float:
        return float(self._now().get())

    def set_exemplar(self, exemplar: Any) -> None:
        self._now().set_exemplar(exemplar)

    def get_exemplar(self) -> Any:
        return self._now().get_exemplar()


def _is_free(known: Any) -> bool:
    """Whether no metric has this cell any more."""
    return removal.is_removed(known) or (known.owner is not None and known.owner() is None)


def _alike(known: Any, cell: Any) -> bool:
    return getattr(known, "bounds", None) == getattr(cell, "bounds", None)


def own(cell: Any, metric: object) -> None:
    """The metric that a cell belongs to from now on: when that goes, the cell is free, and back to zero."""
    if isinstance(cell, CounterCell | cells.GaugeCell | HistogramCell) and not cell.shared:
        gone = ref(metric, lambda mine: cell.begin_anew() if cell.owner is mine else None)
        cell.owner = gone
