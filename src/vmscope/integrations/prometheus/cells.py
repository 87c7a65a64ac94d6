"""Cells: what a metric of prometheus_client keeps its numbers in. Each is a counter of the registry's, with a name.

A cell whose name another living metric has is `private`: it counts, and no tool sees it. That is what metrics of one
name in several registries come to.
"""

from __future__ import annotations

from vmscope import native
from vmscope.counters.kinds import (
    EXEMPLAR,
    FLOAT,
    MONOTONIC,
    NONE,
    RECENT,
    TIME,
    VARIABLE,
    bucket,
    escaped,
    exemplar_text,
    labelled,
)
from vmscope.counters.registry import REGISTRY
from vmscope.errors import VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from vmscope.counters.kinds import Text
    from vmscope.memory.region import Entry

FOLDER = "prometheus.folder"  # the text that tells which processes' metrics are collected together
IDENTIFIER = "prometheus.identifier"
FAMILY = "prometheus.family."  # and a metric's name: its type, its mode and its help, a blank between them

Sample = tuple[str, tuple[str, ...], tuple[str, ...], float, float]  # name, names and values of labels, value, time


class Metric:
    """What is known of a metric when its cells are made."""

    __slots__ = ("help", "labelnames", "labelvalues", "mode", "name", "type")

    def __init__(
        self, type: str, name: str, labelnames: Sequence[str], labelvalues: Sequence[str], help: str, mode: str = ""
    ) -> None:
        self.type = type
        self.name = name
        self.labelnames = tuple(labelnames)
        self.labelvalues = tuple(labelvalues)
        self.help = help
        self.mode = mode

    @property
    def group(self) -> str:
        """How prometheus_client begins the names of its files: the cells of one go into one."""
        return f"{self.type}_{self.mode}" if self.type == "gauge" else self.type


class CounterCell(native.CounterCell):
    """A number that only grows."""

    __slots__ = ("_shown", "exemplar", "metric", "name", "owner", "private", "sample", "shared")
    exemplar: Any
    owner: Callable[[], object] | None  # the metric, a weak reference
    private: bool
    shared: bool  # a metric that is made again goes on with it

    def __init__(self, metric: Metric, sample: str, name: str) -> None:
        self.metric, self.sample, self.name = metric, sample, name
        self.exemplar = self.owner = None
        self.private, self.shared = True, False
        self._shown: dict[int, Text] = {}

    def entries(self) -> Sequence[Entry]:
        return ((self.name, self.cells[0], NONE, MONOTONIC, self, 0),)

    def fraction(self) -> Entry:
        return (self.name + FLOAT, self.cells[1], NONE, MONOTONIC, self, 1)

    def _show_fraction(self) -> None:
        if not self.private:
            REGISTRY.show_fraction(self)

    def get(self) -> float:
        return float(self.value)

    def set(self, value: float, timestamp: float | None = None) -> None:
        self._reset()
        self.inc(value)

    def begin_anew(self) -> None:
        self._reset()
        self.exemplar = None
        for text in self._shown.values():
            text.set("")

    def _note(self, exemplar: dict[str, str], amount: Any, /) -> None:
        self.set_exemplar(checked_exemplar(exemplar, amount))

    def set_exemplar(self, exemplar: Any) -> None:
        self.exemplar = exemplar
        if not self.private:
            base, brace, labels = self.name.partition("{")
            show_exemplar(self._shown, 0, f"{base}{EXEMPLAR}{brace}{labels}", exemplar)

    def get_exemplar(self) -> Any:
        return self.exemplar

    def samples(self) -> Iterator[Sample]:
        yield self.sample, self.metric.labelnames, self.metric.labelvalues, self.get(), 0.0


class GaugeCell(native.GaugeCell):
    """A number that goes up and down, or a sum."""

    __slots__ = ("metric", "name", "owner", "private", "sample", "shared")
    owner: Callable[[], object] | None  # the metric, a weak reference
    private: bool
    shared: bool  # a metric that is made again goes on with it

    def __init__(self, metric: Metric, sample: str, name: str) -> None:
        self.metric, self.sample, self.name = metric, sample, name
        self.owner = None
        self.private, self.shared = True, False

    def entries(self) -> Sequence[Entry]:
        variability = VARIABLE if self.metric.type == "gauge" else MONOTONIC
        return ((self.name + FLOAT, self.cells[0], NONE, variability, self, 0),)

    def begin_anew(self) -> None:
        self._reset()

    def get(self) -> float:
        return self.value

    def set_exemplar(self, exemplar: Any) -> None:
        """No gauge has one."""

    def get_exemplar(self) -> Any:
        return None

    def samples(self) -> Iterator[Sample]:
        yield self.sample, self.metric.labelnames, self.metric.labelvalues, self.value, self.set_at()

    def set_at(self) -> float:
        return 0.0


class MostRecentCell(GaugeCell):
    """A gauge that knows when it was set."""

    __slots__ = ("_set_at",)

    def __init__(self, metric: Metric, sample: str, name: str) -> None:
        super().__init__(metric, sample, name)
        self._set_at = native.GaugeSlot()  # ns

    def entries(self) -> Sequence[Entry]:
        time = (time_of(self.name), self._set_at.cells[0], NONE, VARIABLE, self._set_at, 0)
        return (*super().entries(), time)

    def set(self, value: Any, timestamp: float | None = None) -> None:
        super().set(value)
        self._set_at.set(round((timestamp or 0.0) * 1e9))

    def _reset(self) -> None:
        super()._reset()
        self._set_at._reset()

    def set_at(self) -> float:
        return self._set_at.value / 1e9


