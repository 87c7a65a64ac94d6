"""What the sampler leaves undone so that the program does not wait for it."""

from __future__ import annotations

import ast
import subprocess
import sys
import time

import pytest

import vmscope
from tests import programs
from tests.support import Child, python_command, rests
from tests.wait import wait_for
from vmscope import native

PROGRAM = programs.source("sampler/program")
USED = "python.memory.malloc.used"


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin does not ask malloc")
def test_malloc_is_not_asked_while_it_has_very_many_free_chunks() -> None:
    """It would go through all of them with its lock held: 80 ms with these, in which the program stands."""
    with Child(python_command(PROGRAM)) as child:
        child.read_until(b"ready\n")
        vm = vmscope.vm(child.pid)
        if USED not in vm.values():
            pytest.skip("no mallinfo2")

        def used() -> int:
            return int(vm.values()[USED])

        def truth() -> dict[str, int]:
            shown: dict[str, int] = ast.literal_eval(
                child.ask("[{'used': i.uordblks + i.hblkhd, 'chunks': i.ordblks} for i in [mallinfo2()]][0]")
            )
            return shown

        child.ask("kept.extend(bytearray(600 + i % 50) for i in range(1_000_000))")
        child.ask("burn(0.3)")
        wait_for(lambda: abs(used() - truth()["used"]) < 10_000_000)
        child.ask("exec('del kept[::2]')")
        assert truth()["chunks"] > 400_000
        seen = set()
        for _ in range(10):  # at work, and at rest
            child.ask("burn(0.1)")
            time.sleep(0.1)  # at rest for as long
            seen.add(used())
        time.sleep(1)  # it would come by now
        assert len({*seen, used()}) <= 2, "it was asked at most once, while these were made"
        child.ask("[kept.clear(), burn(0.05)]")
        wait_for(lambda: abs(used() - truth()["used"]) < 1_000_000)
        assert truth()["chunks"] < 10_000
        assert child.stop() == 0


CROWD = """
threading.stack_size(1 << 17)
leave = threading.Event()
crowd = [threading.Thread(target=leave.wait, daemon=i % 2 == 0) for i in range(400)]
for thread in crowd: thread.start()
"""


def test_many_threads_are_counted_seldom_and_at_rest_too(implementation: str) -> None:
    with Child(python_command(PROGRAM)) as child:
        child.read_until(b"ready\n")
        vm = vmscope.vm(child.pid)

        def shown() -> list[object]:
            values = vm.values()
            return [values[f"python.threads.{key}"] for key in ("live", "daemon", "started")]

        child.ask(f"[exec({CROWD!r}), burn(0.1)]")
        wait_for(lambda: shown() == [401, 200, 401])  # at rest
        rests(vm.values, 6)
        child.ask("exec('leave.set()\\nfor thread in crowd: thread.join()')")
        changes = set()
        for _ in range(20):
            child.ask("burn(0.05)")
            changes.add((shown()[0], shown()[1]))
        assert len(changes) <= 3, "counted at each visit"
        wait_for(lambda: shown() == [1, 0, 401])
        assert child.stop() == 0


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin needs the GIL to tell of anything")
def test_what_needs_no_gil_is_told_while_a_call_keeps_it() -> None:
    """The sampler itself waits: the mirror reads in its place."""
    with Child(python_command(PROGRAM)) as child:
        child.read_until(b"ready\n")
        vm = vmscope.vm(child.pid)
        child.send("sum(__import__('itertools').repeat(1))")  # in C, without an end
        wait_for(lambda: int(vm.values()["python.gil.currentWait"]) > 0)
        seen = set()

        def goes_on() -> bool:
            seen.add(vm.values()["python.process.cpu.user"])
            return len(seen) > 3

        wait_for(goes_on)
        assert int(vm.values()["python.gil.currentWait"]) > 0


ONE_FOR_ANOTHER = programs.source("sampler/one_for_another")


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin counts them at each visit")
def test_daemons_are_counted_anew_where_another_thread_took_ones_place() -> None:
    run = subprocess.run(
        [sys.executable, "-c", ONE_FOR_ANOTHER], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout == "[1, 1, 0]\n"
