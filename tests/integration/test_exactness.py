"""Updates in the places where others lose them or hang: forks, another process's reads, the end, sub-interpreters."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import vmscope
from tests.conftest import StartVMScope
from tests.support import SETTLED, python_command
from tests.wait import wait_for
from vmscope.reader.structure import words
from vmscope.wire.decode import decode

pytestmark = pytest.mark.usefixtures("implementation")


def run(code: str, *arguments: str, options: tuple[str, ...] = (), timeout: float = 100) -> list[Any]:
    """What a child answers, line by line as JSON. Nothing may come on stderr."""
    command = python_command(dedent(code), *arguments, options=options)
    process = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert (process.stderr, process.returncode) == ("", 0)
    return [json.loads(line) for line in process.stdout.splitlines()]


# -- fork -----------------------------------------------------------------------------------------

FORKS = """
import json, os, signal, sys, threading
import vmscope

started, forks = sys.argv[1] == "started", int(sys.argv[2])
counter = vmscope.counter("t.counter")
gauge = vmscope.gauge("t.gauge")
histogram = vmscope.histogram("t.histogram", bounds=[1, 2])
if started:
    vmscope.start()
sys.setswitchinterval(1e-5)
stop, counts = False, []

def work():
    done = 0
    while not stop:
        counter.inc()
        gauge.add(2)
        histogram.observe(1.5)
        counter.labels(number=done % 50).inc()
        done += 1
    counts.append(done)

def child():
    signal.alarm(20)  # a child that hangs ends with this signal
    zero = (counter.value, gauge.value, histogram.count, counter.labels(number=7).value)
    for _ in range(10):
        counter.inc()
        gauge.inc()
        histogram.observe(0.5)
        counter.labels(number=7).inc()
    vmscope.counter("t.new").labels(a="b").inc()
    values = (counter.value, gauge.value, histogram.cells, counter.labels(number=7).value)
    return zero == (0, 0, 0, 0) and values == (10, 10, (5_000_000_000, 10, 0, 0), 10)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
statuses = []
for _ in range(forks):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if child() else 1)
    statuses.append(os.waitpid(pid, 0)[1])
stop = True
for thread in threads:
    thread.join()
