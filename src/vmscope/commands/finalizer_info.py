"""GC.finalizer_info: what waits to be finalized, and what will be.

Python finalizes an object as soon as it is found to be unreachable, so that nothing waits but what `gc.garbage` keeps.
"""

from __future__ import annotations

import gc
import sys

from vmscope import native
from vmscope.commands.registry import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from vmscope.commands.registry import Output


def run(out: Output) -> None:
    garbage = [type(each) for each in gc.garbage]
    if garbage:
        out.write("Unreachable instances waiting for finalization\n")
        table(out, map(name_of, garbage), "class name")
    else:
        out.write("No instances waiting for finalization found\n")
    out.write("\nLive instances that have a finalizer\n")
    table(out, map(name_of, finalizable()), "class name")
    out.write("\nLive instances with a weakref.finalize\n")
    table(out, registered(), "class name, and what is called at its end")


def finalizable() -> list[type]:
    """The class of each object known to the garbage collector that has a `__del__`. No metaclass is asked."""
    known: dict[int, bool] = {}
    found = []
    for each in native.tracked_objects(None):
        kind = type(each)
        if id(kind) not in known:
            bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
            known[id(kind)] = any("__del__" in type.__dict__["__dict__"].__get__(base) for base in bases)
        if known[id(kind)]:
            found.append(kind)
    return found


def registered() -> list[str]:
    """Of each `weakref.finalize` that is alive."""
    weakref = sys.modules.get("weakref")
    found = []
    for info in list(weakref.finalize._registry.values()) if weakref is not None else ():
        target = info.weakref()
        if target is not None:
            function = getattr(info.func, "__qualname__", type(info.func).__qualname__)
            found.append(f"{name_of(type(target))}, {function}")
    return found


def name_of(kind: type) -> str:
    """`module.Class`; a builtin's without its module."""
    module = type.__dict__["__module__"].__get__(kind)
    name: str = type.__dict__["__qualname__"].__get__(kind)
    return name if module == "builtins" else f"{module}.{name}"


def table(out: Output, names: Iterable[str], heading: str) -> None:
    """How many there are of each, the most first."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    out.write(f"#instances  {heading}\n-----------------------\n")
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        out.write(f"{counts[name]:>10}  {name}\n")


COMMANDS = (
    Command(
        "GC.finalizer_info",
        "What waits to be finalized, and what has a finalizer.",
        run,
        impact="Medium: one pass over all objects that the garbage collector knows.",
    ),
)
