"""All values of one answer: laid out once for a set of VMs, and then computed from their numbers at each scrape.

Each service is a row, or each VM; a row has points, and a point a line for each of its values. What can be found out
before is: a scrape adds columns, picks the numbers of the lines, and works on those that are not plain numbers.
"""

from __future__ import annotations

import struct
from itertools import accumulate
from operator import itemgetter

from vmscope import native
from vmscope.export import own, standard
from vmscope.export.exemplars import latest
from vmscope.export.model import COUNTER, HISTOGRAM, INFO, MAX, MIN, MOST_RECENT, SUM, SUMMARY, Family, Point
from vmscope.export.names import Labels
from vmscope.reader.structure import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from vmscope.export.exemplars import Exemplar
    from vmscope.export.plan import Plan

    Number = int | float
    Index = list[tuple[int, int]]  # numbers that are added up, each with its sign

_COMPUTED = -1
# Divisors for which a number's digits only get a point.
_DIGITS: dict[float, int] = {10.0**digits: digits for digits in range(19)}
_REDUCE: dict[str, Callable[[Iterable[Number]], Number]] = {SUM: sum, MIN: min, MAX: max}
# What a family's lines are called besides its own name.
SUFFIXES = {
    COUNTER: ("_total", "_created"), HISTOGRAM: ("_bucket", "_count", "_sum", "_created"),
    SUMMARY: ("_count", "_sum", "_created"), INFO: ("_info",),
}  # fmt: skip


class Member:
    """A VM as a part of the answer: its numbers stand in the buffer in the order of members.

    `row`: its labels, which the VMs of one row share. `facts` are those of /proc, where its plan asks for them, and
    `texts` its exemplars by their names, where they are.
    """

    __slots__ = ("created", "facts", "pid", "plan", "row", "texts")

    def __init__(self, plan: Plan, row: Labels, pid: int, created: float) -> None:
        self.plan = plan
        self.row = row
        self.pid = pid
        self.created = created
        self.facts: Sequence[int] = ()
        self.texts: dict[str, str] = {}


class Group:
    """VMs of one row and one plan: their columns become one vector. A single one's is among the numbers already."""

    __slots__ = ("_special", "members", "place", "plan", "start")

    def __init__(self, plan: Plan, start: int) -> None:
        self.plan = plan
        self.start = start  # of the first one's numbers
        self.place = 0  # of its vector
        self.members: list[Member] = []
        self._special = sorted({*plan.bits, *plan.modes})

    @property
    def created(self) -> float:
        """When the first of its VMs began; 0 where that is not known."""
        return min((member.created for member in self.members if member.created > 0), default=0.0)

    @property
    def is_plain(self) -> bool:
        """Whether its values are numbers of the one VM, as they are."""
        return len(self.members) == 1 and not self.plan.facts and not self.plan.bits

    @property
    def size(self) -> int:
        """Of its vector."""
        return self.plan.width + len(self.plan.facts)

    def index(self, column: int) -> int:
        """Where the value of a column stands."""
        return (self.start if self.is_plain else self.place) + column

    def reduced(self, numbers: memoryview) -> list[Number]:
        count, width, plan = len(self.members), self.plan.width, self.plan
        rows = numbers[self.start : self.start + count * width]
        out: list[Number] = []
        if width:
            out.extend(native.add_columns(rows, width))
        out += [sum(member.facts[fact] for member in self.members) for fact in plan.facts]
        for place in self._special if count > 1 else plan.bits:
            each: list[Number]
            if place < width:
                each = [*rows[place::width].tolist()]
            else:
                each = [member.facts[plan.facts[place - width]] for member in self.members]
            if place in plan.bits:
                each = list(struct.unpack(f"={count}d", struct.pack(f"={count}q", *each)))
            if place in plan.times:
                time = plan.times[place]
                out[time], out[place] = max(zip(rows[time::width].tolist(), each, strict=True), key=itemgetter(0))
                continue
            out[place] = _REDUCE[plan.modes.get(place, SUM)](each)
        return out


