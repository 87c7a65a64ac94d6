"""`vmscope counters`: a VM's counters, by name."""

from __future__ import annotations

import time

from vmscope import reader, terminal
from vmscope.cli import _options, _table, _targets
from vmscope.cli._table import Column
from vmscope.errors import CommandLineError, StaleRegion, VMScopeError
from vmscope.native import FLOAT
from vmscope.wire import floats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Values = dict[str, int | float | str]

HELP = """\
usage: vmscope counters [--json] [--watch[=SECONDS]] PID[,PID...]|NAME
                        [COUNTER ...]

Shows VMs' counters with their values and units, sorted by name. A COUNTER is
one's name, the beginning of some up to a dot, or a pattern with * ? and [];
more of them show what any of them matches.

  --json           one JSON object, name to value, instead of the table; of
                   several VMs such an object for each pid
  --watch[=2]      repeat every 2 seconds, or that many, with each number's
                   change a second

NAME stands for each VM whose program has it in its name, and its workers. PID
may also be file:PATH, a saved region.

example:
$ vmscope counters 4711 shop sun.gc.collector.0
COUNTER                         VALUE
shop.sales                             538
sun.gc.collector.0.invocations       2,339 events
sun.gc.collector.0.name         generation 0
sun.gc.collector.0.time         17,212,578 ticks
$ vmscope counters 4711,4712 shop.sales
COUNTER      PID  VALUE
shop.sales  4711  538
shop.sales  4712   41
"""

UNITS = {1: "", 2: "bytes", 3: "ticks", 4: "events", 5: "", 6: "Hz"}


class Watched:
    """A VM with its two last looks: the values that are wanted, when they were taken, and all units."""

    __slots__ = ("before", "now", "taken", "units", "vm", "was_taken")

    def __init__(self, vm: reader.VM) -> None:
        self.vm = vm
        self.now: Values | None = None
        self.taken = 0.0

    @property
    def title(self) -> str:
        return str(self.vm.pid) if self.vm.pid else self.vm.path

    def look(self, wanted: Callable[[str], bool]) -> bool:
        """False when the VM has ended since the first look; StaleRegion where that was before it."""
        self.before, self.was_taken = self.now, self.taken
        if self.before is not None and not self.vm.path_given and not self.vm.alive:
            return False
        self.taken = time.monotonic()
        try:
            self.units = {name.removesuffix(FLOAT): UNITS[counter.units] for name, counter in self.vm.counters.items()}
            values = floats.with_floats(self.vm.values())
            self.now = {name: value for name, value in sorted(values.items(), key=_place) if wanted(name)}
        except StaleRegion:
            if self.before is None:
                raise
            return False
        return True

    def change(self, name: str) -> str:
        """How fast a number has changed since the look before; nothing where it has not."""
        if self.before is None or self.now is None or self.taken <= self.was_taken:
            return ""
        value, old = self.now.get(name), self.before.get(name)
        if isinstance(value, str | None) or isinstance(old, str | None) or value == old:
            return ""
        return f"{(value - old) / (self.taken - self.was_taken):+,.1f}"


def main(args: list[str]) -> int:
    """Shows the counters. 0; raises what is wrong with a VM, or that no counter is called so."""
    options, words = _options.parse("counters", args, {"--json": None, "--watch": "2"})
    if not words:
        raise CommandLineError("counters takes a PID", hint="vmscope counters --help shows an example")
    pause = _options.seconds("counters", options["--watch"]) if "--watch" in options else 0.0
    target, names = words[0], words[1:]
    if names and names[0].isdigit():
        hint = f"write --watch={target}" if "--watch" in options else f"write {target},{names[0]} for both VMs"
        raise CommandLineError(f"counters takes a counter's name, not {names[0]}", hint=hint)
    screen = _table.Screen()
    wanted = matcher(names)
    watched = [Watched(vm) for vm in _targets.vms("counters", target)]
    first = True
    try:
        while True:
            watched = [each for each in watched if each.look(wanted)]
            if not watched:
                return 0
            if not any(each.now for each in watched):
                raise VMScopeError(
                    f"no counter of {target} is called {' or '.join(names)}",
                    hint=f"vmscope counters {target} lists them all",
                )
            if pause and not first and "--json" not in options:
                screen.clear()
            terminal.OUT.put(_json(watched) if "--json" in options else _text(watched, screen, watching=bool(pause)))
            if not pause:
                return 0
            terminal.OUT.flush()
            first = False
            time.sleep(pause)
    except KeyboardInterrupt:
        if not pause:
            raise
        return 0
    finally:
        for each in watched:
            each.vm.close()


def _json(watched: list[Watched]) -> str:
    found = {each.title: {name: _in_json(value) for name, value in (each.now or {}).items()} for each in watched}
    return _table.as_json(found if len(watched) > 1 else found[watched[0].title])


def _in_json(value: float | str) -> float | str:
    """JSON has no infinite numbers."""
    return value if isinstance(value, str) or abs(value) < float("inf") else str(value)


def _place(item: tuple[str, int | float | str]) -> tuple[str, list[tuple[float, str]]]:
    """Where a counter stands: by name, then by its labels, numbers among these by size (`le="2.5"`, `le="10.0"`)."""
    name, _, labels = item[0].partition("{")
    return name, [_number(part) for part in labels.split('"')]


def _number(text: str) -> tuple[float, str]:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    return (number, "") if number == number else (float("inf"), text)


def matcher(names: list[str]) -> Callable[[str], bool]:
    """Whether a counter is one of those asked for: all of them where none is."""
    if not names:
        return lambda _: True
    from fnmatch import fnmatchcase

    def matches(counter: str) -> bool:
        return any(counter == name or counter.startswith(name + ".") or fnmatchcase(counter, name) for name in names)

    return matches


def _text(watched: list[Watched], screen: _table.Screen, *, watching: bool) -> str:
    several = len(watched) > 1
    names = dict(sorted({name: 0 for each in watched for name in each.now or ()}.items(), key=_place))
    numbers = [f"{value:,}" for each in watched for value in (each.now or {}).values() if not isinstance(value, str)]
    width = max(map(len, numbers), default=0)
    columns = [Column("COUNTER"), Column("PID", right=True), Column("A SECOND", right=True), Column("VALUE")]
    shown = [True, several, watching, True]
    rows = [
        [name, each.title, each.change(name), _shown(each.now[name], each.units.get(name, ""), width)]
        for name in names
        for each in watched
        if each.now is not None and name in each.now
    ]
    return _table.render(
        [column for column, there in zip(columns, shown, strict=True) if there],
        [[cell for cell, there in zip(row, shown, strict=True) if there] for row in rows],
        screen,
    )


def _shown(value: int | float | str, unit: str, width: int) -> str:
    """A value with its unit. Texts may be long and have none: they do not push the units of numbers aside."""
    return value if isinstance(value, str) else f"{f'{value:,}':>{width}} {unit}".rstrip()
