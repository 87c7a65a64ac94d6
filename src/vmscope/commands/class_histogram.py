"""GC.class_histogram: how many objects there are of each class, and how many bytes, in jmap's columns."""

from __future__ import annotations

import gc

from vmscope import native
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.terminal import printable
from vmscope.tool.model import introspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output

HEADING = " num     #instances         #bytes  class name (module)\n"


def run(out: Output, all: bool, parallel: int) -> None:
    if not all:
        gc.collect()
    out.write(histogram())


def histogram() -> str:
    """The classes with the most bytes first, and the total."""
    rows = [(size, count, name(kind), module(kind)) for kind, count, size in native.count_objects()]
    rows.sort(key=lambda row: (-row[0], -row[1], row[2:]))
    lines = [HEADING, "-" * (len(HEADING) - 1) + "\n"]
    for number, (size, count, kind, within) in enumerate(rows, 1):
        lines.append(f"{number:4d}: {count:13d} {size:14d}  {kind}{within and f' ({within})'}\n")
    lines.append(f"Total {sum(row[1] for row in rows):13d} {sum(row[0] for row in rows):14d}\n")
    return "".join(lines)


def name(kind: type) -> str:
    """`shop.models.Order`; of the builtins without their module."""
    within = module(kind)
    qualified = printable(introspection.qualname(kind))
    return qualified if within in ("", "builtins") else f"{within}.{qualified}"


def module(kind: type) -> str:
    return printable(introspection.module_name(kind))


COMMANDS = (
    Command(
        "GC.class_histogram",
        "How many objects there are of each class, and how many bytes.",
        run,
        impact="High: the program stands still meanwhile, 50 ms for a million objects.",
        arguments=(
            Argument(
                "-all", "Without a collection before, which ends what is unreachable.", "BOOLEAN", default="false"
            ),
            Argument("-parallel", "Threads to count with: one does, whatever is asked for.", "INT", default="0"),
        ),
    ),
)
