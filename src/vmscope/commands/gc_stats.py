"""Python.gc_stats: what the garbage collector has done, and when it acts."""

from __future__ import annotations

import gc

from vmscope import own_threads
from vmscope.commands.registry import Command
from vmscope.counters.registry import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output

_COLLECTORS = (0, 2, 1)  # under which of the JDK's each generation's times are counted


def run(out: Output) -> None:
    counts, thresholds = gc.get_count(), own_threads.thresholds()
    out.write("Generation Collections  Collected Uncollectable    Count Threshold    Time ms\n")
    for generation, stats in enumerate(gc.get_stats()):
        count, threshold = (row[generation] if generation < len(row) else 0 for row in (counts, thresholds))
        nanoseconds = getattr(REGISTRY.get(f"sun.gc.collector.{_COLLECTORS[generation]}.time"), "value", None)
        time = "-" if nanoseconds is None else f"{nanoseconds / 1e6:.1f}"
        out.write(
            f"{generation:>10} {stats['collections']:>11} {stats['collected']:>10} {stats['uncollectable']:>13} "
            f"{count:>8} {threshold:>9} {time:>10}\n"
        )
    pause = getattr(REGISTRY.get("python.gc.longestPause"), "value", None)
    if pause is not None:
        out.write(f"Longest pause: {pause / 1e6:.3f} ms\n")
    out.write(f"Enabled: {'yes' if gc.isenabled() else 'no'}\nFrozen objects: {gc.get_freeze_count()}\n")
    out.write(f"Uncollectable objects in gc.garbage: {len(gc.garbage)}\nDebug flags: {gc.get_debug()}\n")
    out.write(f"Callbacks: {len(gc.callbacks)}\n")


COMMANDS = (Command("Python.gc_stats", "The garbage collector's work so far, by generation.", run),)
