"""Diagnostic commands: how long the program stands still for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.measure import Figure, Sample, Series, in_turns
from tests.support import Child, python_command

THREADS = 1000
PAUSE = 3  # of sys._current_frames()

# A line on standard input; on standard output what it took, in seconds of the thread's CPU time, so that nobody else on
# the machine counts: `frames` sys._current_frames(), `print` the longest time for which Thread.print keeps all other
# threads from running, and all of it. It lets them run where it rests, and while it reads what the kernel has.
DUMPS = """
import io, sys, threading, time
from vmscope import commands, native
from vmscope.tool import sightings
condition = threading.Condition()
def wait(depth):
    if depth:
        wait(depth - 1)
    else:
        with condition:
            condition.wait()
threading.stack_size(256 << 10)
for _ in range(%d):
    threading.Thread(target=wait, args=(2,), daemon=True).start()
class Clock:
    def __init__(self):
        self.pieces, self.since = [], time.thread_time()
    def around(self, other):
        def between(*arguments):
            self.pieces.append(time.thread_time() - self.since)
            result = other(*arguments)
            self.since = time.thread_time()
            return result
        return between
rest, task_ids, read_tasks = sightings.Turns.rest, native.task_ids, native.read_tasks
print("ready", flush=True)
for line in sys.stdin:
    begin = time.thread_time()
    if line == "frames\\n":
        frames = sys._current_frames()
        print(time.thread_time() - begin, 0, flush=True)
        del frames
    else:
        clock = Clock()
        sightings.Turns.rest = clock.around(rest)
        native.task_ids, native.read_tasks = clock.around(task_ids), clock.around(read_tasks)
        out = io.StringIO()
        commands.execute("Thread.print", out)
        clock.pieces.append(time.thread_time() - clock.since)
        print(max(clock.pieces), time.thread_time() - begin, flush=True)
        assert out.getvalue().count("\\tat __main__.wait(") == 3 * %d, out.getvalue()
"""


def figures(rounds: int) -> Iterator[Figure]:
    yield from thread_print(rounds)


def thread_print(rounds: int) -> Iterator[Figure]:
    with Child(python_command(DUMPS % (THREADS, THREADS))) as child:
        child.read_until(b"ready\n")
        found = in_turns({"frames": _case(child, "frames"), "print": _case(child, "print")}, rounds)
    name = f"`Thread.print` of {THREADS} threads"
    pause, base = (Series(label, "s", found[label].values) for label in ("print", "frames"))
    yield Figure(f"{name}, the longest pause, to `sys._current_frames()`", pause, base, PAUSE)
    yield Figure(f"{name}, CPU time of it all", Series("print", "s", found["print"].cpu), None, None, 0.5)


def _case(child: Child, what: str) -> Callable[[], Sample]:
    def case() -> Sample:
        longest, whole = child.ask(what).split()
        return float(longest), float(whole)

    return case
