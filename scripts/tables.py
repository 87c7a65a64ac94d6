"""Writes what the documentation says about counters, VM options and commands, out of the tables in the code.

    python scripts/tables.py            bring the pages up to date
    python scripts/tables.py --check    exit status 1, naming them, when one is not

Only what stands between a page's `<!-- begin generated -->` and `<!-- end generated -->` is written; the rest of a
page is by hand. A sub-command without a page gets one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import tool_tables

import vmscope.cli
from vmscope.cli import COMMANDS
from vmscope.commands.help import syntax
from vmscope.commands.registry import TABLE, find
from vmscope.counters.catalogue import CATALOGUE
from vmscope.export import own, standard
from vmscope.export.model import Family
from vmscope.flags import FLAGS, spelling
from vmscope.flight.catalogue import EVENTS
from vmscope.flight.settings import NAMES, OPTIONS, Settings
from vmscope.flight.sources import WRITTEN
from vmscope.flight.types import EVENT_TYPES, Field
from vmscope.instruments import INSTRUMENTS
from vmscope.services.naming import WAYS
from vmscope.tool.jni.java_classes import CLASSES
from vmscope.tool.model.introspection import signature
from vmscope.wire.codes import Units

DOCS = Path(__file__).parents[1] / "docs"
Row = tuple[str, str, int, str, str, str, str]
BEGIN = "<!-- begin generated -->\n"
END = "<!-- end generated -->\n"

# What a counter costs, by who feeds it.
COSTS = {
    "once": "once",
    "mirror": "each visit of the mirror",
    "collection": "each collection",
    "import": "each import",
    "sample": "each sample",
    "scan": "some samples",
    "visit": "each sample, GIL",
    "event": "each event",
    "timer": "ten times a second",
}


def table(*rows: Iterable[str]) -> str:
    """A Markdown table; the first row is its heading."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows]
    columns = len(list(rows[0]))
    return "".join([lines[0], "|" + "---|" * columns + "\n", *lines[1:]])


def counters(rows: Iterable[Row]) -> str:
    def cells(name: str, kind: str, units: int, feed: str, since: str, source: str, meaning: str) -> tuple[str, ...]:
        if feed.startswith("="):
            return f"`{name}`", meaning, f"alias of `{feed[1:]}`"
        unit = "" if units in (Units.NONE, Units.STRING) else f" of {Units(units).name.lower()}"
        cost = COSTS[feed.partition(":")[0]]
        return f"`{name}`", meaning, f"{kind}{unit}; {cost}; {source}" + (f"; from {since} on" if since else "")

    return table(("name", "meaning", "kind; when it is updated; source"), *(cells(*row) for row in rows))


def options() -> str:
    def row(name: str, default: bool | int | str, low: int, high: int, text: str) -> tuple[str, str, str, str]:
        written = f"`{spelling(name, default)}`"
        if isinstance(default, bool):
            return written, "on" if default else "off", "", text
        if isinstance(default, int):
            return written, f"{default}", f"{low} to {high}", text
        return written, default or "none", "", text

    return table(("option", "default", "range", "what it does"), *(row(*flag) for flag in FLAGS))


def instruments() -> str:
    """A table of all, then one of each one's counters; those of gunicorn and uvicorn are the same."""
    text = table(("name", "what it counts"), *((f"`{name}`", counts) for name, _, counts in INSTRUMENTS))
    homes: dict[tuple[Row, ...], list[str]] = {}
    for name, _, _ in INSTRUMENTS:
        homes.setdefault(import_module(f"vmscope.instruments.{name}").ROWS, []).append(name)
    homes.pop((), None)  # whose counters are the program's own
    for rows, names in homes.items():
        text += f"\n## {', '.join(names)}\n\n{counters(rows)}"
    return text


def java_classes() -> str:
    """What stands for which names, in one row for each class of Python's."""
    by_class: dict[type, list[str]] = {}
    for name, klass in CLASSES.items():
        by_class.setdefault(klass, []).append(f"`{name}`")
    rows = ((", ".join(names), f"`{signature(klass)}`") for klass, names in by_class.items())
    return table(("`FindClass` of", "finds"), *rows)


def diagnostic_commands() -> str:
    """A table of all, then what each takes that takes anything."""
    found = [command for name in TABLE if (command := find(name)) is not None]
    text = table(
        ("command", "what it does", "impact"),
        *((f"`{each.name}`", each.description, each.impact) for each in found),
    )
    for each in found:
        if each.arguments:
            rows = (
                (f"`{one.name}`", one.type, f"`{one.default}`" if one.default else "", one.description)
                for one in each.arguments
            )
            heading = ("argument", "type", "default", "what it says")
            text += f"\n### {each.name}\n\n`{syntax(each).partition(': ')[2]}`\n\n{table(heading, *rows)}"
    return text


