"""What flight recordings cost: a busy program's CPU time, an idle one's, bytes and memory, an event that is off."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import vmscope
from benchmarks.floor import empty
from benchmarks.measure import Figure, Series, in_turns, process
from benchmarks.updates import statement
from benchmarks.world import ROOT
from tests.oracle.raw_attach import ask
from tests.support import Child

PAIRS = 4  # of processes
TURNS = 12
TURN_SECONDS = 0.5
SAMPLED_SECONDS = 20
IDLE_SECONDS = 30
RING = "disk=false maxage=10m"


def figures(rounds: int) -> Iterator[Figure]:
    for name, limit in (("default", 1.005), ("profile", 1.015)):
        wall, cpu = _busy(name)
        yield Figure(f"deltablue while recorded with the settings {name}, to not: CPU time", cpu, None, limit, 0.5)
        yield Figure("the same, wall time", wall, None, None, 0.5)
    yield Figure(f"CPU of an idle process that records, over {IDLE_SECONDS} s, of one core", _idle(), None, 0.3)
    for threads, limit in ((1, 0.6), (100, 2.0), (1000, 4.0)):
        label = f"CPU of the sampler at 100 Hz, {threads} threads of which one works, of one core"
        yield Figure(label, _sampler(threads), None, limit)
    size, memory = _size()
    yield Figure(f"a sample of 4 busy threads, over {SAMPLED_SECONDS} s, without the metadata", size, None, 15)
    yield Figure("memory that a recording without files adds", memory, None, 10 * 2**20)
    yield from _event(rounds)
    yield _profile(rounds)


def _load(state: str) -> Child:
    return Child([sys.executable, "-m", "benchmarks.load", "deltablue", state], cwd=ROOT)


def _jcmd(pid: int, text: str) -> str:
    status, body = ask(pid, "jcmd", text)
    if status != "0":
        raise RuntimeError(f"{text}: {body}")
    return body


def _busy(settings: str) -> tuple[Series, Series]:
    """The ratios of each turn's wall and CPU time to its neighbour's; both processes run vmscope."""
    wall, cpu = Series(settings, "x"), Series(settings, "x")
    for _ in range(PAIRS):
        with _load("started") as recorded, _load("started") as other:
            loops = round(TURN_SECONDS / min(float(child.readline()) for child in (recorded, other)))
            for child in (recorded, other):
                child.send(str(max(1, loops)))
            _jcmd(recorded.pid, f"JFR.start name=bench settings={settings}")
            for i in range(TURNS + 1):
                order = (recorded, other) if i % 2 else (other, recorded)
                taken = {child: tuple(map(float, child.ask("turn").split())) for child in order}
                if i > 0:  # the first one warms up
                    for series, ours, others in zip((wall, cpu), taken[recorded], taken[other], strict=True):
                        series.values.append(ours / others)
            _jcmd(recorded.pid, "JFR.stop name=bench")
    return wall, cpu


# Threads that stand still, one that works; it prints what the recorder's own thread has used.
_PROGRAM = """\
import os, sys, threading, time, vmscope
vmscope.start()
threads, busy = int(sys.argv[1]), int(sys.argv[2])
stop = threading.Event()
def waits(depth=15):
    waits(depth - 1) if depth else stop.wait()
def work(depth=15):
    if depth:
        return work(depth - 1)
    total = 0
    while not stop.is_set():
        for number in range(1000):
            total += number * number
for number in range(threads - 1):
    threading.Thread(target=work if number < busy - 1 else waits, daemon=True).start()
if busy:
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
"""


def _program(threads: int, busy: int) -> Child:
    return Child([sys.executable, "-c", _PROGRAM, str(threads), str(busy)], cwd=ROOT)


def _thread_cpu(pid: int, name: str) -> float:
    """CPU seconds of the threads whose names begin so."""
    found = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().startswith(name):
            found += int((task / "schedstat").read_text().split()[0]) / 1e9
    return found


def _share(pid: int, seconds: float, name: str) -> float:
    before, begin = _thread_cpu(pid, name), time.monotonic()
    time.sleep(seconds)
    return 100 * (_thread_cpu(pid, name) - before) / (time.monotonic() - begin)


def _idle() -> Series:
    with _program(1, 0) as child:
        child.read_until(b"ready\n")
        _jcmd(child.pid, "JFR.start name=bench")
        time.sleep(1)
        found = _share(child.pid, IDLE_SECONDS, "")
        child.send("")
    return Series("idle", "%", [found])


def _sampler(threads: int) -> Series:
    with _program(threads, 1) as child:
        child.read_until(b"ready\n")
        _jcmd(child.pid, "JFR.start name=bench settings=profile")
        time.sleep(1)
        found = _share(child.pid, SAMPLED_SECONDS, "vmscope flight")
        child.send("")
    return Series("sampler", "%", [found])


def _size() -> tuple[Series, Series]:
    """Bytes of a sample, pools and all; and what a ring of ten minutes adds to the resident memory."""
    from vmscope.flight.convert import modes

    with _program(4, 4) as child, tempfile.TemporaryDirectory() as folder:
        child.read_until(b"ready\n")
        path = os.path.join(folder, "bench.jfr")
        _jcmd(child.pid, "JFR.start name=first settings=none")  # what is imported counts elsewhere
        before = _resident(child.pid)
        _jcmd(child.pid, f"JFR.start name=bench settings=none {RING} jdk.ExecutionSample#enabled=true "
              "jdk.ExecutionSample#period=10ms jdk.NativeMethodSample#enabled=true vmscope.WaitSample#enabled=true "
              "vmscope.GILWait#enabled=true")  # fmt: skip
        time.sleep(SAMPLED_SECONDS)
        memory = _resident(child.pid) - before
        _jcmd(child.pid, f"JFR.dump name=bench filename={path}")
        samples = modes.profile([path], "wall").total
        size = os.path.getsize(path) - METADATA
        child.send("")
    return Series("size", "B", [size / samples]), Series("memory", "B", [memory])


METADATA = 22_000  # bytes, once a chunk


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _event(rounds: int) -> Iterator[Figure]:
    event = vmscope.event("benchmark.Flight", number=int)
    cases = {"commit": statement("f.commit(1)", event), "empty METH_O": statement("f.o(1)", empty())}
    found = in_turns(cases, 3 * rounds)
    yield Figure("an event that nothing records, to an empty METH_O", found["commit"], found["empty METH_O"], 1.5)


def _profile(rounds: int) -> Figure:
    """The whole process beyond the second that it records."""
    with _program(2, 1) as child:
        child.read_until(b"ready\n")
        command = [sys.executable, "-m", "vmscope", "profile", "--duration=1s", str(child.pid)]
        record = process(command)
        record()  # what the recorder needs is imported by then
        found = Series("profile")
        for _ in range(max(3, rounds // 3)):
            wall, cpu = record()
            found.add((wall - 1, cpu))
        child.send("")
    return Figure("`vmscope profile --duration=1s` beyond that second", found, None, 0.3, 0.5)
