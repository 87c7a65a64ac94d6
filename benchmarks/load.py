"""`python -m benchmarks.load NAME started|unstarted`: a program that runs one of pyperformance's benchmarks.

It prints how many seconds one run takes, reads how many runs make a turn, and for each further line takes a turn and
prints its wall and CPU seconds. `python -m benchmarks.load NAME visits` works until its input ends, with eight threads
asleep beside it, and prints how many ns each visit of the sampler took.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import vmscope
from vmscope.counters.registry import REGISTRY
from vmscope.wire.codes import Units

NAMES = ("nbody", "deltablue", "richards")
SLEEPERS = 8
OFTEN = "-XX:PerfDataSamplingInterval=10"  # ms: five times as many visits as by default


def installed() -> bool:
    return find_spec("pyperformance") is not None


def benchmark(name: str) -> Callable[[], object]:
    """One run of it, of some milliseconds."""
    package = find_spec("pyperformance")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "data-files" / "benchmarks" / f"bm_{name}" / "run_benchmark.py"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    if name == "nbody":
        return lambda: module.advance(0.01, 200)
    if name == "deltablue":
        return lambda: module.delta_blue(100)
    richards = module.Richards()
    return lambda: richards.run(1)


def turn(run: Callable[[], object], loops: int) -> tuple[float, float]:
    turns = range(loops)
    cpu, begin = time.process_time(), time.perf_counter()
    for _ in turns:
        run()
    return time.perf_counter() - begin, time.process_time() - cpu


def take_turns(run: Callable[[], object]) -> None:
    print(min(turn(run, 1)[0] for _ in range(20)), flush=True)
    loops = int(sys.stdin.readline())
    while sys.stdin.readline():
        print(*turn(run, loops), flush=True)


def watch_visits(run: Callable[[], object]) -> None:
    visits = REGISTRY.counter("vmscope.sampler.visits", units=Units.EVENTS)
    spent = REGISTRY.counter("vmscope.sampler.visitTime", units=Units.TICKS)
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    for _ in range(SLEEPERS):
        threading.Thread(target=ended.wait, daemon=True).start()
    print("ready", flush=True)
    found, last = [], (visits.value, spent.value)
    while not ended.is_set():
        run()
        now = (visits.value, spent.value)
        if now[0] == last[0] + 1:
            found.append(now[1] - last[1])
        last = now
    print(json.dumps(found), flush=True)


def main(name: str, state: str) -> None:
    run = benchmark(name)
    if state != "unstarted":
        vmscope.start(*([OFTEN] if state == "visits" else []))
        if vmscope.status().path is None:
            raise RuntimeError(vmscope.status().reason)
    if state == "visits":
        watch_visits(run)
    else:
        take_turns(run)


if __name__ == "__main__":
    main(*sys.argv[1:])
