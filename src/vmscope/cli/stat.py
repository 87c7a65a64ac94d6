"""`vmscope stat`: what one VM is doing, a line each interval."""

from __future__ import annotations

import time

from vmscope import reader, terminal
from vmscope.cli import _options, _table, _targets
from vmscope.cli._table import Column
from vmscope.errors import CommandLineError, FormatError, NoSuchProcess, ReadTimeout, StaleRegion
from vmscope.reader.machine import CPYTHON, HOTSPOT, THREADS, threads_of
from vmscope.reader.process import Process, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Values = dict[str, int | str]

HELP = """\
usage: vmscope stat [--json] PID[,PID...]|NAME [INTERVAL [COUNT]]

Shows what VMs are doing: their collectors, threads, memory and processor.
Without INTERVAL once, since the VM's start; with it (2, 0.5, 2s, 500ms) again
and again, COUNT times or until Ctrl-C or the VM's end.

  --json           one JSON object a line, exact numbers, times in seconds and
                   sizes in bytes
  --watch[=2]      the same as INTERVAL

NAME stands for each VM whose program has it in its name, and its workers. PID
may also be file:PATH, a saved region.

A Python VM: GEN0, GEN1 and GEN2 are collections of each generation, each
followed by the time they took. A JVM: YOUNG, FULL and CONC are collections,
EDEN, OLD and META how much is used, HEAP of how much. Of several VMs there is a
line each, with all collections as GCS. THR are the threads, of a Python VM
those that run Python code, without vmscope's own; GC% and CPU% shares of the
time since the line before, in the first line since the VM's start.

A terminal shows as many columns as fit; --json and a pipe have all. Of a VM
whose region cannot be read there is what the system knows, dashes for the rest,
and the REASON.

example:
$ vmscope stat 4711 1 3
 UPTIME   GEN0   GEN1   GEN2    GC%    THR    RSS   CPU%  MAIN
  9.11s   1892    146    145   1.2%      2  11.4M   2.3%  shop
  10.1s   2105    162    161   1.1%      2  11.4M   2.0%  shop
  11.2s   2330    180    178   1.3%      2  11.4M   1.9%  shop
$ vmscope stat 4830
 UPTIME  YOUNG   FULL   CONC    GC%   HEAP     OF    THR    RSS   CPU%  MAIN
  11.3s     14      0      0   0.2%  21.4M  64.0M     20  92.5M   1.3%  Store
$ vmscope stat shop,4830
  PID   UPTIME    GCS    GC%    THR    RSS   CPU%  MAIN
 4711    11.3s   2688   1.1%      2  11.4M   1.9%  shop
 4712    11.3s   1910   0.9%      2  10.1M  81.2%  shop: worker of 4711
 4830    11.4s     14   0.2%     20  92.5M   1.3%  Store
"""

_PROBABLY_PID = 1000  # more than is meant as seconds between lines
_REPEAT = 20  # lines between headers
_REASON = Column("REASON")


# What is shown, of either kind of VM: the counters of collectors, heap and clock.
_SPACES = tuple(f"sun.gc.generation.{generation}.space.{space}." for generation in range(3) for space in range(5))
_NAMES = (
    *("java.property.java.vm.name", THREADS),
    *("sun.os.hrt.ticks", "sun.os.hrt.frequency", "sun.gc.metaspace.used", "sun.gc.metaspace.capacity"),
    *(f"sun.gc.collector.{number}.{what}" for number in range(3) for what in ("invocations", "time")),
    *(space + what for space in _SPACES for what in ("used", "capacity")),
)


class Sample:
    """A VM's values and its process at one moment; `age` is the VM's, in seconds, where it is known.

    `reason` is why there are no values.
    """

    __slots__ = ("age", "main", "pid", "process", "reason", "taken", "values")

    def __init__(self, vm: reader.VM) -> None:
        self.reason: str | None = None
        self.values: Values = {}
        try:
            self.values = vm.reader.some(_NAMES)
        except (FormatError, ReadTimeout) as error:
            if vm.path_given:
                raise
            self.reason = str(error)
        self.pid = vm.pid
        self.main = "-" if self.reason else vm.main
        self.taken = time.monotonic()
        self.process: Process | None = None if vm.path_given or not vm.pid else process(vm.pid)
        if self.process is not None:
            self.age = self.process.uptime_seconds
        else:
            self.age = self.seconds("sun.os.hrt.ticks")

    def number(self, name: str) -> int:
        value = self.values.get(name, 0)
        return value if isinstance(value, int) else 0

    def seconds(self, name: str) -> float:
        """Ticks as seconds."""
        return self.number(name) / (self.number("sun.os.hrt.frequency") or 1_000_000_000)

    def collector(self, number: int) -> tuple[int, float]:
        """Collections, and the seconds they took."""
        name = f"sun.gc.collector.{number}"
        return self.number(f"{name}.invocations"), self.seconds(f"{name}.time")

    def space(self, name: str) -> tuple[int, int]:
        """Bytes used, and committed."""
        return self.number(f"{name}.used"), self.number(f"{name}.capacity")

    @property
    def collections(self) -> tuple[int, float]:
        """All of them, and the seconds they took."""
        numbers, seconds = zip(*map(self.collector, range(3)), strict=True)
        return sum(numbers), sum(seconds)


