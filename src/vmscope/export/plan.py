"""What of a VM is exported: the points of its metrics, for all VMs of one layout found once."""

from __future__ import annotations

import math

from vmscope.export import standard
from vmscope.export.facts import FACTS
from vmscope.export.model import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    MARKS,
    MAX,
    MOST_RECENT,
    SUM,
    SUMMARY,
    Family,
    Otel,
    Point,
    Source,
)
from vmscope.export.names import Entry, Labels, legacy, with_unit
from vmscope.export.standard import JAVA, PYTHON, TICKS
from vmscope.reader.machine import CPYTHON, HOTSPOT, kind_of
from vmscope.wire import totals
from vmscope.wire.codes import Units, Variability
from vmscope.wire.series import is_mark, keys, removal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from vmscope.export.rules import Rules

_TIME = "time"  # a mark: when the gauge of this name was set
BITS = "f64"  # a mark: the number is the bits of a double
PART = "summary"  # a mark: the count or the sum of a summary
EXEMPLAR = "exemplar"  # a mark: the text is an exemplar of the counter or bucket of this name
_BILLION = 1e9


class Series:
    """A number of a program's own: its name taken apart, its column, and what the region says of it."""

    __slots__ = ("column", "entry", "name", "units", "variability")

    def __init__(self, column: int, name: str, units: int, variability: int) -> None:
        self.column = column
        self.name = name
        self.entry = Entry(name)
        self.units = units
        self.variability = variability

    @property
    def type(self) -> str:
        return COUNTER if self.variability == Variability.MONOTONIC else GAUGE