class HistogramCell(native.HistogramCell):
    """All numbers of a histogram."""

    __slots__ = ("_shown", "exemplars", "metric", "name", "owner", "private", "shared", "texts")
    owner: Callable[[], object] | None  # the metric, a weak reference
    private: bool
    shared: bool  # a metric that is made again goes on with it

    def __new__(cls, metric: Metric, name: str, bounds: Sequence[float], texts: Sequence[str]) -> HistogramCell:
        return super().__new__(cls, bounds, 0)

    def __init__(self, metric: Metric, name: str, bounds: Sequence[float], texts: Sequence[str]) -> None:
        self.metric, self.name = metric, name
        self.texts = tuple(texts)  # of the bounds, as labels have them
        self.exemplars: dict[int, Any] = {}
        self._shown: dict[int, Text] = {}
        self.owner = None
        self.private, self.shared = True, False

    def entries(self) -> Sequence[Entry]:
        base, brace, labels = self.name.partition("{")
        rest = f",{labels}" if brace else "}"
        total, *counts = self.cells
        shown = [*map(repr, self.bounds), "+Inf"]
        buckets = [
            (f'{base}.bucket{{le="{bound}"{rest}', counts[i], NONE, MONOTONIC, self, i + 1)
            for i, bound in enumerate(shown)
        ]
        return (*buckets, (f"{base}.sum{brace}{labels}{FLOAT}", total, NONE, MONOTONIC, self, 0))

    def begin_anew(self) -> None:
        self._reset()
        self.exemplars.clear()
        for text in self._shown.values():
            text.set("")

    def _note(self, exemplar: dict[str, str], amount: Any, /) -> None:
        place, name = bucket(self.name, self.bounds, float(amount))
        self.exemplars[place] = checked = checked_exemplar(exemplar, amount)
        if not self.private:
            show_exemplar(self._shown, place, name, checked)

    def samples(self) -> Iterator[Sample]:
        metric = self.metric
        yield f"{metric.name}_sum", metric.labelnames, metric.labelvalues, self.sum, 0.0
        names = (*metric.labelnames, "le")
        for text, count in zip(self.texts, self.cells[1:], strict=True):
            yield f"{metric.name}_bucket", names, (*metric.labelvalues, text), float(count), 0.0


class Sum:
    """The sum of a histogram, as its metric sees it."""

    __slots__ = ("_cell",)

    def __init__(self, cell: HistogramCell) -> None:
        self._cell = cell

    def get(self) -> float:
        return self._cell.sum

    def get_exemplar(self) -> Any:
        return None


class Bucket:
    """A bucket of a histogram, as its metric sees it."""

    __slots__ = ("_cell", "_place")

    def __init__(self, cell: HistogramCell, place: int) -> None:
        self._cell = cell
        self._place = place

    def get(self) -> float:
        return float(self._cell.cells[1 + self._place])

    def set_exemplar(self, exemplar: Any) -> None:
        self._cell.exemplars[self._place] = exemplar

    def get_exemplar(self) -> Any:
        return self._cell.exemplars.get(self._place)


Cell = CounterCell | GaugeCell | HistogramCell
_PARTS = {"histogram": ("_bucket", "_sum"), "summary": ("_count", "_sum")}


def make(metric: Metric, sample: str) -> Cell:
    """The cell of a sample that is called so, which no tool sees yet."""
    name = entry_name(metric, sample)
    if metric.type == "gauge":
        return (MostRecentCell if metric.mode.endswith("mostrecent") else GaugeCell)(metric, sample, name)
    if metric.type in _PARTS and sample.endswith("_sum"):
        return GaugeCell(metric, sample, name)
    return CounterCell(metric, sample, name)


def entry_name(metric: Metric, sample: str) -> str:
    """What the region calls it: the exporter finds the parts of a histogram and of a summary, and a gauge's mode."""
    base = escaped(sample)
    if metric.type == "gauge" and metric.mode:
        base += f"#{metric.mode}"
    elif metric.type in _PARTS and sample != metric.name:
        base = f"{escaped(metric.name)}.{sample.removeprefix(metric.name + '_')}"
        base += "#summary" if metric.type == "summary" else ""
    try:
        return (
            labelled(base, dict(zip(metric.labelnames, metric.labelvalues, strict=False)))
            if metric.labelvalues
            else base
        )
    except VMScopeError:  # no label of a region's: see `show`
        return ""


def show(cell: Cell) -> bool:
    """Gives a cell its entries. False where another counter has its name, or where it has none."""
    if not cell.name:
        return False
    try:
        cell.private = REGISTRY.add(cell) is not cell
        if not cell.private:
            metric = cell.metric
            text = f"{metric.type} {metric.mode or '-'} {metric.help}"
            REGISTRY.constant(FAMILY + escaped(metric.name), text, limit=1024)
    except VMScopeError:
        pass
    return not cell.private


def show_exemplar(kept: dict[int, Text], place: int, name: str, exemplar: Any) -> None:
    """Shows what prometheus_client has checked. Labels that no region's entry has are not shown."""
    try:
        text = exemplar_text(exemplar.labels, exemplar.value, exemplar.timestamp or 0.0)
    except (ValueError, TypeError):
        return
    REGISTRY.keep_exemplar(kept, place, name, text)


def time_of(name: str) -> str:
    """The entry that tells when a gauge of the mode mostrecent was set."""
    mark = next((mark for mark in RECENT if mark in name), "")
    return name.replace(mark, mark + TIME, 1)


def checked_exemplar(exemplar: dict[str, str], amount: Any) -> Any:
    """As prometheus_client makes one: ValueError for labels that are not valid."""
    import time

    from prometheus_client import metrics
    from prometheus_client.samples import Exemplar

    vars(metrics)["_validate_exemplar"](exemplar)
    return Exemplar(exemplar, amount, time.time())