class Interval:
    """What passed between two samples; from the VM's start to the first one where there is none before."""

    __slots__ = ("cpu", "gc")

    def __init__(self, before: Sample | None, now: Sample) -> None:
        passed = now.age if before is None else now.taken - before.taken
        collecting = now.collections[1] - (0.0 if before is None else before.collections[1])
        self.gc = None if passed <= 0 else collecting / passed
        self.cpu: float | None = None
        if now.process is not None and passed > 0:
            used = now.process.cpu_seconds
            if before is not None and before.process is not None:
                used -= before.process.cpu_seconds
            self.cpu = used / passed


class Field:
    """A field of a line: its name in JSON, its column, its value, and how people read that.

    `spare`: a terminal that is too narrow does without the fields of the largest number first; of 0 all stay.
    """

    __slots__ = ("column", "name", "show", "spare", "value", "width")

    def __init__(
        self,
        name: str,
        title: str,
        value: Callable[[Sample, Interval], int | float | str | None],
        show: Callable[[Any], str],
        spare: int = 0,
    ) -> None:
        self.name = name
        self.column = Column(title, right=show is not str)
        self.value = value
        self.show = show
        self.spare = spare
        self.width = {"UPTIME": 7, "TIME": 7, "MAIN": 4}.get(title, 5)


def _count(value: float) -> str:
    return str(int(value))


def _collector(number: int, title: str, name: str) -> list[Field]:
    return [
        Field(f"{name}_collections", title, lambda s, _: s.collector(number)[0], _count),
        Field(f"{name}_seconds", "TIME", lambda s, _: s.collector(number)[1], _table.duration, 2),
    ]


def _heap(sample: Sample) -> tuple[int, int]:
    """Used and committed bytes of all spaces of all generations."""
    used = sum(sample.number(space + "used") for space in _SPACES)
    return used, sum(sample.number(space + "capacity") for space in _SPACES)


_PID = Field("pid", "PID", lambda s, _: s.pid, str)
_PID.column.right = True
_UPTIME = [Field("uptime_seconds", "UPTIME", lambda s, _: s.age or None, _table.duration)]
_PROCESS = [
    Field("threads", "THR", lambda s, _: None if s.process is None else threads_of(s.values, s.process), _count),
    Field("rss_bytes", "RSS", lambda s, _: None if s.process is None else s.process.rss, _table.size),
    Field("cpu_share", "CPU%", lambda _, i: i.cpu, _table.percent),
]
_MAIN = Field("main", "MAIN", lambda s, _: s.main, str)
_COLLECTING = [Field("gc_share", "GC%", lambda _, i: i.gc, _table.percent)]
_SYSTEM = (_PID, *_UPTIME, *_PROCESS)  # what is known of every process

_FIELDS = {
    CPYTHON: [
        *_UPTIME,
        *_collector(0, "GEN0", "generation_0"),
        *_collector(2, "GEN1", "generation_1"),  # the concurrent collector's place: see docs/counters.md
        *_collector(1, "GEN2", "generation_2"),
        *_COLLECTING,
        *_PROCESS,
        _MAIN,
    ],
    HOTSPOT: [
        *_UPTIME,
        *_collector(0, "YOUNG", "young"),
        *_collector(1, "FULL", "full"),
        *_collector(2, "CONC", "concurrent"),
        *_COLLECTING,
        Field("eden_bytes", "EDEN", lambda s, _: s.space("sun.gc.generation.0.space.0")[0], _table.size, 1),
        Field("old_bytes", "OLD", lambda s, _: s.space("sun.gc.generation.1.space.0")[0], _table.size, 1),
        Field("meta_bytes", "META", lambda s, _: s.space("sun.gc.metaspace")[0], _table.size, 1),
        Field("heap_bytes", "HEAP", lambda s, _: _heap(s)[0], _table.size),
        Field("heap_capacity_bytes", "OF", lambda s, _: _heap(s)[1], _table.size),
        *_PROCESS,
        _MAIN,
    ],
}
_SEVERAL = [
    _PID,
    *_UPTIME,
    Field("collections", "GCS", lambda s, _: s.collections[0], _count),
    *_COLLECTING,
    *_PROCESS,
    _MAIN,
]


