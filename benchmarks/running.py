"""What being visible costs while a process runs: the sampler's visits, CPU when idle, memory, a busy program's time."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks import load
from benchmarks.measure import Figure, Series
from benchmarks.world import IDLE, ROOT, vmscope_command
from tests.support import Child

PAIRS = 6  # of processes: where things happen to stand in memory differs from one to the next
TURNS = 20
TURN_SECONDS = 0.1  # two visits
IDLE_SECONDS = 60
VISIT_SECONDS = 15
MIN_VISITS = 300
STARTED = f"import vmscope; vmscope.start(); {IDLE}"


def figures(rounds: int) -> Iterator[Figure]:
    if not load.installed():
        raise RuntimeError("pyperformance is not installed: scripts/setup bench")
    visits = _visits()
    yield Figure("a visit of the sampler under the GIL: median", visits, None, 20e-6, 0.5)
    yield Figure("the same: 99th percentile", visits, None, 100e-6, 0.99)
    yield Figure(f"CPU of an idle process over {IDLE_SECONDS} s, of one core", _idle(), None, 0.2)
    yield from _memory(rounds)
    for name in load.NAMES:
        wall, cpu = _busy(name)
        yield Figure(f"pyperformance's {name}, started to not started", wall, None, 1.01, 0.5)
        yield Figure("the same, CPU time of all threads", cpu, None, None, 0.5)


def _load(name: str, state: str) -> Child:
    return Child([sys.executable, "-m", "benchmarks.load", name, state], cwd=ROOT)


def _busy(name: str) -> tuple[Series, Series]:
    """The ratios of each turn's wall and CPU time to its neighbour's, so that a slow moment is in both."""
    wall, cpu = Series(name, "x"), Series(name, "x")
    for _ in range(PAIRS):
        with _load(name, "started") as started, _load(name, "unstarted") as unstarted:
            loops = round(TURN_SECONDS / min(float(child.readline()) for child in (started, unstarted)))
            for child in (started, unstarted):
                child.send(str(max(1, loops)))
            for i in range(TURNS + 1):
                order = (started, unstarted) if i % 2 else (unstarted, started)
                taken = {child: tuple(map(float, child.ask("turn").split())) for child in order}
                if i > 0:  # the first one warms up
                    for series, ours, others in zip((wall, cpu), taken[started], taken[unstarted], strict=True):
                        series.values.append(ours / others)
    return wall, cpu


def _visits() -> Series:
    with _load("deltablue", "visits") as child:
        child.read_until(b"ready\n")
        time.sleep(VISIT_SECONDS)
        child.stop()
        found = [nanoseconds / 1e9 for nanoseconds in json.loads(child.readline())]
    if len(found) < MIN_VISITS:
        raise RuntimeError(f"only {len(found)} visits in {VISIT_SECONDS} s")
    return Series("visits", values=found)


def _idle() -> Series:
    with Child(vmscope_command("run", "-c", IDLE)) as child:
        child.read_until(b"ready\n")
        time.sleep(1)
        before, began = _cpu(child.pid), time.monotonic()
        time.sleep(IDLE_SECONDS)
        share = (_cpu(child.pid) - before) / (time.monotonic() - began)
    return Series("idle", "%", [100 * share])


def _cpu(pid: int) -> float:
    """Seconds of all its threads, to the ns."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _memory(rounds: int) -> Iterator[Figure]:
    found = {key: Series(key, "B") for key in ("Rss", "Pss")}
    for _ in range(rounds):
        with ExitStack() as stack:
            started, unstarted = (stack.enter_context(Child([sys.executable, "-c", code])) for code in (STARTED, IDLE))
            for child in (started, unstarted):
                child.read_until(b"ready\n")
            time.sleep(0.5)  # until the first sample was taken
            for key, series in found.items():
                series.values.append(1024.0 * (_resident(started.pid, key) - _resident(unstarted.pid, key)))
    yield Figure("memory of a started process, over not started", found["Rss"], None, 2.5e6)
    yield Figure("the same, pages that processes share divided among them", found["Pss"], None, None)


def _resident(pid: int, key: str) -> int:
    """kB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))
