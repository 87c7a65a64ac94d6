"""Updates where counters hang or lose some: ours and the peers', each in a process of its own, for a bounded time."""

from __future__ import annotations

import json
import mmap
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import vmscope
from benchmarks import meters
from benchmarks.hazard import CHILDREN, COLLECTIONS, SIGNALS, THREADS
from benchmarks.measure import Outcome
from benchmarks.meters import METERS, MULTIPROCESS, OURS
from benchmarks.world import ROOT
from tests.support import Child
from vmscope import native
from vmscope.reader.structure import words

STALL = 5.0  # seconds without any progress
PATIENCE = 100.0  # seconds in all
READS, ROUNDS = 10_000, 1_000

ROWS = {
    "signals": f"{SIGNALS:,} signals whose handler makes the update that it interrupts",
    "labels": f"{SIGNALS:,} signals whose handler makes an update by `labels()` that it interrupts",
    "collections": f"{COLLECTIONS:,} collections whose callback updates, `labels()` interrupted",
    "threads": f"{THREADS} threads, switched each 10 us",
    "forks": f"{CHILDREN} children forked while 3 threads update",
}


def figures(rounds: int) -> Iterator[Outcome]:
    if find_spec("prometheus_client") is None or find_spec("opentelemetry") is None:
        raise RuntimeError("the peers are not installed: scripts/setup bench")
    for hazard, name in ROWS.items():
        results = {meter: _run(meter, hazard) for meter in METERS}
        yield Outcome(name, results, results[OURS] == "exact")
    results = {meter: _read(meter) for meter in (OURS, MULTIPROCESS)}
    yield Outcome(
        f"{READS * ROUNDS:,} reads by another process of a gauge that is never 0", results, results[OURS] == "exact"
    )


def _run(meter: str, hazard: str) -> str:
    """What became of it, in words."""
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as file:
        file.truncate(8)
        progress = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")
        command = [sys.executable, "-m", "benchmarks.hazard", meter, hazard, file.name]
        environment = meters.environment(meter, folder)
        with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            begin = moved = time.monotonic()
            seen = 0
            while process.poll() is None:
                time.sleep(0.02)
                now = time.monotonic()
                if progress[0] != seen:
                    seen, moved = progress[0], now
                if now - moved > STALL or now - begin > PATIENCE:
                    process.kill()
                    return f"hangs after {seen:,}" if now - moved > STALL else f"not done in time: {seen:,}"
            assert process.stdout is not None
            answer = process.stdout.read()
        if process.returncode:
            raise RuntimeError(f"{meter} ended with {process.returncode} in {hazard}")
        return _words(json.loads(answer))


def _words(found: dict[str, int]) -> str:
    parts = []
    if found["hung"]:
        parts.append(f"{found['hung']} of {found['done']} hang")
    if found["wrong"]:
        parts.append(f"{found['wrong']} of {found['done']} begin with their parent's count")
    if found["lost"]:
        parts.append(f"wrong by {found['lost']:,}")
    return ", ".join(parts) or "exact"


WRITERS = {
    OURS: """
import vmscope
vmscope.start("-XX:PerfDataSamplingInterval=1")
gauge = vmscope.gauge("benchmark.gauge")
""",
    MULTIPROCESS: """
from prometheus_client import Gauge
gauge = Gauge("benchmark_gauge", "of a benchmark", multiprocess_mode="all")
""",
}
WRITE = """
gauge.set(1)
print("ready", flush=True)
while True:
    gauge.set(1 << 52)
    gauge.set((1 << 50) - 1)
"""


def _read(meter: str) -> str:
    """Reads the word where the file of another process has the gauge, which is set without pause."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", WRITERS[meter] + WRITE]
        with Child(command, env=meters.environment(meter, folder), cwd=ROOT) as child:
            child.read_until(b"ready\n")
            path, offset = _place(meter, folder, child.pid)
            with open(path, "rb") as file:
                mapping = native.Mapping(file.fileno(), path.stat().st_size)
            offsets, out = words("i", [offset] * READS), words("q", [0] * READS)
            zeros, values = 0, set()
            for _ in range(ROUNDS):
                mapping.gather(offsets, out)
                found = out.tolist()
                zeros += found.count(0)
                values.add(found[0])
    if len(values) < 2:
        raise RuntimeError(f"the gauge of {meter} stands still")
    return f"{zeros:,} false zeros" if zeros else "exact"


def _place(meter: str, folder: str, pid: int) -> tuple[Path, int]:
    if meter == MULTIPROCESS:
        [path] = Path(folder).glob("gauge_all_*.db")
        length = int.from_bytes(path.read_bytes()[8:12], sys.byteorder)
        return path, 12 + length + 8 - (length + 4) % 8  # behind the key, which is padded
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with vmscope.vm(pid) as vm:
            if "benchmark.gauge" in vm.counters and vm.values()["benchmark.gauge"]:
                assert vm.path is not None
                return Path(vm.path), vm.counters["benchmark.gauge"].entry.data_offset
        time.sleep(0.01)
    raise RuntimeError("the gauge does not come")
