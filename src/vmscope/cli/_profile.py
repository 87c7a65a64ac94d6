"""What `profile`, `convert` and `diff` share: their options, their output, a table of functions for the terminal."""

from __future__ import annotations

import os
import re

from vmscope import terminal
from vmscope.cli import _table
from vmscope.errors import CommandLineError
from vmscope.flight.convert import modes, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from vmscope.flight.convert.profile import Function, Profile

MODE_HELP = "\n".join(f"      {name:<12}{mode.about}" for name, mode in modes.MODES.items())

_SECOND = 10**9
_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
_TOP = 10  # functions that are shown


def wrong(command: str, what: str) -> CommandLineError:
    return CommandLineError(f"{command} {what}", hint=f"vmscope {command} --help shows what it takes")


def mode_of(command: str, given: dict[str, str]) -> str:
    """--mode. CommandLineError."""
    mode = given.get("--mode", "cpu")
    if mode not in modes.MODES:
        raise wrong(command, f"does not take --mode={mode}: use {', '.join(modes.MODES)}")
    return mode


def window_of(command: str, given: dict[str, str]) -> modes.Window:
    """--thread, --from, --to. CommandLineError."""
    from fnmatch import fnmatchcase

    pattern = given.get("--thread", "*")
    begin, end = (_moment(command, given[name]) if name in given else None for name in ("--from", "--to"))
    return modes.Window(begin, end, lambda name: fnmatchcase(name, pattern))


def _moment(command: str, text: str) -> int:
    """`90`, `90s`, `1.5m` after the recording's beginning; or a time of the day's, as ISO 8601 has it."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)?", text)
    if found:
        return int(float(found[1]) * _UNITS[found[2] or ""] * _SECOND)
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text).timestamp() * _SECOND)
    except (ValueError, OverflowError, OSError):
        raise wrong(command, f"does not take {text!r} as a time: use 90s, 1.5m or 2026-11-23T06:48:05") from None


def check_output(command: str, path: str, *kinds: str) -> None:
    """CommandLineError where a file's name does not say what it is to be."""
    if output.ending(path) not in kinds:
        raise wrong(command, f"cannot tell what {path!r} is to be: its name ends in one of {', '.join(kinds)}")


def show(text: str) -> None:
    terminal.OUT.show(text)


def show_table(text: str) -> None:
    """What the table's own rule has been applied to, cell by cell."""
    terminal.OUT.put(text)


def written(path: str, about: str) -> None:
    """Says what has been written."""
    terminal.OUT.show(f"{terminal.printable(path)}: {terminal.printable(about)}\n")


def title_of(recordings: Sequence[str]) -> str:
    """Of a page made of them."""
    names = [os.path.basename(path).removesuffix(output.RECORDING) for path in recordings]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def save(profile: Profile, path: str, title: str) -> None:
    """Writes a file in another format than a recording's, and says so."""
    about = output.summary(profile)
    output.write(profile, path, title, about)
    written(path, about)


def top(profile: Profile) -> str:
    """The functions with the largest weights of their own; where it is about classes, these too."""
    text = f"{output.summary(profile)}\n\n"
    functions = profile.functions()
    text += _functions(profile, functions[: max(1, min(_TOP, sum(each.own > 0 for each in functions)))])
    types = profile.types()
    if types:
        columns = [_table.Column("SELF", right=True), _table.Column("SELF%", right=True), _table.Column("CLASS")]
        total = profile.total or 1
        rows = [
            [output.amount(each.own, profile.unit), _table.percent(each.own / total), each.name]
            for each in types[:_TOP]
        ]
        text += f"\n{_table.render(columns, rows, _table.Screen())}"
    return text


def _functions(profile: Profile, functions: Sequence[Function]) -> str:
    titles = ("SELF", "SELF%", "TOTAL%")
    columns = [_table.Column(title, right=True) for title in titles] + [_table.Column("FUNCTION")]
    total = profile.total or 1
    rows = [
        [output.amount(each.own, profile.unit), _table.percent(each.own / total), _table.percent(each.total / total),
         each.name]
        for each in functions
    ]  # fmt: skip
    return _table.render(columns, rows, _table.Screen())


def changes(before: Profile, after: Profile) -> str:
    """The functions whose shares have changed most."""
    shares: list[dict[str, tuple[float, float]]] = []
    for profile in (before, after):
        total = profile.total or 1
        shares.append({each.name: (each.own / total, each.total / total) for each in profile.functions()})
    none = (0.0, 0.0)
    found = []
    for name in {**shares[0], **shares[1]}:
        old, new = shares[0].get(name, none), shares[1].get(name, none)
        found.append((new[0] - old[0], new[1] - old[1], old[0], new[0], name))
    found.sort(key=lambda each: (-abs(each[0]), -abs(each[1]), each[4]))
    titles = ("CHANGE", "BEFORE", "AFTER", "TOTAL CHANGE")
    columns = [_table.Column(title, right=True) for title in titles] + [_table.Column("FUNCTION")]
    rows = [
        [_points(own), _table.percent(old), _table.percent(new), _points(total), name]
        for own, total, old, new, name in found[:_TOP]
    ]
    return _table.render(columns, rows, _table.Screen())


def _points(change: float) -> str:
    return f"{change * 100:+.1f}"
