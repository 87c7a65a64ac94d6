"""`vmscope stat`: what one VM is doing, a line each interval."""

from __future__ import annotations

import time

from vmscope import reader, terminal
from vmscope.cli import _options, _table
from vmscope.cli._table import Column
from vmscope.errors import CommandLineError, FormatError, NoSuchProcess, ReadTimeout, StaleRegion
from vmscope.reader.machine import CPYTHON, HOTSPOT
from vmscope.reader.process import Process, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Values = dict[str, int | str]

HELP = """\
usage: vmscope stat [--json] PID [INTERVAL [COUNT]]

Shows what a VM is doing: its collector, threads, memory and processor. Without INTERVAL once, since the
VM's start; with it (2, 0.5, 2s, 500ms) again and again, COUNT times or until Ctrl-C or the VM's end.

  --json           one JSON object a line, exact numbers, times in seconds and sizes in bytes
  --watch[=2]      the same as INTERVAL

PID may also be file:PATH, a saved region.

A Python VM: GEN0, GEN1 and GEN2 are collections of each generation, each followed by the time they took. A
JVM: YOUNG, FULL and CONC are collections, EDEN, OLD and META how much is used, HEAP of how much. GC% and
CPU% are shares of the time since the line before, in the first line since the VM's start. Of a VM whose region
cannot be read there is what the system knows, dashes for the rest, and the REASON.

example:
$ vmscope stat 4711 1 3
 UPTIME   GEN0     TIME   GEN1     TIME   GEN2     TIME    GC%  THREADS    RSS   CPU%
  9.11s   1892   12.9ms    146    6.7ms    145   90.9ms   1.2%        2  11.4M   2.3%
  10.1s   2105   14.3ms    162    7.4ms    161   99.4ms   1.1%        2  11.4M   2.0%
  11.2s   2330   17.2ms    180    8.2ms    178    109ms   1.3%        2  11.4M   1.9%
$ vmscope stat 4830
 UPTIME  YOUNG     TIME   FULL     TIME   CONC     TIME    GC%   EDEN    OLD   META   HEAP     OF  THREADS    RSS   CPU%
  11.3s     14   23.4ms      0       0s      0       0s   0.2%   5.0M  15.9M  77.0K  21.4M  64.0M       20  92.5M   1.3%
"""

_REPEAT = 20  # lines between headers
_REASON = Column("REASON")


# What is shown, of either kind of VM: the counters of collectors, heap and clock.
_SPACES = tuple(f"sun.gc.generation.{generation}.space.{space}." for generation in range(3) for space in range(5))
_NAMES = (
    *("sun.os.hrt.ticks", "sun.os.hrt.frequency", "sun.gc.metaspace.used", "sun.gc.metaspace.capacity"),
    *(f"sun.gc.collector.{number}.{what}" for number in range(3) for what in ("invocations", "time")),
    *(space + what for space in _SPACES for what in ("used", "capacity")),
)


class Sample:
    """A VM's values and its process at one moment; `age` is the VM's, in seconds, where it is known.

    `reason` is why there are no values.
    """

    __slots__ = ("age", "process", "reason", "taken", "values")

    def __init__(self, vm: reader.VM) -> None:
        self.reason: str | None = None
        self.values: Values = {}
        try:
            self.values = vm.reader.some(_NAMES)
        except (FormatError, ReadTimeout) as error:
            if vm.path_given:
                raise
            self.reason = str(error)
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
    def collecting(self) -> float:
        """Seconds in collections, of all kinds."""
        return sum(self.collector(number)[1] for number in range(3))


class Interval:
    """What passed between two samples; from the VM's start to the first one where there is none before."""

    __slots__ = ("cpu", "gc")

    def __init__(self, before: Sample | None, now: Sample) -> None:
        passed = now.age if before is None else now.taken - before.taken
        collecting = now.collecting - (0.0 if before is None else before.collecting)
        self.gc = None if passed <= 0 else collecting / passed
        self.cpu: float | None = None
        if now.process is not None and passed > 0:
            used = now.process.cpu_seconds
            if before is not None and before.process is not None:
                used -= before.process.cpu_seconds
            self.cpu = used / passed


class Field:
    """A field of a line: its name in JSON, its column, its value, and how people read that."""

    __slots__ = ("column", "name", "show", "value")

    def __init__(
        self,
        name: str,
        title: str,
        value: Callable[[Sample, Interval], int | float | None],
        show: Callable[[float], str],
    ) -> None:
        self.name = name
        self.column = Column(title, right=True)
        self.value = value
        self.show = show


def _count(value: float) -> str:
    return str(int(value))


