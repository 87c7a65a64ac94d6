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
from tests import programs
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

FORKS = programs.source("exactness/forks")


@pytest.mark.parametrize("state", ["started", "unstarted"])
def test_children_forked_amid_updates_count_from_zero(state: str, implementation: str) -> None:
    forks = 200 if implementation == "c" else 20
    failed, (done, *counted) = run(FORKS, state, str(forks), options=("-Wignore",))
    assert failed == []
    assert counted == [done] * 3


def test_the_first_update_of_a_child_is_not_slow(implementation: str) -> None:
    if implementation != "c":
        pytest.skip("the twin makes no promise about its speed")
    rounds = run(programs.source("exactness/first_update"))
    ((first, later),) = rounds
    assert first <= 5 * later


# -- another process reads ------------------------------------------------------------------------

WRITER = programs.source("exactness/writer")


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


LONG_TEXTS = programs.source("exactness/long_texts")


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

END = programs.source("exactness/end")


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