class Plan:
    """The points of all VMs of one layout. A source's column is a place among what is read: `columns` of the `entries`
    numbers that the region has, in its structure's order, then `facts` of FACTS.

    `bits` are the places of doubles, `modes` those that are not simply added. `dropped`: series beyond the limit.
    `times`: of numbers of which the most recent counts, where it is said when they were set.
    `ended`: of a process that has, only what outlives it. `texts`: the names of the exemplars that are shown.
    `remade`: of the numbers that say which series are removed the column and the value for which this plan holds.
    """

    __slots__ = (
        "_created", "_exemplars", "_times", "bits", "columns", "dropped", "entries", "facts", "modes", "points",
        "remade", "texts", "ticks", "times",
    )  # fmt: skip

    def __init__(
        self, names: list[str], codes: list[tuple[int, int]], values: dict[str, int | str], limit: int,
        lacking: frozenset[str] = frozenset(), rules: Rules | None = None, *, ended: bool = False,
        texts: Iterable[str] = (), remade: dict[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.entries = len(names)
        kind = kind_of(values)
        self.ticks = float(values.get("sun.os.hrt.frequency") or _BILLION)
        self.points: list[Point] = []
        self.bits: list[int] = []
        self.modes: dict[int, str] = {}
        self._times: dict[tuple[str, Labels], int] = {}
        self._exemplars: dict[tuple[str, Labels], str] = {}
        self._find_exemplars(texts)
        self.dropped = 0
        left = totals.kept(names, [code for _, code in codes]) if ended else [True] * len(names)
        known = {name: column for column, name in enumerate(names) if left[column]}
        self.remade = [(known[name], value) for name, value in (remade or {}).items()]
        self._created = {keys(name)[0]: value / 1000 for name, value in (remade or {}).items() if value > 0}
        is_removed = removal((remade or {}).items())
        if kind != CPYTHON and not ended:
            known |= {name: self.entries + at for at, name in enumerate(FACTS) if name not in lacking}
        vms = {CPYTHON: PYTHON, HOTSPOT: JAVA}.get(kind, "")
        if vms:
            if not ended:
                self._info(vms, values)
            if rules is None or rules.standard:
                self._standard(vms, values, known)
        chosen = rules if rules is not None and rules.rules else None
        own = {name: column for name, column in known.items() if not (is_mark(name) or is_removed(name))}
        self._own(own, codes, vms, limit, chosen)
        self.texts = frozenset(name for point in self.points for name in point.exemplars.values())
        self._compact()

    # -- the VM's

    def _info(self, vms: str, values: dict[str, int | str]) -> None:
        def text(name: str) -> str:
            return str(values.get(f"java.property.java.{name}", ""))

        labels: Labels
        if vms == PYTHON:
            major, minor, patch, *_ = [*text("version").split("."), "", "", ""]
            labels = (
                ("version", text("vm.version")), ("implementation", text("vm.name")), ("major", major),
                ("minor", minor), ("patchlevel", patch),
            )  # fmt: skip
            self.points.append(Point(standard.PYTHON_INFO, labels, [], constant=1, mode=MAX))
        else:
            labels = (("version", text("vm.version")), ("vendor", text("vm.vendor")), ("runtime", text("vm.name")))
            self.points.append(Point(standard.JVM_INFO, labels, [], constant=1, mode=MAX))

    def _standard(self, vms: str, values: dict[str, int | str], known: dict[str, int]) -> None:
        groups = standard.groups(vms, values)
        for row in standard.ROWS:
            if row.vms not in (vms, standard.ALL):
                continue
            for expansion in _expansions(row, groups, known):
                sources = [_sources(names, expansion, known) for names in row.sources]
                if not all(sources):
                    continue
                labels = tuple((name, expansion.value) for name, _ in row.labels)
                divisor = self.ticks if row.divisor == TICKS else row.divisor
                self._add(Point(row.family, labels, sources, divisor=divisor, mode=row.mode))
        if vms == PYTHON:
            for name, (family, mode) in standard.OTHERS.items():
                if name in known:
                    divisor = self.ticks if family.unit == "seconds" else 1
                    self._add(Point(family, (), [[Source(known[name])]], divisor=divisor, mode=mode))

    # -- the program's own

    def _own(
        self, known: dict[str, int], codes: list[tuple[int, int]], vms: str, limit: int, rules: Rules | None
    ) -> None:
        """The program's own counters; with rules those of all that the rules choose."""
        series = []
        for name, column in known.items():
            if column >= self.entries:
                continue
            theirs = name.startswith(standard.RESERVED) or (vms == PYTHON and name in standard.KNOWN)
            if rules is not None or not theirs:
                series.append(Series(column, name, *codes[column]))
        self.dropped = max(0, len(series) - limit)
        del series[limit:]
        for (base, labels), found in histograms(series).items():
            if found.complete:
                self._add_histogram(base, labels, found, rules)
                series = [each for each in series if each not in found.members]
        for (base, labels), parts in summaries(series).items():
            if len(parts) == 2:
                self._add_summary(base, labels, parts, rules)
                series = [each for each in series if each not in parts.values()]
        for each in series:
            if _TIME in each.entry.marks:
                self._times[each.entry.base, each.entry.labels] = each.column
        parents = {each.entry.base for each in series if each.entry.labels}
        for each in series:
            # A tally's number of all events is the sum of those of each kind.
            is_total = each.entry.base.startswith("python.") and not each.entry.labels and each.entry.base in parents
            if rules is not None or not is_total:
                self._add_series(each, rules)

    def _find_exemplars(self, texts: Iterable[str]) -> None:
        for name in texts:
            entry = Entry(name)
            if EXEMPLAR in entry.marks:
                self._exemplars[entry.base, entry.labels] = name

    def _add_series(self, each: Series, rules: Rules | None) -> None:
        entry = each.entry
        divisor = self.ticks if each.units == Units.TICKS else 1
        mode = next((mode for mark, mode in MARKS.items() if mark in entry.marks), SUM)
        time = self._times.get((entry.base, entry.labels)) if mode == MOST_RECENT else None
        if time == each.column or (mode == MOST_RECENT and time is None):
            return
        family, labels = own_family(entry.base, each.type, each.units), entry.labels
        if rules is not None:
            mapped = rules.match(entry.base, labels, each.type, family)
            if mapped is None:
                return
            family, labels, mode = mapped.family, mapped.labels, mode if mode != SUM else mapped.mode
            if mapped.constant is not None:
                self.points.append(Point(family, labels, [], constant=mapped.constant, mode=MAX))
                return
            divisor /= mapped.factor or 1
        if BITS in entry.marks:
            self.bits.append(each.column)
        source = None if time is None else Source(time)
        point = Point(family, labels, [[Source(each.column)]], divisor=divisor, mode=mode, time=source)
        point.created = self._made_anew(each)
        exemplar = self._exemplars.get((entry.base, entry.labels))
        if exemplar is not None and family.type == COUNTER:
            point.exemplars[0] = exemplar
        self._add(point)

    def _add_histogram(self, base: str, labels: Labels, found: Histogram, rules: Rules | None) -> None:
        assert found.total is not None
        units = found.total.units
        family = own_family(base, HISTOGRAM, units)
        if rules is not None:
            mapped = rules.match(base, labels, HISTOGRAM, family)
            if mapped is None:
                return
            family, labels = mapped.family, mapped.labels
        bounds = sorted(found.buckets, key=float)
        sources = [[Source(found.buckets[bound].column)] for bound in bounds]
        divisor = _BILLION if units in (Units.TICKS, Units.NONE) else 1
        if BITS in found.total.entry.marks:
            self.bits.append(found.total.column)
            divisor = 1
        sources.append([Source(found.total.column)])
        point = Point(family, labels, sources, divisor=divisor, bounds=tuple(bounds))
        point.created = self._made_anew(found.buckets["+Inf"])
        for place, bound in enumerate(bounds):
            entry = found.buckets[bound].entry
            if (exemplar := self._exemplars.get((entry.base, entry.labels))) is not None:
                point.exemplars[place] = exemplar
        self._add(point)

    def _add_summary(self, base: str, labels: Labels, parts: dict[str, Series], rules: Rules | None) -> None:
        family = own_family(base, SUMMARY, parts["sum"].units)
        if rules is not None:
            mapped = rules.match(base, labels, SUMMARY, family)
            if mapped is None:
                return
            family, labels = mapped.family, mapped.labels
        if BITS in parts["sum"].entry.marks:
            self.bits.append(parts["sum"].column)
        point = Point(family, labels, [[Source(parts[part].column)] for part in ("count", "sum")])
        point.created = self._made_anew(parts["sum"])
        self._add(point)

    def _made_anew(self, each: Series) -> float:
        """When that was, in seconds since the epoch, of a series that had been removed; 0 for others."""
        if not self._created:
            return 0
        return next((found for key in keys(each.name) if (found := self._created.get(key))), 0)

    # -- columns

    @property
    def width(self) -> int:
        """How many numbers of the region are read."""
        return len(self.columns)

    def _add(self, point: Point) -> None:
        self.points.append(point)
        if point.mode != SUM:
            for source in (source for sources in point.sources for source in sources):
                self.modes[source.column] = point.mode

    def _compact(self) -> None:
        """Only what is exported is a column."""
        sources = [source for point in self.points for sources in point.sources for source in sources]
        sources += [point.time for point in self.points if point.time is not None]
        read = sorted({*(source.column for source in sources), *(column for column, _ in self.remade)})
        self.columns = [column for column in read if column < self.entries]
        self.facts = [column - self.entries for column in read if column >= self.entries]
        place = {column: at for at, column in enumerate(read)}
        for source in sources:
            source.column = place[source.column]
        self.remade = [(place[column], value) for column, value in self.remade]
        self.bits = sorted({place[column] for column in self.bits})
        self.modes = {place[column]: mode for column, mode in self.modes.items()}
        self.times = {point.sources[0][0].column: point.time.column for point in self.points if point.time is not None}


class Histogram:
    """The numbers of one histogram: a bucket for each bound, and the sum."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets: dict[str, Series] = {}
        self.total: Series | None = None

    @property
    def complete(self) -> bool:
        return self.total is not None and "+Inf" in self.buckets

    @property
    def members(self) -> set[Series]:
        return {*self.buckets.values(), *([self.total] if self.total else [])}


def histograms(series: list[Series]) -> dict[tuple[str, Labels], Histogram]:
    """What may be a histogram, by its name and labels: `NAME.bucket{le="..."}` and `NAME.sum`."""
    found: dict[tuple[str, Labels], Histogram] = {}
    for each in series:
        base, labels = each.entry.base, each.entry.labels
        if base.endswith(".bucket") and labels and labels[0][0] == "le" and _is_bound(labels[0][1]):
            key = base.removesuffix(".bucket"), labels[1:]
            found.setdefault(key, Histogram()).buckets[labels[0][1]] = each
    for each in series:
        base = each.entry.base
        if base.endswith(".sum") and (key := (base.removesuffix(".sum"), each.entry.labels)) in found:
            found[key].total = each
    return found


def summaries(series: list[Series]) -> dict[tuple[str, Labels], dict[str, Series]]:
    """The parts of summaries, by name and labels: `NAME.count#summary` and `NAME.sum#summary`."""
    found: dict[tuple[str, Labels], dict[str, Series]] = {}
    for each in series:
        base, _, part = each.entry.base.rpartition(".")
        if PART in each.entry.marks and part in ("count", "sum"):
            found.setdefault((base, each.entry.labels), {})[part] = each
    return found


def _is_bound(text: str) -> bool:
    try:
        return text == "+Inf" or (math.isfinite(float(text)) and repr(float(text)) == text)
    except ValueError:
        return False


_UNITS = {"_seconds": "seconds", "_bytes": "bytes", "_hertz": "hertz"}
_UCUM = {"seconds": "s", "bytes": "By", "hertz": "Hz"}


def own_family(base: str, type: str, units: int) -> Family:
    """The family of a program's own counter."""
    original = with_unit(base, units, type)
    unit = next((unit for suffix, unit in _UNITS.items() if original.endswith(suffix)), "")
    text = f"{base}, a {'histogram' if type == HISTOGRAM else type} of the program's."
    return Family(legacy(original), type, text, unit=unit, original=original, otel=Otel(base, _UCUM.get(unit, "1")))


class _Expansion:
    """What stands for a row's `*` or `{...}`: the label's value, and beginnings of the counters' names."""

    __slots__ = ("key", "places", "value")

    def __init__(self, key: str, value: str, places: list[str]) -> None:
        self.key = key
        self.value = value
        self.places = places


def _expansions(row: standard.Row, groups: dict[str, standard.Groups], known: dict[str, int]) -> list[_Expansion]:
    first = row.sources[0][0]
    if "*" in first:
        head, _, tail = first.partition("*")
        values = [name[len(head) : -len(tail)] for name in known if name.startswith(head) and name.endswith(tail)]
        return [_Expansion("*", value, [value]) for value in values if value.isdigit()]
    if "{" in first:
        key = first[first.index("{") : first.index("}") + 1]
        return [_Expansion(key, value, places) for value, places in groups.get(key[1:-1], {}).items()]
    return [_Expansion("", "", [""])]


def _sources(names: tuple[str, ...], expansion: _Expansion, known: dict[str, int]) -> list[Source]:
    """The columns of one value; none where one of its counters is missing and that is all there is."""
    found = []
    for name in names:
        weight, plain = (-1, name[1:]) if name.startswith("-") else (1, name)
        for place in expansion.places:
            full = plain.replace(expansion.key, place) if expansion.key else plain
            if full in known:
                found.append(Source(known[full], weight))
    return found
