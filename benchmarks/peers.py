"""Updates, to those of prometheus_client and OpenTelemetry; and reading 400 processes, to a scrape of their files."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from benchmarks import meters
from benchmarks.measure import Figure, Sample, Series, call, in_turns
from benchmarks.meters import DROPIN, MULTIPROCESS, OPENTELEMETRY, OURS, PROMETHEUS
from benchmarks.world import ROOT, fleet
from tests.support import Child
from vmscope.reader.sampler import Sampler

# How many updates, in tens, take some milliseconds.
CASES = {
    (OURS, "inc"): 20_000,
    (OURS, "observe"): 20_000,
    (DROPIN, "inc"): 20_000,
    (DROPIN, "observe"): 20_000,
    (PROMETHEUS, "inc"): 1_000,
    (MULTIPROCESS, "inc"): 500,
    (MULTIPROCESS, "observe"): 300,
    (OPENTELEMETRY, "inc"): 200,
}
PROCESSES = 400
SERIES = 170


def figures(rounds: int) -> Iterator[Figure]:
    if find_spec("prometheus_client") is None or find_spec("opentelemetry") is None:
        raise RuntimeError("the peers are not installed: scripts/setup bench")
    with ExitStack() as stack:
        found = in_turns(
            {f"{name} {what}": _case(stack, name, what, CASES[name, what]) for name, what in CASES}, rounds
        )
    for name, what, call_of_it, limit in (
        (PROMETHEUS, "inc", "Counter.inc", 1 / 25),
        (MULTIPROCESS, "inc", "Counter.inc", 1 / 70),
        (MULTIPROCESS, "observe", "Histogram.observe", 1 / 100),
        (OPENTELEMETRY, "inc", "Counter.add", 1 / 250),
    ):
        ours = found[f"{OURS} {what}"]
        yield Figure(f"`{what}()`, to `{call_of_it}` of {name}", ours, found[f"{name} {what}"], limit)
    for what, call_of_it in (("inc", "Counter.inc"), ("observe", "Histogram.observe")):
        ours = found[f"{DROPIN} {what}"]
        theirs = found[f"{MULTIPROCESS} {what}"]
        yield Figure(f"`{call_of_it}` with {DROPIN}, to that of {MULTIPROCESS}", ours, theirs, 0.02)
    with ExitStack() as stack:
        first, others = (_first_updates(stack, name, "many") for name in (DROPIN, MULTIPROCESS))
    yield Figure(
        f"a forked child's first `inc()` with {DROPIN}, of 20,000 series, to {MULTIPROCESS}", first, others, 0.001
    )
    with ExitStack() as stack:
        ours, theirs = (_first_updates(stack, name, "fork") for name in (OURS, MULTIPROCESS))
    yield Figure(f"a forked child's very first `inc()`, to that of {MULTIPROCESS}", ours, theirs, None)
    yield _reading(rounds)


def _start(stack: ExitStack, name: str, what: str) -> Child:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    command = [sys.executable, "-m", "benchmarks.peer", name, what]
    child = stack.enter_context(Child(command, env=meters.environment(name, folder), cwd=ROOT))
    child.read_until(b"ready\n")
    return child


def _case(stack: ExitStack, name: str, what: str, loops: int) -> Callable[[], Sample]:
    child = _start(stack, name, what)

    def case() -> Sample:
        wall, cpu = child.ask(str(loops)).split()
        return float(wall), float(cpu)

    return case


def _first_updates(stack: ExitStack, name: str, what: str) -> Series:
    return Series(name, values=[float(word) for word in _start(stack, name, what).ask("").split()])


def _reading(rounds: int) -> Figure:
    """Every number of 400 live processes, to a scrape of the files that 400 workers of prometheus_client leave."""
    prometheus, multiprocess, mmap_dict = (
        import_module(f"prometheus_client{part}") for part in ("", ".multiprocess", ".mmap_dict")
    )
    with tempfile.TemporaryDirectory() as folder, fleet(PROCESSES, SERIES) as vms:
        for number in range(PROCESSES):
            file = mmap_dict.MmapedDict(str(Path(folder, f"counter_{number}.db")))
            for series in range(SERIES):
                name = f"benchmark_{series}_total"
                file.write_value(mmap_dict.mmap_key(name, name, (), (), "of a benchmark"), float(series), 0.0)
            file.close()

        def scrape() -> bytes:
            registry = prometheus.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry, path=folder)
            return prometheus.generate_latest(registry)  # type: ignore[no-any-return]

        if scrape().count(b"\nbenchmark_") != SERIES:
            raise RuntimeError("the scrape does not show every series")
        sampler = Sampler(vms)
        if len(sampler.sample()) != PROCESSES * SERIES:
            raise RuntimeError("the sample does not have every number")
        found = in_turns({"sample": call(sampler.sample, 20), "scrape": call(scrape)}, rounds)
    name = f"{PROCESSES} processes of {SERIES} numbers read, maps kept, to a scrape of {MULTIPROCESS}"
    return Figure(name, found["sample"], found["scrape"], 0.01)