print(json.dumps([s for s in statuses if s]))
print(json.dumps([sum(counts), counter.value, gauge.value // 2, histogram.count]))
"""


@pytest.mark.parametrize("state", ["started", "unstarted"])
def test_children_forked_amid_updates_count_from_zero(state: str, implementation: str) -> None:
    forks = 200 if implementation == "c" else 20
    failed, (done, *counted) = run(FORKS, state, str(forks), options=("-Wignore",))
    assert failed == []
    assert counted == [done] * 3


def test_the_first_update_of_a_child_is_not_slow(implementation: str) -> None:
    if implementation != "c":
        pytest.skip("the twin makes no promise about its speed")
    rounds = run(
        """
        import json, os, time
        from statistics import median
        import vmscope
        counter = vmscope.counter("t.counter")
        for number in range(2000):
            vmscope.counter(f"t.many.{number}")
            counter.labels(number=number)
        vmscope.start("-XX:PerfDataMemorySize=1m")
        other = vmscope.counter("t.other")
        now = time.perf_counter_ns

        def timed(update):
            begin = now()
            update()
            return now() - begin

        firsts, laters = [], []
        for _ in range(41):
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                for _ in range(50):
                    timed(other.inc)  # the clock and this code are warm, the counter is not
                first = timed(counter.inc)
                later = median(timed(counter.inc) for _ in range(101))
                os.write(write, json.dumps([first, later]).encode())
                os._exit(0)
            os.waitpid(pid, 0)
            first, later = json.loads(os.read(read, 100))
            firsts.append(first)
            laters.append(later)
        print(json.dumps([median(firsts), median(laters)]))
        """
    )
    ((first, later),) = rounds
    assert first <= 5 * later


# -- another process reads ------------------------------------------------------------------------

WRITER = """
import threading
gauges = [vmscope.gauge(f"t.gauge.{i}") for i in range(8)]
histogram = vmscope.histogram("t.histogram", bounds=[1])
text = vmscope.text("t.text", capacity=40)
def write():
    while True:
        for value in (-1, 0x0101010101010101, 1 << 62):
            for gauge in gauges:
                gauge.set(value)
        histogram.observe(0.5)
        text.set("a" * 40)
        text.set("b" * 39)
for gauge in gauges:
    gauge.set(-1)
threading.Thread(target=write, daemon=True).start()
"""


def test_a_reader_in_another_process_sees_no_false_zero(start_vmscope: StartVMScope, implementation: str) -> None:
    child = start_vmscope("-XX:PerfDataSamplingInterval=1", code=WRITER)
    rounds = 1_000 if implementation == "c" else 100  # of 10,000 reads each
    with vmscope.vm(child.pid) as vm:
        # The twin's mirror waits for its turn among the program's threads.
        wait_for(lambda: "t.text" in vm.counters, "the counters do not come")
        places = [vm.counters[f"t.gauge.{i}"].entry.data_offset for i in range(8)]
        offsets, out = words("i", places * 1250), words("q", [0] * 10_000)
        before = vm.values()
        seen: dict[int, int] = {}
        made, end = 0, time.monotonic() + 20
        while made < rounds or (len(seen) < 3 and time.monotonic() < end):
            made += 1
            vm.reader.mapping.gather(offsets, out)
            values = out.tolist()
            for value in set(values):
                seen[value] = seen.get(value, 0) + values.count(value)
        after = vm.values()
    assert set(seen) == {-1, 0x0101010101010101, 1 << 62}
    assert sum(seen.values()) == made * 10_000
    assert int(after["t.histogram.sum"]) > int(before["t.histogram.sum"])
    assert after['t.histogram.bucket{le="+Inf"}'] == 0


LONG_TEXTS = """
import threading, time
text = vmscope.text("t.text", capacity=30_000)
texts = ["a" * 30_000, "b" * 30_000, "c" * 29_999]
text.set(texts[0])
def write():
    while True:
        for one in texts:
            text.set(one)
            time.sleep(0.0005)  # else the mirror hardly ever meets a whole one
threading.Thread(target=write, daemon=True).start()
"""


@pytest.mark.parametrize("mode", ["-XX:+PerfDataMirror", "-XX:-PerfDataMirror"])
def test_a_reader_in_another_process_sees_no_torn_text(start_vmscope: StartVMScope, mode: str) -> None:
    options = ["-XX:PerfDataSamplingInterval=1", "-XX:PerfDataMemorySize=128k", mode]
    with vmscope.vm(start_vmscope(*options, code=LONG_TEXTS).pid) as vm:
        wait_for(lambda: vm.values().get("t.text"), "the text does not come")
        end = time.monotonic() + 20
        seen: set[tuple[str, int]] = set()
        attempts = whole = 0
        until = time.monotonic() + 1.5
        while time.monotonic() < until or len(seen) < 3:
            assert time.monotonic() < end, f"{seen} after {attempts} attempts"
            snapshot = vm.snapshot()
            attempts += 1
            if snapshot.whole:
                whole += 1
                value = str(snapshot.values["t.text"])
                seen.add((value[:1], len(value)))
                assert value == value[:1] * len(value)
    assert seen == {("a", 30_000), ("b", 30_000), ("c", 29_999)}
    assert whole > attempts / 2


# -- the end --------------------------------------------------------------------------------------

END = """
import atexit, sys, threading, time
import vmscope

counter = vmscope.counter("t.counter")
gauge = vmscope.gauge("t.gauge")
histogram = vmscope.histogram("t.histogram", bounds=[1])
text = vmscope.text("t.text")
child = counter.labels(a="b")
updates = [
    counter.inc, gauge.dec, child.inc,
    lambda: histogram.observe(1),
    lambda: text.set("x"),
    lambda: counter.labels(a="b").inc(),
    lambda: histogram.labels(a="b").observe(2),
    lambda: histogram.time().__enter__().__exit__(None, None, None),
]

def update_all(updates=updates):
    for update in updates:
        update()

class Dying:
    def __del__(self, update_all=update_all):
        update_all()

def work():
    while True:
        update_all()

def at_exit():
    update_all()
    vmscope.counter("t.at.exit").inc()

update_all()
if sys.argv[1] == "started":
    vmscope.start(f"-XX:PerfDataSaveFile={sys.argv[2]}")
atexit.register(at_exit)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
dying = Dying()
dying.cycle = dying
sys.last = Dying()  # goes with the sys module, after all others
time.sleep(0.05)
"""


@pytest.mark.parametrize("state", ["started", "unstarted"])
def test_updates_while_the_interpreter_ends(state: str, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    for _ in range(5):
        assert run(END, state, str(path)) == []
    if state == "started":
        saved = path.read_bytes()
        values = decode(saved).values(saved)
        assert int(values["t.counter"]) > 0
        assert int(values["t.gauge"]) < 0
        assert values["t.at.exit"] == 1


# -- sub-interpreters -----------------------------------------------------------------------------

IN_EACH = """
import json, os
import vmscope
counter = vmscope.counter("t.counter")
assert counter.value == 0
counter.inc()
counter.labels(a="b").add(2)
histogram = vmscope.histogram("t.histogram", bounds=[1])
with histogram.time():
    pass
vmscope.start()
status = vmscope.status()
found = [status.path is not None, bool(status.reason), counter.value, counter.labels(a="b").value, histogram.count]
os.write(FD, (json.dumps([*found, status.implementation]) + "\\n").encode())
"""

SUB_INTERPRETERS = f"""{SETTLED}
import json, os, sys, time
import vmscope
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

counter = vmscope.counter("t.counter")
counter.add(5)
if sys.argv[1] == "main":
    vmscope.start()
read, write = os.pipe()
for _ in range(3):
    made = interpreters.create()
    failure = interpreters.run_string(made, {IN_EACH!r}.replace("FD", str(write)))
    assert failure is None, failure
    interpreters.destroy(made)
    counter.inc()
os.close(write)
print(os.read(read, 10000).decode(), end="")
vmscope.start()
print(json.dumps([counter.value, vmscope.status().path is not None, settled()["t.counter"]]))
"""


@pytest.mark.parametrize("first", ["main", "sub"])
def test_each_interpreter_counts_for_itself_and_the_main_one_is_shown(first: str, implementation: str) -> None:
    *subs, main = run(SUB_INTERPRETERS, first, options=("-Wignore",))
    assert subs == [[False, True, 1, 2, 1, implementation]] * 3
    assert main == [8, True, 8]
