"""GC.run: a full collection. What it finds is finalized on the thread that runs commands."""

from __future__ import annotations

import gc
import time

from vmscope.commands.registry import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output


def run(out: Output) -> None:
    garbage = len(gc.garbage)
    start = time.perf_counter()
    collected = gc.collect()
    seconds = time.perf_counter() - start
    out.write(f"{collected} unreachable objects in {seconds:.3f} s")
    kept = len(gc.garbage) - garbage
    out.write(f", {kept} of them uncollectable\n" if kept > 0 else "\n")


COMMANDS = (
    Command(
        "GC.run",
        "A full collection of all generations.",
        run,
        impact="Medium: the program stands still meanwhile; its finalizers run on the thread of this command.",
    ),
)
