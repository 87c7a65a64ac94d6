"""What the JDK's jstat shows of a Python process, column by column, against what the process says of itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import Any

import pytest

import vmscope
from tests.conftest import StartVMScope
from tests.support import JDK, SETTLED, Child, settled
from tests.wait import wait_for
from vmscope import native

PROGRAM = (
    SETTLED
    + """
import gc, os, subprocess, time
times = [0, 0, 0]
def witness(phase, info):
    global began
    if phase == "start":
        began = time.monotonic_ns()
    else:
        times[info["generation"]] += time.monotonic_ns() - began
gc.collect()
gc.callbacks.append(witness)
class Node:
    def __init__(self): self.me = self
kept = [[i] for i in range(200_000)]
def work():
    gc.disable()
    for generation in (0, 1, 2, 2, 1, 0, 0):
        for _ in range(50_000): Node()
        gc.collect(generation)
    import asyncio, decimal, email.message, json, logging
def settle():  # the last sample, and the mirror's next visit; the first call imports what it needs
    settled()
    sum(range(3_000_000))
    time.sleep(1)  # the sampler's next visit, at rest
    settled()
"""
)

# Where CPython has nothing to show.
EMPTY = {
    "-gc": "S0C S1C S0U S1U MC MU CCSC CCSU",
    "-gcutil": "S0 S1 M CCS",
    "-gccause": "S0 S1 M CCS",
    "-gcnew": "S0C S1C S0U S1U TT MTT DSS",
    "-gcold": "MC MU CCSC CCSU",
    "-class": "Bytes",
}
OPTIONS = (
    "-class -compiler -gc -gccapacity -gccause -gcmetacapacity -gcnew -gcnewcapacity -gcold -gcoldcapacity -gcutil "
    "-printcompilation"
).split()

pytestmark = pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin does not know the heaps")


@pytest.fixture
def child(start_vmscope: StartVMScope) -> Child:
    return start_vmscope(code=PROGRAM)


def ask(child: Child, expression: str) -> Any:
    return ast.literal_eval(child.ask(expression))


def columns(jdk: JDK, option: str, pid: int) -> dict[str, str]:
    header, values = jdk.run("jstat", option, str(pid)).stdout.splitlines()
    if option == "-gccause":  # whose values have blanks in them
        *numbers, last, none = values.replace("generation ", "generation_").replace("No GC", "No_GC").split()
        return dict(zip(header.split(), [*numbers, last.replace("_", " "), none.replace("_", " ")], strict=True))
    return dict(zip(header.split(), values.split(), strict=True))


def test_the_collector(child: Child, jdk: JDK) -> None:
    """Counts equal to gc.get_stats(); times within 5 % of what a callback of the program's own measures.

    That callback and vmscope's look at the clock one after the other, and on a busy machine something may come in
    between: not time after time.
    """
    seen = []
    for _ in range(5):
        before = ask(child, "times"), columns(jdk, "-gc", child.pid)
        child.ask("[work(), settle()]")
        shown, stats, times = columns(jdk, "-gc", child.pid), ask(child, "gc.get_stats()"), ask(child, "times")
        assert [int(shown[name]) for name in ("YGC", "CGC", "FGC")] == [row["collections"] for row in stats]
        total = sum(float(shown[name]) for name in ("YGCT", "CGCT", "FGCT"))
        assert float(shown["GCT"]) == pytest.approx(total, abs=0.002)
        seen.append(
            [
                (float(shown[name]) - float(before[1][name]), (times[generation] - before[0][generation]) / 1e9)
                for generation, name in enumerate(("YGCT", "CGCT", "FGCT"))
            ]
        )
        if all(abs(ours - theirs) <= 0.05 * theirs + 0.001 for ours, theirs in seen[-1]):  # jstat shows ms
            return
    raise AssertionError(seen)


def test_causes(child: Child, jdk: JDK) -> None:
    child.ask("[work(), gc.collect(1), settle()]")
    shown = columns(jdk, "-gccause", child.pid)
    assert (shown["LGCC"], shown["GCC"]) == ("generation 1", "No GC")


def test_the_heaps(child: Child, jdk: JDK) -> None:
    """E: pymalloc's blocks in its arenas; O: the rest, as malloc tells. What feeds them has tests of its own."""
    child.ask("[kept.extend(bytes(100) for _ in range(100_000)), kept.append(bytearray(50_000_000))]")
    wait_for(
        lambda: int(vmscope.vm(child.pid).values()["python.memory.malloc.mapped"]) >= 50_000_000,
        "heaps are read when there is time, at the latest when the program stands still",
    )
    settled(vmscope.vm(child.pid).values)
    shown, utilized = columns(jdk, "-gc", child.pid), columns(jdk, "-gcutil", child.pid)
    blocks = ask(child, "__import__('sys').getallocatedblocks()")
    assert 16 * blocks < float(shown["EU"]) * 1024 < 512 * blocks
    assert float(shown["EU"]) <= float(shown["EC"])
    assert 50_000_000 / 1024 < float(shown["OU"]) <= float(shown["OC"])
    for share, used, capacity in (("E", "EU", "EC"), ("O", "OU", "OC")):
        assert float(utilized[share]) == pytest.approx(100 * float(shown[used]) / float(shown[capacity]), abs=0.5)


def test_modules(child: Child, jdk: JDK) -> None:
    before = columns(jdk, "-class", child.pid)
    loaded = ask(child, "len(sys.modules)")
    child.ask("[work(), settle()]")
    shown = columns(jdk, "-class", child.pid)
    assert int(shown["Loaded"]) - int(shown["Unloaded"]) == ask(child, "len(sys.modules)") > loaded + 20
    assert 0.01 < float(shown["Time"]) - float(before["Time"]) < 10


def test_what_there_is_none_of(child: Child, jdk: JDK) -> None:
    child.ask("[work(), settle()]")
    for option, names in EMPTY.items():
        shown = columns(jdk, option, child.pid)
        assert {name for name, value in shown.items() if value == "-"} == set(names.split())


def test_ours_shows_the_same(child: Child, jdk17: JDK) -> None:
    def shown(option: str) -> tuple[str, str, int]:
        command = [sys.executable, "-m", "vmscope", "jstat", option, str(child.pid)]
        ours = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return ours.stdout, ours.stderr, ours.returncode

    child.ask("[work(), settle()]")
    for option in OPTIONS:
        for _ in range(5):  # until no sample comes in between
            before = shown(option)
            theirs = jdk17.run("jstat", option, str(child.pid))
            if shown(option) == before:
                break
        assert before == (theirs.stdout, theirs.stderr, theirs.returncode)
