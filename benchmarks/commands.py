"""Diagnostic commands: how long the program stands still for them, and what they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.measure import Figure, Sample, Series, in_turns
from benchmarks.world import ROOT
from tests.support import Child, python_command

THREADS = 1000
PAUSE = 3  # of sys._current_frames()
OBJECTS = 1_000_000  # that the collector knows
HISTOGRAM = 2  # passes over them
DUMP = 10  # times the writing of the same bytes
MEMORY = 0.2  # of the heap dumped

# A line on standard input; on standard output what it took, in seconds of the thread's CPU time, so that nobody else on
# the machine counts: `frames` sys._current_frames(), `print` the longest time for which Thread.print keeps all other
# threads from running, and all of it. It lets them run where it rests, and while it reads what the kernel has.
DUMPS = """
import io, sys, threading, time
from vmscope import commands, native
from vmscope.tool.model import thread_snapshot
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
rest, os_thread_ids, read_os_threads = thread_snapshot.Turns.rest, native.os_thread_ids, native.read_os_threads
print("ready", flush=True)
for line in sys.stdin:
    begin = time.thread_time()
    if line == "frames\\n":
        frames = sys._current_frames()
        print(time.thread_time() - begin, 0, flush=True)
        del frames
    else:
        clock = Clock()
        thread_snapshot.Turns.rest = clock.around(rest)
        native.os_thread_ids, native.read_os_threads = clock.around(os_thread_ids), clock.around(read_os_threads)
        out = io.StringIO()
        commands.execute("Thread.print", out)
        clock.pieces.append(time.thread_time() - clock.since)
        print(max(clock.pieces), time.thread_time() - begin, flush=True)
        assert out.getvalue().count("\\tat __main__.wait(") == 3 * %d, out.getvalue()
"""


# As above: `pass` is one pass over what the collector knows, `histogram` the command without a collection, `dump` the
# command's file, `write` the same bytes written to another. After the time, the peak of memory during the dump, beyond
# what there was, as a share of what the objects take.
HEAP = """
import ctypes, gc, io, os, sys, tempfile, time
from vmscope import commands
def resident(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))
class Plain:
    def __init__(self, number):
        self.number, self.text = number, str(number)
before = resident("VmRSS")
objects = [[Plain(number), [number], (number, []), {number: number}] for number in range(%d)]
gc.collect()
size = resident("VmRSS") - before
folder = tempfile.TemporaryDirectory(dir=sys.argv[1])
path = os.path.join(folder.name, "a.hprof")
block = os.urandom(1 << 20)
print("ready", flush=True)
for line in sys.stdin:
    share, what = 0, line.strip()
    if what == "dump":
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    held = resident("VmRSS")
    begin = time.perf_counter()
    if what == "pass":
        for each in gc.get_objects():
            type(each)
        del each
    elif what == "histogram":
        commands.execute("GC.class_histogram -all", io.StringIO())
    elif what == "dump":
        commands.execute(f"GC.heap_dump -all {path}", io.StringIO())
    else:
        with open(path + ".copy", "wb", buffering=0) as file:
            for _ in range(length >> 20):
                file.write(block)
    took = time.perf_counter() - begin
    if what == "dump":
        share, length = max(0, resident("VmHWM") - held) / size, os.path.getsize(path)
        os.remove(path)
    elif what == "write":
        os.remove(path + ".copy")
    print(took, share, flush=True)
"""


def figures(rounds: int) -> Iterator[Figure]:
    yield from thread_print(rounds)
    yield from heap(rounds)


def heap(rounds: int) -> Iterator[Figure]:
    with Child(python_command(HEAP % (OBJECTS // 5), str(ROOT / "build"))) as child:
        child.read_until(b"ready\n", 60)
        found = in_turns({what: _case(child, what) for what in ("pass", "histogram", "dump", "write")}, rounds)
    name = f"of {OBJECTS} objects"
    series = {what: Series(what, "s", found[what].values) for what in found}
    label = f"`GC.class_histogram` {name}, to one pass over `gc.get_objects()`"
    yield Figure(label, series["histogram"], series["pass"], HISTOGRAM)
    yield Figure(f"`GC.heap_dump` {name}, to writing the same bytes", series["dump"], series["write"], DUMP)
    share = Series("memory", "x", found["dump"].cpu)
    yield Figure(f"`GC.heap_dump` {name}, memory, to that of the objects", share, None, MEMORY)


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
