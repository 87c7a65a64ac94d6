"""Python.tracemalloc: where memory was allocated, by CPython's own tracing."""

from __future__ import annotations

import sys

from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tracemalloc

    from vmscope.commands.registry import Output

_BY = ("lineno", "filename", "traceback")

_ours = False  # whether we have started it, and so may stop it
_before: tracemalloc.Snapshot | None = None


def run(out: Output, action: str, frames: int, limit: int, by: str) -> None:
    if action not in _ACTIONS:
        raise CommandError(f"Python.tracemalloc {action}: write one of {', '.join(_ACTIONS)}")
    if by not in _BY:
        raise CommandError(f"Python.tracemalloc -by={by}: write one of {', '.join(_BY)}")
    if not 1 <= frames <= 1000:
        raise CommandError(f"Python.tracemalloc -frames={frames}: 1 to 1000 frames can be kept")
    _ACTIONS[action](out, frames, limit, by)


def start(out: Output, frames: int, limit: int, by: str) -> None:
    global _ours, _before
    import tracemalloc

    if tracemalloc.is_tracing():
        out.write(f"It is traced already, with {tracemalloc.get_traceback_limit()} frames each")
        out.write("\n" if _ours else ", by the program itself\n")
        return
    if _agents_listen():
        raise CommandError("an agent receives an event for each new object, which tracing would end: unload it first")
    tracemalloc.start(frames)
    _ours, _before = True, None
    out.write("What is allocated from now on is traced: look with top, end it with stop\n")


def _agents_listen() -> bool:
    """From 3.13 on tracemalloc takes what tells agents of new objects."""
    host = sys.modules.get("vmscope.tool.host")
    if host is None or not host.exists():
        return False
    from vmscope.tool.spec.events import Event, bit

    return bool(host.vm().wanted() & (bit(Event.VM_OBJECT_ALLOC) | bit(Event.SAMPLED_OBJECT_ALLOC)))


def top(out: Output, frames: int, limit: int, by: str) -> None:
    statistics = _take().statistics(by)
    total = sum(each.size for each in statistics)
    out.write(f"{total / 1024:.1f} KiB in {sum(each.count for each in statistics)} blocks; the {limit} biggest of ")
    out.write(f"{len(statistics)} places\n")
    out.write(f"{'Size KiB':>12} {'Blocks':>10}  Place\n")
    for each in statistics[: max(0, limit)]:
        out.write(f"{each.size / 1024:>12.1f} {each.count:>10}  {_place(each.traceback)}\n")


def compare(out: Output, frames: int, limit: int, by: str) -> None:
    """Since the last time; the first time just remembers."""
    global _before
    now = _take()
    before, _before = _before, now
    if before is None:
        out.write("This is what the next compare will be compared with\n")
        return
    differences = now.compare_to(before, by)
    out.write(f"{sum(each.size_diff for each in differences) / 1024:+.1f} KiB since the last compare; ")
    out.write(f"the {limit} places that changed the most\n")
    out.write(f"{'Size KiB':>12} {'Blocks':>10}  Place\n")
    for each in differences[: max(0, limit)]:
        out.write(f"{each.size_diff / 1024:>+12.1f} {each.count_diff:>+10}  {_place(each.traceback)}\n")


def stop(out: Output, frames: int, limit: int, by: str) -> None:
    global _ours, _before
    import tracemalloc

    if not tracemalloc.is_tracing():
        out.write("It is not traced\n")
        return
    if not _ours:
        raise CommandError("the program traces its memory itself, and goes on: this command ends what it has begun")
    tracemalloc.stop()
    _ours, _before = False, None
    out.write("It is no longer traced\n")


def _take() -> tracemalloc.Snapshot:
    """Without our own frames. CommandError where nothing is traced."""
    import tracemalloc

    if not tracemalloc.is_tracing():
        raise CommandError("memory is not traced: Python.tracemalloc start begins it")
    snapshot = tracemalloc.take_snapshot()
    return snapshot.filter_traces(
        (tracemalloc.Filter(False, __file__), tracemalloc.Filter(False, tracemalloc.__file__))
    )


def _place(traceback: tracemalloc.Traceback) -> str:
    """The innermost frame first."""
    return " < ".join(
        f"{frame.filename}:{frame.lineno}" if frame.lineno else frame.filename for frame in reversed(traceback)
    )


_ACTIONS = {"start": start, "top": top, "compare": compare, "stop": stop}

COMMANDS = (
    Command(
        "Python.tracemalloc",
        "Where memory is allocated: start tracing it, show the top, compare with the last time, stop.",
        run,
        impact="High while it traces: each allocation is remembered with where it was made.",
        arguments=(
            Argument("action", f"One of {', '.join(_ACTIONS)}.", mandatory=True),
            Argument("-frames", "How many frames start keeps of each allocation.", "INT", default="1"),
            Argument("-limit", "How many places are shown.", "INT", default="10"),
            Argument("-by", f"What is one place: {', '.join(_BY)}.", default="lineno"),
        ),
    ),
)
