"""`python -m benchmarks.hazard METER HAZARD FILE`: updates a counter where that is hard, and looks whether it is exact.

FILE has eight bytes, in which it keeps how far it has come, for whoever waits and wonders. It prints one JSON object:
`done`, `lost` updates, `hung` children and `wrong` ones, which began with other than nothing.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable

from benchmarks import meters
from benchmarks.meters import Meter

SIGNALS = 100_000
COLLECTIONS = 2_000
CHILDREN = 200
HUNG_AT_MOST = 5  # children: each is waited for
PATIENCE = 2  # seconds that a child has for 20 updates
THREADS = 8
UPDATES = 10_000  # of each thread
LABELLED = ("labels", "collections")


class Progress:
    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self._word = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")

    def set(self, done: int) -> None:
        self._word[0] = done


def signals(meter: Meter, progress: Progress, update: Callable[[], object]) -> dict[str, float]:
    """A signal's handler makes the update that it interrupts."""
    handled = updates = 0

    def handler(*_: object) -> None:
        nonlocal handled
        handled += 1
        update()

    signal.signal(signal.SIGALRM, handler)
    for wanted in range(1, SIGNALS + 1):
        progress.set(wanted - 1)
        signal.setitimer(signal.ITIMER_REAL, 1e-5)
        while handled < wanted:
            update()
            updates += 1
    return {"done": SIGNALS, "lost": updates + handled - meter.value()}


def collections(meter: Meter, progress: Progress, update: Callable[[], object]) -> dict[str, float]:
    """A collection's callback does."""
    called = updates = 0

    def callback(phase: str, info: dict[str, int]) -> None:
        nonlocal called
        called += 1
        update()

    gc.callbacks.append(callback)
    thresholds = gc.get_threshold()
    gc.set_threshold(3)
    while called < COLLECTIONS:
        progress.set(called)
        garbage: list[object] = []
        garbage.append(garbage)
        update()
        updates += 1
    gc.set_threshold(*thresholds)
    gc.callbacks.remove(callback)
    return {"done": COLLECTIONS, "lost": updates + called - meter.value()}


def threads(meter: Meter, progress: Progress, update: Callable[[], object]) -> dict[str, float]:
    """Eight threads, between which the interpreter switches every 10 us."""
    sys.setswitchinterval(1e-5)

    def work() -> None:
        for _ in range(UPDATES):
            update()

    workers = [threading.Thread(target=work) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    for number, worker in enumerate(workers):
        worker.join()
        progress.set((number + 1) * UPDATES)
    return {"done": THREADS * UPDATES, "lost": THREADS * UPDATES - meter.value()}


def forks(meter: Meter, progress: Progress, update: Callable[[], object]) -> dict[str, float]:
    """Children are forked while three threads update; each should count from zero."""
    sys.setswitchinterval(1e-5)
    stop = False

    def work() -> None:
        while not stop:
            update()

    workers = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for worker in workers:
        worker.start()
    done = hung = wrong = 0
    while done < CHILDREN and hung < HUNG_AT_MOST:
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE)  # a child that hangs ends with this signal
            for _ in range(20):
                update()
            os._exit(0 if meter.value() == 20 else 1)
        status = os.waitpid(pid, 0)[1]
        hung += os.WIFSIGNALED(status)
        wrong += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0
        done += 1
        progress.set(done)
    stop = True
    return {"done": done, "hung": hung, "wrong": wrong}


HAZARDS = {"signals": signals, "labels": signals, "collections": collections, "threads": threads, "forks": forks}


def main(name: str, hazard: str, path: str) -> None:
    warnings.simplefilter("ignore")  # of forks among threads
    meter = meters.make(name, labelled=hazard in LABELLED)
    update: Callable[[], object] = meter.inc
    if hazard in LABELLED:
        numbers = iter(range(1 << 62))
        update = lambda: meter.labelled(next(numbers))  # noqa: E731
    found = HAZARDS[hazard](meter, Progress(path), update)
    print(json.dumps({"lost": 0, "hung": 0, "wrong": 0, **found}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
