"""`inc()` by four threads, to one, on a free-threaded CPython: what `scripts/freethreaded` built."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator

import variants

from benchmarks.measure import Figure, Sample, in_turns
from tests.support import Child

THREADS = 4
LEAST_SEPARATE, LEAST_SHARED = 1.5, 0.3  # of one thread's throughput

# A line `threads counters` on standard input; on standard output the wall and CPU seconds that an update takes, all
# threads together: the best of those runs in which they had the cores, as their CPU time tells, if there were any.
PROGRAM = """
import os, sys, threading, time
import vmscope
from vmscope import native
assert native.IMPLEMENTATION == "c" and not sys._is_gil_enabled()
COUNT = 10_000
def run(threads, counters):
    barrier, spans = threading.Barrier(threads), []
    def work(counter):
        barrier.wait()
        begin, cpu = time.perf_counter(), time.thread_time()
        for _ in range(COUNT):
            counter.inc(); counter.inc(); counter.inc(); counter.inc(); counter.inc()
        spans.append((begin, time.perf_counter(), time.thread_time() - cpu))
    group = [threading.Thread(target=work, args=(counters[i % len(counters)],)) for i in range(threads)]
    for thread in group:
        thread.start()
    for thread in group:
        thread.join()
    updates = 5 * COUNT * threads
    wall = max(end for _, end, _ in spans) - min(begin for begin, _, _ in spans)
    return wall / updates, sum(cpu for _, _, cpu in spans) / updates
counters = [vmscope.counter(f"benchmark.threads.{i}") for i in range(4)]
print("ready", flush=True)
for line in sys.stdin:
    threads, different = map(int, line.split())
    cores = min(threads, len(os.sched_getaffinity(0)))
    runs = [run(threads, counters[:different]) for _ in range(60)]
    undisturbed = [(wall, cpu) for wall, cpu in runs if cpu > 0.7 * cores * wall]
    print(*min(undisturbed or runs), flush=True)
"""


def figures(rounds: int) -> Iterator[Figure]:
    python = variants.free_threaded()
    if python is None:
        print("threads: no free-threaded CPython: run scripts/freethreaded", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            package = variants.build(folder, python)
        except variants.BuildError as error:
            raise RuntimeError(str(error)) from error
        with Child([python, "-c", PROGRAM], env={"PYTHONPATH": package}) as child:
            child.read_until(b"ready\n")
            found = in_turns(
                {
                    "one": _case(child, 1, 1),
                    "separate": _case(child, THREADS, THREADS),
                    "shared": _case(child, THREADS, 1),
                },
                rounds,
            )
    name = f"an `inc()` by {THREADS} threads, free-threaded, on "
    yield Figure(name + "separate counters, to one by 1 thread", found["separate"], found["one"], 1 / LEAST_SEPARATE)
    yield Figure(name + "one counter, to one by 1 thread", found["shared"], found["one"], 1 / LEAST_SHARED)


def _case(child: Child, threads: int, counters: int) -> Callable[[], Sample]:
    def case() -> Sample:
        wall, cpu = child.ask(f"{threads} {counters}").split()
        return float(wall), float(cpu)

    return case
