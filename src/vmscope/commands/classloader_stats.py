"""VM.classloader_stats: Python's loaders, and what each has loaded from where."""

from __future__ import annotations

import os
import sys

from vmscope.commands.modules import Module, modules, type_name
from vmscope.commands.registry import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from vmscope.commands.registry import Output


class LoaderRow:
    """What one kind of loader has loaded from one entry of `sys.path`."""

    __slots__ = ("bytes", "classes", "modules")

    def __init__(self) -> None:
        self.modules = self.classes = self.bytes = 0


def run(out: Output) -> None:
    rows: dict[tuple[str, str], LoaderRow] = {}
    homes: dict[str, LoaderRow] = {}
    entries = sorted((str(entry) for entry in sys.path if entry), key=len, reverse=True)
    for module in modules():
        loader = type_name(module.loader) if module.loader is not None else "none"
        row = homes[module.name] = rows.setdefault((loader, place(module, entries)), LoaderRow())
        row.modules += 1
    other = LoaderRow()
    for kind in classes():
        home = type.__dict__["__module__"].__get__(kind)
        row = homes.get(home, other) if isinstance(home, str) else other
        row.classes += 1
        row.bytes += type.__sizeof__(kind)
    out.write("Modules Classes      Bytes Loader                 From\n")
    for (loader, origin), row in sorted(rows.items(), key=lambda item: -item[1].modules):
        out.write(f"{row.modules:>7} {row.classes:>7} {row.bytes:>10} {loader:<22} {origin}\n")
    if other.classes:
        out.write(f"{0:>7} {other.classes:>7} {other.bytes:>10} {'-':<22} <in no module>\n")
    everything = [*rows.values(), other]
    count, number, size = (sum(getattr(row, name) for row in everything) for name in ("modules", "classes", "bytes"))
    out.write(f"Total = {len(rows)}: {count} modules, {number} classes, {size} bytes\n")
    out.write("Bytes: of the classes themselves, without what they refer to\n")


def place(module: Module, entries: list[str]) -> str:
    """The entry of `sys.path` that a module came from."""
    if not module.file.startswith(os.sep):
        return "-"
    return next((entry for entry in entries if module.file.startswith(entry + os.sep)), os.path.dirname(module.file))


def classes() -> Iterator[type]:
    """Every class, without a word to any metaclass."""
    seen = {id(object)}
    todo = [object]
    while todo:
        kind = todo.pop()
        yield kind
        for sub in type.__subclasses__(kind):
            if id(sub) not in seen:
                seen.add(id(sub))
                todo.append(sub)


COMMANDS = (
    Command(
        "VM.classloader_stats",
        "The loaders of modules: how many modules and classes each has loaded, and from where.",
        run,
    ),
)