Part = tuple[Point, Group]


class Line:
    """The lines of one point: `labels` are those behind its row's, `position` is where its values begin. `exemplars`
    are the places of the values that may have one, `created` is when the first of its parts was; 0: not known."""

    __slots__ = ("bounds", "created", "double", "exemplars", "labels", "position", "row")

    def __init__(self, row: int, labels: Labels, position: int) -> None:
        self.row = row
        self.labels = labels
        self.position = position
        self.bounds: tuple[str, ...] = ()
        self.created = 0.0
        self.double = False  # whether its value, if it is one, is not a whole number
        self.exemplars: set[int] = set()


class Table:
    """`families` with their lines, in the order of the answer, and `values(numbers)` for them all.

    A histogram's values are its cumulative buckets, the count and the sum; a summary's the count and the sum.
    `sources` has for each value the number that it is, divided by ten as often as `digits` says; -1 for what
    `computed(numbers)` gives. `dropped` says how many series are missing, by the reason, `vms` how many VMs are there.
    """

    def __init__(self, members: list[Member], *, reserved: bool = True) -> None:
        self._reserved = reserved  # whether the standard metrics' names are theirs, be they there or not
        self.members = members  # those of one row and one plan follow each other
        self.rows = list(dict.fromkeys(member.row for member in members))
        self.vms = sum(1 for member in members if member.pid)
        self.dropped = {"limit": sum(member.plan.dropped for member in members), "conflict": 0}
        self.families: list[tuple[Family, list[Line]]] = []
        self._groups: list[Group] = []
        self._sources: list[int] = []
        self._digits = bytearray()
        # What is computed stands behind each other: the vectors, then numbers that are operands.
        self._operands: dict[int, int] = {}  # where each of these numbers stands
        self._constants: dict[int, Number] = {}
        self._first: dict[int, int] = {}  # of each value that is computed its place, or that of its first operand
        self._combined: list[tuple[int, Index, str]] = []
        self._recent: list[tuple[int, Index]] = []  # of each line where the times and the values stand
        self._histograms: list[tuple[int, int]] = []
        self._exemplars: dict[int, list[tuple[Group, str]]] = {}
        self._scaled: list[tuple[int, float]] = []
        self._group()
        self._lay_out()
        self.sources, self.digits = words("q", self._sources), bytes(self._digits)
        self._picked = words("q", list(self._operands))
        self._take = itemgetter(*self._first.values(), 0, 0)  # two more: it then gives a tuple
        self._shown = words("q", [max(source, 0) for source in self._sources])

    @property
    def lines(self) -> int:
        return len(self._sources)

    def _group(self) -> None:
        start = 0
        last: tuple[Labels, Plan] | None = None
        for member in self.members:
            if last != (member.row, member.plan):
                last = member.row, member.plan
                self._groups.append(Group(member.plan, start))
            self._groups[-1].members.append(member)
            start += member.plan.width
        self._vectors = start  # behind the numbers
        self._reduced = [group for group in self._groups if not group.is_plain]
        for group in self._reduced:
            group.place = start
            start += group.size
        self._end = start - self._vectors

    def _lay_out(self) -> None:
        numbers = {row: number for number, row in enumerate(self.rows)}
        created = {id(group): group.created for group in self._groups}
        # family, then row, then labels: the points that become one
        found: dict[tuple[str, str], tuple[Family, dict[tuple[int, Labels], list[Part]]]] = {}
        claims = _Claims(self._reserved)
        renamed: dict[Labels, Labels] = {}  # of all rows, whose labels have the same names
        for group in self._groups:
            row = numbers[group.members[0].row]
            for point in group.plan.points:
                key = point.family.name, point.family.type
                if key not in found:
                    if not claims.claim(point.family):
                        self.dropped["conflict"] += 1
                        continue
                    found[key] = point.family, {}
                found[key][1].setdefault((row, point.labels), []).append((point, group))
        for family, points in sorted(found.values(), key=lambda pair: (not pair[0].standard, pair[0].name)):
            lines = []
            for (row, labels), parts in sorted(points.items(), key=lambda item: item[0]):
                if labels not in renamed:
                    renamed[labels] = _renamed(self.rows[row], labels)
                line = Line(row, renamed[labels], self.lines)
                point, group = parts[0]
                line.created = point.created or created[id(group)]
                for point, group in parts[1:]:
                    time = point.created or created[id(group)]
                    line.created = min(line.created or time, time or line.created)
                self._add(family, line, parts)
                lines.append(line)
            self.families.append((family, lines))

    # -- the lines of a point

    def _add(self, family: Family, line: Line, parts: list[Part]) -> None:
        point = parts[0][0]
        if family.type == HISTOGRAM:
            self._add_histogram(line, parts)
            return
        for number in range(len(point.sources) or 1):
            index = [
                (group.index(source.column), source.weight)
                for each, group in parts
                if each.sources
                for source in each.sources[number]
            ]
            divisor = point.divisor if number or len(point.sources) == 1 else 1
            position = self._put(index, point.mode, _constant(parts), divisor)
            if point.mode == MOST_RECENT:
                times = [group.index(each.time.column) for each, group in parts if each.time is not None]
                pairs = zip(times, (at for at, _ in index), strict=True)
                self._recent.append((position, [(self._place(time), self._place(at)) for time, at in pairs]))
            line.double = (
                point.divisor != 1
                or isinstance(point.constant, float)
                or any(group.plan.bits and _is_double(each, group) for each, group in parts)
            )
        for each, group in parts:
            self._add_exemplars(line, each.exemplars, group)

    def _add_histogram(self, line: Line, parts: list[Part]) -> None:
        cells: dict[str, Index] = {}
        total: Index = []
        for point, group in parts:
            for bound, sources in zip(point.bounds, point.sources[:-1], strict=True):
                cells.setdefault(bound, []).extend((group.index(source.column), source.weight) for source in sources)
            total += [(group.index(source.column), source.weight) for source in point.sources[-1]]
        line.bounds = tuple(sorted(cells, key=float))
        for bound in line.bounds:
            self._compute(cells[bound], SUM)
        for point, group in parts:
            places = {line.bounds.index(point.bounds[place]): name for place, name in point.exemplars.items()}
            self._add_exemplars(line, places, group)
        self._histograms.append((line.position, len(line.bounds)))
        self._compute([], SUM)
        self._compute(total, SUM, divisor=parts[0][0].divisor)

    def _add_exemplars(self, line: Line, names: dict[int, str], group: Group) -> None:
        for place, name in names.items():
            line.exemplars.add(place)
            self._exemplars.setdefault(line.position + place, []).append((group, name))

    def _put(self, index: Index, mode: str, constant: Number, divisor: float) -> int:
        """The next value: a number as it is, where it is one, else it is computed."""
        digits = _DIGITS.get(divisor)
        if mode == MOST_RECENT or len(index) != 1 or digits is None:
            return self._compute(index, mode, constant, divisor)
        source, weight = index[0]
        if weight != 1 or source >= self._vectors:
            return self._compute(index, mode, constant, divisor)
        self._sources.append(source)
        self._digits.append(digits)
        return self.lines - 1

    def _compute(self, index: Index, mode: str, constant: Number = 0, divisor: float = 1) -> int:
        position = self.lines
        self._sources.append(_COMPUTED)
        self._digits.append(0)
        if not index:
            self._constants[position] = constant
        else:
            self._first[position] = self._place(index[0][0])
            if mode != MOST_RECENT and (index[1:] or index[0][1] != 1):
                self._combined.append((position, [(self._place(at), weight) for at, weight in index], mode))
        if divisor != 1:
            self._scaled.append((position, divisor))
        return position

    def _place(self, index: int) -> int:
        """Where a number, or one of a vector, stands among what is computed."""
        if index >= self._vectors:
            return index - self._vectors
        return self._operands.setdefault(index, self._end + len(self._operands))

    # -- a scrape

    def exemplars(self) -> dict[int, Exemplar | None]:
        """Of all values that may have one the exemplar that is the last, now."""
        return {
            position: latest(member.texts.get(name, "") for group, name in found for member in group.members)
            for position, found in self._exemplars.items()
        }

    def computed(self, numbers: memoryview) -> dict[int, Number]:
        """The values of lines that `sources` has no numbers of, by their positions."""
        found: list[Number] = []
        for group in self._reduced:
            found += group.reduced(numbers)
        found += native.pick(numbers, self._picked)
        values = dict(self._constants)
        if self._first:
            values.update(zip(self._first, self._take(found), strict=False))
        for position, index, mode in self._combined:
            values[position] = _REDUCE[mode]([found[at] * weight for at, weight in index])
        for position, pairs in self._recent:
            values[position] = max((found[time], found[at]) for time, at in pairs)[1]
        for position, count in self._histograms:
            end = position + count
            cells = range(position, end)
            values.update(zip(cells, accumulate(map(values.__getitem__, cells)), strict=True))
            values[end] = values[end - 1]
        for position, divisor in self._scaled:
            values[position] /= divisor
        return values

    def value(self, position: int, numbers: memoryview, computed: dict[int, Number]) -> Number:
        """One of the values."""
        source, digits = self.sources[position], self.digits[position]
        if source == _COMPUTED:
            return computed[position]
        return numbers[source] / 10**digits if digits else numbers[source]

    def values(self, numbers: memoryview) -> list[Number]:
        """The values of all lines, from the numbers of all members."""
        values: list[Number] = list(native.pick(numbers, self._shown)) if numbers else [0] * self.lines
        for position, digits in enumerate(self.digits):
            if digits:
                values[position] /= 10**digits
        for position, value in self.computed(numbers).items():
            values[position] = value
        return values