def flight_recorder() -> str:
    """The options of settings; then the events of each category, with what `default` and `profile` say."""
    rows = (
        (f"`{name}`", ", ".join(option.choices) or "a timespan", f"`{option.default}`", f"`{option.profile}`")
        for name, option in OPTIONS.items()
    )
    text = f"### Options\n\n{table(('option', 'choices', 'default', 'profile'), *rows)}\n## Event types\n"
    default, profile = Settings(["default"]).values, Settings(["profile"]).values
    for category in EVENTS:
        rows = (
            (
                f"`{name}`",
                ", ".join(map(_flight_field, each.fields[1:])),
                _flight_settings(name, default.get(name, {})),
                _flight_settings(name, profile.get(name, {})),
            )
            for name, each in EVENT_TYPES.items()
            if each.category == category
        )
        text += f"\n### {category}\n\n{table(('event', 'fields, after `startTime`', 'default', 'profile'), *rows)}"
    return text


def _flight_field(field: Field) -> str:
    kind = field.type.rpartition(".")[2]
    return (
        f"`{field.name}`"
        if field.name[0].lower() + field.name[1:] == kind[0].lower() + kind[1:]
        else (f"`{field.name}` {kind}")
    )


def _flight_settings(name: str, values: dict[str, str]) -> str:
    if name not in WRITTEN:
        return "-"
    if values.get("enabled") != "true":
        return "off"
    return ", ".join(f"{name} {values[name]}" for name in NAMES[1:] if name in values) or "on"


def metrics() -> str:
    """What names a service; the metrics, the same of several kinds of VM in one row."""

    def cells(family: Family, vms: str, labels: str, mode: str, counters: str) -> tuple[str, ...]:
        name = family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
        return (
            f"`{name}`",
            family.type,
            labels,
            vms,
            mode,
            counters,
            family.otel.name if family.otel else "",
            family.help,
        )

    found: dict[str, list[standard.Row]] = {}
    for row in standard.ROWS:
        found.setdefault(row.family.name, []).append(row)
    lines = []
    for rows in found.values():
        first = rows[0]
        counters = "; ".join(" ".join(f"`{name}`" for names in row.sources for name in names) for row in rows)
        vms = ", ".join(row.vms for row in rows)
        lines.append(cells(first.family, vms, ", ".join(name for name, _ in first.labels), first.mode, counters))
    for name, (family, mode) in standard.OTHERS.items():
        lines.append(cells(family, standard.PYTHON, "", mode, f"`{name}`"))
    for family in (standard.PYTHON_INFO, standard.JVM_INFO, standard.VMS, *own.FAMILIES):
        lines.append(cells(family, "", "", "", ""))
    headings = ("metric", "type", "labels", "VMs", "of several VMs", "counters", "OpenTelemetry", "meaning")
    ways = table(("way", "the name is"), *((f"`{way}`", meaning) for way, meaning in WAYS))
    return f"{ways}\n{table(headings, *lines)}"


def command(name: str) -> str:
    help_text: str = import_module(f"vmscope.cli.{name}").HELP
    return f"```text\n{help_text.rstrip()}\n```\n"


def pages() -> Iterator[tuple[Path, str, str]]:
    """Each page, the title it starts with when it is new, and its generated part."""
    yield DOCS / "counters.md", "Counters", counters(CATALOGUE)
    yield DOCS / "instruments.md", "Instruments", instruments()
    yield DOCS / "export.md", "Export", metrics()
    yield DOCS / "options.md", "VM options", options()
    yield DOCS / "flight-recorder-reference.md", "The flight recorder: reference", flight_recorder()
    yield DOCS / "diagnostic-commands.md", "Diagnostic commands", diagnostic_commands()
    for name, title, generated in tool_tables.pages(table):
        yield DOCS / f"{name}.md", title, generated
    yield DOCS / "native-agents.md", "Native agents", java_classes()
    for name, purpose in COMMANDS:
        if not (Path(vmscope.cli.__file__).parent / f"{name}.py").exists():
            continue
        title = f"vmscope {name}\n\n{purpose[0].upper()}{purpose[1:]}."
        yield DOCS / "commands" / f"{name}.md", title, command(name)


def updated(page: str, generated: str) -> str:
    """The page with its generated part replaced. ValueError when it has no place for one."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"no {BEGIN.strip()} and {END.strip()} in it")
    return f"{head}{BEGIN}\n{generated}\n{END}{tail}"


def main(arguments: list[str]) -> int:
    check = arguments == ["--check"]
    stale = []
    for path, title, generated in pages():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        new = updated(old or f"# {title}\n\n{BEGIN}{END}", generated)
        if new != old:
            stale.append(str(path.relative_to(DOCS.parent)))
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(new, encoding="utf-8")
    if stale:
        print(f"{'out of date, run make tables' if check else 'written'}: {', '.join(stale)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