def _collector(number: int, title: str, name: str) -> list[Field]:
    return [
        Field(f"{name}_collections", title, lambda s, _: s.collector(number)[0], _count),
        Field(f"{name}_seconds", "TIME", lambda s, _: s.collector(number)[1], _table.duration),
    ]


def _heap(sample: Sample) -> tuple[int, int]:
    """Used and committed bytes of all spaces of all generations."""
    used = sum(sample.number(space + "used") for space in _SPACES)
    return used, sum(sample.number(space + "capacity") for space in _SPACES)


_UPTIME = [Field("uptime_seconds", "UPTIME", lambda s, _: s.age or None, _table.duration)]
_PROCESS = [
    Field("threads", "THREADS", lambda s, _: None if s.process is None else s.process.threads, _count),
    Field("rss_bytes", "RSS", lambda s, _: None if s.process is None else s.process.rss, _table.size),
    Field("cpu_share", "CPU%", lambda _, i: i.cpu, _table.percent),
]
_COLLECTING = [Field("gc_share", "GC%", lambda _, i: i.gc, _table.percent)]

_FIELDS = {
    CPYTHON: [
        *_UPTIME,
        *_collector(0, "GEN0", "generation_0"),
        *_collector(2, "GEN1", "generation_1"),  # the concurrent collector's place: see docs/counters.md
        *_collector(1, "GEN2", "generation_2"),
        *_COLLECTING,
        *_PROCESS,
    ],
    HOTSPOT: [
        *_UPTIME,
        *_collector(0, "YOUNG", "young"),
        *_collector(1, "FULL", "full"),
        *_collector(2, "CONC", "concurrent"),
        *_COLLECTING,
        Field("eden_bytes", "EDEN", lambda s, _: s.space("sun.gc.generation.0.space.0")[0], _table.size),
        Field("old_bytes", "OLD", lambda s, _: s.space("sun.gc.generation.1.space.0")[0], _table.size),
        Field("meta_bytes", "META", lambda s, _: s.space("sun.gc.metaspace")[0], _table.size),
        Field("heap_bytes", "HEAP", lambda s, _: _heap(s)[0], _table.size),
        Field("heap_capacity_bytes", "OF", lambda s, _: _heap(s)[1], _table.size),
        *_PROCESS,
    ],
}


def main(args: list[str]) -> int:
    """Shows the lines. 0, also when the VM ends after the first one; what is wrong before that is raised."""
    options, words = _options.parse("stat", args, {"--json": None, "--watch": "2"})
    if not 1 <= len(words) <= 3 or ("--watch" in options and len(words) > 1):
        raise CommandLineError("stat takes a PID, an interval and a count", hint="vmscope stat --help shows an example")
    interval = _options.seconds("stat", words[1] if len(words) > 1 else options.get("--watch", "1"))
    endless = len(words) == 2 or "--watch" in options
    left = _options.count("stat", words[2]) if len(words) == 3 else 1
    with reader.vm(words[0]) as vm:
        fields = _FIELDS.get(_kind(vm), [*_UPTIME, *_PROCESS])
        lines = _Lines(fields, json="--json" in options)
        before: Sample | None = None
        try:
            due = time.monotonic()
            while True:
                if before is not None and not vm.path_given and not vm.alive:
                    return 0
                try:
                    now = Sample(vm)
                except (StaleRegion, NoSuchProcess):
                    if before is None:
                        raise
                    return 0
                terminal.OUT.put(lines.line(now, Interval(before, now)))
                terminal.OUT.flush()
                before = now
                left -= 1
                if left <= 0 and not endless:
                    return 0 if now.reason is None else 1
                due += interval
                time.sleep(max(0.0, due - time.monotonic()))
        except KeyboardInterrupt:
            if not endless:
                raise
            return 0


def _kind(vm: reader.VM) -> str:
    try:
        return vm.kind
    except (FormatError, ReadTimeout):  # each line says so
        return ""


class _Lines:
    """Turns samples into lines, with a header before the first and after each screenful."""

    __slots__ = ("_fields", "_json", "_reason", "_screen", "_since", "_widths")

    def __init__(self, fields: list[Field], *, json: bool) -> None:
        self._fields = fields
        self._json = json
        self._screen = _table.Screen()
        self._since = 0
        self._reason = False  # whether the line before had one
        self._widths = [7 if field.column.title in ("UPTIME", "TIME") else 5 for field in fields]

    def line(self, now: Sample, interval: Interval) -> str:
        system = (*_UPTIME, *_PROCESS)  # known of every process
        values = [None if now.reason and field not in system else field.value(now, interval) for field in self._fields]
        if self._json:
            shown = {field.name: value for field, value in zip(self._fields, values, strict=True)}
            return _table.as_json({**shown, "reason": now.reason})
        cells = [
            ("-" if value is None else field.show(value)).rjust(width)
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