def _is_double(point: Point, group: Group) -> bool:
    return any(source.column in group.plan.bits for sources in point.sources for source in sources)


def _constant(parts: list[Part]) -> Number:
    """The value of points without sources: one that is added up counts VMs."""
    first = parts[0][0]
    if first.constant is None or first.mode != SUM:
        return first.constant or 0
    return sum((point.constant or 0) * len(group.members) for point, group in parts)


class _Claims:
    """No two families have a line of one name, whatever programs call their own."""

    def __init__(self, reserved: bool) -> None:
        self._names: dict[str, tuple[str, str]] = {
            name: key for family in _standard(reserved) for name, key in _claimed(family)
        }

    def claim(self, family: Family) -> bool:
        wanted = dict(_claimed(family))
        if family.standard:
            return True
        if any(self._names.get(name, key) != key for name, key in wanted.items()):
            return False
        self._names.update(wanted)
        return True


def _claimed(family: Family) -> list[tuple[str, tuple[str, str]]]:
    key = family.name, family.type if not family.standard else f"standard {family.type}"
    return [(name, key) for name in (family.name, *(family.name + suffix for suffix in SUFFIXES.get(family.type, ())))]


def _standard(every: bool) -> list[Family]:
    always = [standard.PYTHON_INFO, standard.JVM_INFO, standard.VMS, *own.FAMILIES]
    if not every:
        return always
    return [*always, *(row.family for row in standard.ROWS), *(family for family, _ in standard.OTHERS.values())]


def _renamed(row: Labels, own: Labels) -> Labels:
    """A point's labels, with another name for those that its row has too."""
    taken = {name for name, _ in row}
    return tuple((f"exported_{name}" if name in taken or name.startswith("__") else name, value) for name, value in own)
