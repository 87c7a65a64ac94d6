"""Samples of allocations: what they weigh, of which class and stack they are, and that nothing is left of the hook."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import StartVMScope
from tests.oracle.raw_attach import ask
from tests.support import JDK, Child
from tests.wait import wait_for
from vmscope.flight.convert import recording

pytestmark = pytest.mark.usefixtures("no_chunks_left")

EVENT = "jdk.ObjectAllocationSample"
MEAN = 64 << 10  # bytes from one sample to the next, without a throttle
CODE = """
import sys, tracemalloc

class Large:
    __slots__ = tuple("abcdefghijklmnopqrstuvwxyz")

class Small:
    __slots__ = ("a", "b")

def of_large(count):
    for _ in range(count):
        last = Large()

def of_small(count):
    for _ in range(count):
        last = Small()

def work(rounds):
    for _ in range(rounds):
        of_large(1000)
        of_small(1000)
    return 1000 * rounds * sys.getsizeof(Large()), 1000 * rounds * sys.getsizeof(Small())
"""
START = f"JFR.start name=a settings=none {EVENT}#enabled=true {EVENT}#stackTrace=true {EVENT}#throttle=off"
ROUNDS = 300


def jcmd(child: Child, text: str) -> str:
    status, body = ask(child.pid, "jcmd", text)
    assert status == "0", body
    return body


def weights(path: Path) -> Counter[tuple[str, str]]:
    """Bytes by class and innermost function."""
    found: Counter[tuple[str, str]] = Counter()
    for event in recording.events(str(path), EVENT):
        class_, stack = event.value("objectClass"), event.value("stackTrace")
        method = None if stack is None else stack.values("frames")[0].value("method")
        weight = event["weight"]
        assert isinstance(weight, int)
        found["" if class_ is None else class_.text("name"), "" if method is None else method.text("name")] += weight
    return found


def sampled(child: Child, path: Path, call: str) -> tuple[list[int], Counter[tuple[str, str]]]:
    assert "Started" in jcmd(child, START)
    allocated = [int(each) for each in child.ask(call).strip("()").split(",")]
    assert "Stopped" in jcmd(child, f"JFR.stop name=a filename={path}")
    return allocated, weights(path)


def check_shares(allocated: list[int], found: Counter[tuple[str, str]]) -> None:
    """The number of samples is Poisson's, their weights are exponential: the deviation of a sum is sqrt(2 sum mean)."""
    for expected, key in zip(allocated, [("__main__/Large", "of_large"), ("__main__/Small", "of_small")], strict=True):
        assert abs(found[key] - expected) < 5 * (2 * expected * MEAN) ** 0.5, (key, expected, found)


@pytest.mark.parametrize("allocator", ["pymalloc", "malloc", "pymalloc_debug", "malloc_debug"])
def test_weights_add_up_to_what_was_allocated(start_vmscope: StartVMScope, tmp_path: Path, allocator: str) -> None:
    child = start_vmscope(code=CODE, env={"PYTHONMALLOC": allocator})
    check_shares(*sampled(child, tmp_path / "a.jfr", f"work({ROUNDS})"))


def test_tracemalloc_above_the_hook(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    """It starts while samples are taken, and the hook stays below it after their end. It is not stopped: CPython up to
    3.13.1 crashes where a thread asks for raw memory meanwhile."""
    child = start_vmscope(code=CODE)
    check_shares(*sampled(child, tmp_path / "a.jfr", f"tracemalloc.start() or work({ROUNDS})"))
    check_shares(*sampled(child, tmp_path / "b.jfr", f"work({ROUNDS})"))


ALLOCATORS = """
import ctypes

class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]

def allocators():
    found = {1: Allocator(), 2: Allocator()}
    for domain, allocator in found.items():
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
    return found

def put_back(allocators):
    for domain, allocator in allocators.items():
        ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(allocator))

def same():
    return all(bytes(one) == bytes(before[domain]) for domain, one in allocators().items())

before = allocators()
"""


def test_a_hook_that_is_taken_out_comes_back(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    """As when tracemalloc stops that started before; and at the end the allocators are as they were."""
    child = start_vmscope(code=CODE + ALLOCATORS)
    assert "Started" in jcmd(child, START)
    assert child.ask("same()") == "False"
    child.ask("put_back(before)")

    def is_seen() -> bool:
        child.ask("work(20)")
        jcmd(child, f"JFR.dump name=a filename={tmp_path}/a.jfr")
        return weights(tmp_path / "a.jfr")["__main__/Large", "of_large"] > 0

    wait_for(is_seen, "the hook does not come back")
    jcmd(child, "JFR.stop name=a")
    check_shares(*sampled(child, tmp_path / "b.jfr", f"work({ROUNDS})"))
    assert child.ask("same()") == "True"


def test_the_views_show_them(start_vmscope: StartVMScope, jdk: JDK, tmp_path: Path) -> None:
    child = start_vmscope(code=CODE)
    assert "Started" in jcmd(child, START)
    child.ask(f"work({ROUNDS})")
    shown = jcmd(child, "JFR.view allocation-by-class")
    assert "Stopped" in jcmd(child, f"JFR.stop name=a filename={tmp_path}/a.jfr")
    assert "__main__.Large" in shown
    assert "__main__.Small" in shown
    printed = jdk.run("jfr", "print", "--events", EVENT, str(tmp_path / "a.jfr")).stdout
    assert "objectClass = __main__.Large" in printed
    assert "of_large()" in printed


def test_a_forked_child_allocates_without_samples(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    code = CODE + "import os\ndef fork():\n pid = os.fork()\n if not pid:\n  work(20)\n  os._exit(0)\n"
    code += " return os.waitpid(pid, 0)[1], 0\n"
    child = start_vmscope(code=code)
    allocated, found = sampled(child, tmp_path / "a.jfr", "fork()")
    assert allocated == [0, 0]
    assert found["__main__/Large", "of_large"] == 0
    check_shares(*sampled(child, tmp_path / "b.jfr", f"work({ROUNDS})"))


def test_the_throttle_keeps_its_rate(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    child = start_vmscope(code=CODE + "import time\ndef lasting():\n began = time.monotonic()\n"
                          " work(1500)\n return int(1000 * (time.monotonic() - began))\n")  # fmt: skip
    jcmd(child, START.replace("throttle=off", "throttle=100/s"))
    milliseconds = int(child.ask("lasting()"))
    jcmd(child, f"JFR.stop name=a filename={tmp_path}/a.jfr")
    count = sum(1 for _ in recording.events(str(tmp_path / "a.jfr"), EVENT))
    assert 20 < count < 2 * 100 * (milliseconds / 1000 + 1), milliseconds