def main(args: list[str]) -> int:
    """Shows the lines. 0, also when the VMs end after the first one; what is wrong before that is raised."""
    options, words = _options.parse("stat", args, {"--json": None, "--watch": "2"})
    if not 1 <= len(words) <= 3 or ("--watch" in options and len(words) > 1):
        raise CommandLineError("stat takes a PID, an interval and a count", hint="vmscope stat --help shows an example")
    if len(words) > 1 and words[1].isdecimal() and int(words[1]) >= _PROBABLY_PID:
        raise CommandLineError(
            f"stat takes an interval after the PID, not {words[1]}",
            hint=f"write {words[0]},{words[1]} for both VMs, {words[1]}s for an interval",
        )
    interval = _options.seconds("stat", words[1] if len(words) > 1 else options.get("--watch", "1"))
    endless = len(words) == 2 or "--watch" in options
    left = _options.count("stat", words[2]) if len(words) == 3 else 1
    watched = [Watched(vm) for vm in _targets.vms("stat", words[0])]
    lines: Callable[[Sample, Interval, list[Field]], str] = _as_json
    if "--json" not in options:
        several = len(watched) > 1
        lines = _Lines(_SEVERAL if several else watched[0].fields, _targets.labels() if several else {}).line
    status = 0
    try:
        due = time.monotonic()
        while True:
            watched = [each for each in watched if each.look()]
            for each in watched:
                assert each.now is not None
                terminal.OUT.put(lines(each.now, Interval(each.before, each.now), each.fields))
                status = 0 if each.now.reason is None else 1
            terminal.OUT.flush()
            left -= 1
            if not watched:
                return 0
            if left <= 0 and not endless:
                return status
            due += interval
            time.sleep(max(0.0, due - time.monotonic()))
    except KeyboardInterrupt:
        if not endless:
            raise
        return 0
    finally:
        for each in watched:
            each.vm.close()


class Watched:
    """A VM with its two last samples."""

    __slots__ = ("before", "fields", "now", "vm")

    def __init__(self, vm: reader.VM) -> None:
        self.vm = vm
        self.fields = _FIELDS.get(_kind(vm), [*_UPTIME, *_PROCESS])
        self.before: Sample | None = None
        self.now: Sample | None = None

    def look(self) -> bool:
        """Takes the next sample. False when the VM has ended; raises what is wrong with it the first time."""
        self.before = self.now
        try:
            if self.before is None or self.vm.path_given or self.vm.alive:
                self.now = Sample(self.vm)
                return True
        except (StaleRegion, NoSuchProcess):
            if self.before is None:
                raise
        self.vm.close()
        return False


def _kind(vm: reader.VM) -> str:
    try:
        return vm.kind
    except (FormatError, ReadTimeout):  # each line says so
        return ""


def _values(fields: list[Field], now: Sample, interval: Interval) -> list[Any]:
    return [None if now.reason and field not in _SYSTEM else field.value(now, interval) for field in fields]


def _as_json(now: Sample, interval: Interval, fields: list[Field]) -> str:
    values = zip(fields, _values(fields, now, interval), strict=True)
    return _table.as_json({"pid": now.pid, **{field.name: value for field, value in values}, "reason": now.reason})


class _Lines:
    """Turns samples into lines, with a header before the first and after each screenful."""

    __slots__ = ("_fields", "_labels", "_reason", "_screen", "_since", "_widths")

    def __init__(self, fields: list[Field], labels: dict[int, str]) -> None:
        self._labels = labels
        self._screen = _table.Screen()
        self._fields = _that_fit(fields, self._screen.width)
        longest = max((len(str(pid)) for pid in labels), default=0)
        self._widths = [max(field.width, longest) if field is _PID else field.width for field in self._fields]
        self._since = 0
        self._reason = False  # whether the line before had one

    def line(self, now: Sample, interval: Interval, _: list[Field]) -> str:
        values = _values(self._fields, now, interval)
        if self._fields[-1] is _MAIN:
            values[-1] = self._labels.get(now.pid or 0, now.main)
        cells = [
            ("-" if value is None else field.show(value)).rjust(width if field.column.right else 0)
            for field, value, width in zip(self._fields, values, self._widths, strict=True)
        ]
        columns = [field.column for field in self._fields]
        if now.reason:
            columns.append(_REASON)
            cells.append(now.reason)
        header, line = _table.render(columns, [cells], self._screen).splitlines()
        shown_now = self._since % _REPEAT == 0 or bool(now.reason) != self._reason
        self._since += 1
        self._reason = bool(now.reason)
        return f"{header}\n{line}\n" if shown_now else f"{line}\n"


def _that_fit(fields: list[Field], width: int | None) -> list[Field]:
    """Those for which a terminal has room, with some of it for the last one."""
    for spare in (3, 2, 1):
        fits = [field for field in fields if field.spare < spare]
        if width is None or sum(field.width + 2 for field in fits) <= width:
            break
    return fits
