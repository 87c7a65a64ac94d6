"""What jstat shows of counters by their names: `-list`, `-snap` and `-name`."""

from __future__ import annotations

import re

from vmscope.cli import _jvmstat
from vmscope.errors import CommandLineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.cli._jstat_request import JstatRequest
    from vmscope.reader.machine import VM, Counter

    Listed = Counter | _jvmstat.MadeUp

CONSTANT, STRING = 1, 5  # variability, units
UNITS = ("Invalid", "None", "Bytes", "Ticks", "Events", "String", "Hertz")
VARIABILITY = ("Invalid", "Constant", "Monotonic", "Variable")


def pattern(names: str | None) -> re.Pattern[str]:
    """What the beginning of a name must match: an expression, with commas for alternatives. CommandLineError."""
    try:
        return re.compile("" if names is None else names.replace(",", "|"))
    except re.error as error:
        raise CommandLineError(f"Bad name pattern: {error}") from None


def names(vm: VM, request: JstatRequest) -> str:
    """The names, a line each."""
    return "".join([counter.name + "\n" for counter in _chosen(vm, request)])


def snapshot(vm: VM, request: JstatRequest) -> str:
    """Names and values, a line each."""
    return "".join([_line(counter, request) for counter in _chosen(vm, request)])


def table(vm: VM, request: JstatRequest) -> tuple[str, str, Callable[[], str] | None]:
    """For a column a counter: the constants' lines before it, the header, and what gives the next row.

    There is no row where no column is left.
    """
    chosen = _chosen(vm, request)
    constants = [counter for counter in chosen if counter.variability == CONSTANT]
    columns = [
        counter
        for counter in chosen
        if counter.variability != CONSTANT and (request.strings or counter.units != STRING)
    ]
    preface = "".join([_line(counter, request) for counter in constants]) if request.constants else ""
    if not columns:
        return preface, "", None
    if preface:
        preface += "\n"
    header = "".join([counter.name + " " for counter in columns])

    def row() -> str:
        values: dict[str, int | str] = {counter.name: counter.value for counter in _jvmstat.made_up(vm)}
        values.update(vm.values())
        return " ".join([_value(values[counter.name]) for counter in columns])

    return preface, header, row


def _chosen(vm: VM, request: JstatRequest) -> list[Listed]:
    begins = pattern(request.names).match
    counters: dict[str, Listed] = {counter.name: counter for counter in _jvmstat.made_up(vm)}
    counters.update(vm.counters.items())
    return sorted(
        (
            counter
            for counter in counters.values()
            if (counter.supported or request.unsupported) and begins(counter.name)
        ),
        key=lambda counter: counter.name,
        reverse=request.descending,
    )


def all_values(vm: VM) -> str:
    """What `jcmd PID PerfCounter.print` shows."""
    counters: dict[str, Listed] = {counter.name: counter for counter in _jvmstat.made_up(vm)}
    counters.update(vm.counters.items())
    return "".join([f"{name}={_value(counters[name].value)}\n" for name in sorted(counters)])


def _line(counter: Listed, request: JstatRequest) -> str:
    line = f"{counter.name}={_value(counter.value)}"
    if request.verbose:
        line += f" {UNITS[counter.units]} {VARIABILITY[counter.variability]}"
        line += " Supported" if counter.supported else " Unsupported"
    return line + "\n"


def _value(value: int | str) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
