"""`vmscope counters`: a VM's counters, by name."""

from __future__ import annotations

import time

from vmscope import reader, terminal
from vmscope.cli import _options, _table
from vmscope.cli._table import Column
from vmscope.errors import CommandLineError, StaleRegion, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Values = dict[str, int | str]

HELP = """\
usage: vmscope counters [--json] [--watch[=SECONDS]] PID [NAME ...]

Shows a VM's counters with their values and units, sorted by name. A NAME is a counter's, the beginning of
some up to a dot, or a pattern with * ? and []; more of them show what any of them matches.

  --json           one JSON object, name to value, instead of the table
  --watch[=2]      again and again, every so many seconds, with each number's change a second

PID may also be file:PATH, a saved region.

example:
$ vmscope counters 4711 shop sun.gc.collector.0
COUNTER                         VALUE
shop.sales                             538
sun.gc.collector.0.invocations       2,339 events
sun.gc.collector.0.name         generation 0
sun.gc.collector.0.time         17,212,578 ticks
"""

UNITS = {1: "", 2: "bytes", 3: "ticks", 4: "events", 5: "", 6: "Hz"}


def main(args: list[str]) -> int:
    """Shows the counters. 0; raises what is wrong with the VM, or that no counter is called so."""
    options, words = _options.parse("counters", args, {"--json": None, "--watch": "2"})
    if not words:
        raise CommandLineError("counters takes a PID", hint="vmscope counters --help shows an example")
    pause = _options.seconds("counters", options["--watch"]) if "--watch" in options else 0.0
    target, names = words[0], words[1:]
    if names and names[0].isdigit():
        hint = f"write --watch={target}" if "--watch" in options else "give one PID"
        raise CommandLineError(f"counters shows one VM, not {target} and {names[0]}", hint=hint)
    screen = _table.Screen()
    with reader.vm(target) as vm:
        wanted = matcher(names)
        before: tuple[float, Values] | None = None
        try:
            while True:
                taken = time.monotonic()
                try:
                    units = {name: UNITS[counter.units] for name, counter in vm.counters.items()}
                    values = {name: value for name, value in sorted(vm.values().items(), key=_place) if wanted(name)}
                except StaleRegion:
                    if before is None:
                        raise
                    return 0
                if not values:
                    raise VMScopeError(
                        f"no counter of {target} is called {' or '.join(names)}",
                        hint=f"vmscope counters {target} lists them all",
                    )
                if pause and before is not None and "--json" not in options:
                    screen.clear()
                if "--json" in options:
                    terminal.OUT.put(_table.as_json(values))
                else:
                    terminal.OUT.put(_text(values, units, before, taken, screen, watching=bool(pause)))
                if not pause:
                    return 0
                terminal.OUT.flush()
                before = taken, values
                time.sleep(pause)
                if not vm.path_given and not vm.alive:
                    return 0
        except KeyboardInterrupt:
            if not pause:
                raise
            return 0


def _place(item: tuple[str, int | str]) -> tuple[str, list[tuple[float, str]]]:
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


def _text(
    values: Values,
    units: dict[str, str],
    before: tuple[float, Values] | None,
    taken: float,
    screen: _table.Screen,
    *,
    watching: bool,
) -> str:
    numbers = {name: f"{value:,}" for name, value in values.items() if not isinstance(value, str)}
    width = max((len(text) for text in numbers.values()), default=0)
    rows = []
    for name, value in values.items():
        # Texts may be long and have no unit: they do not push the units of numbers aside.
        shown = value if isinstance(value, str) else f"{numbers[name]:>{width}} {units.get(name, '')}".rstrip()
        rows.append([name, _change(value, name, before, taken), shown] if watching else [name, shown])
    columns = [Column("COUNTER"), Column("VALUE")]
    if watching:
        columns.insert(1, Column("A SECOND", right=True))
    return _table.render(columns, rows, screen)


def _change(value: int | str, name: str, before: tuple[float, Values] | None, taken: float) -> str:
    """How fast a number has changed since the picture before; nothing where it has not."""
    if before is None or taken <= before[0]:
        return ""
    old = before[1].get(name)
    if not isinstance(value, int) or not isinstance(old, int) or value == old:
        return ""
    return f"{(value - old) / (taken - before[0]):+,.1f}"
