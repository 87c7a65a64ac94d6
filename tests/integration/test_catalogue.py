"""Each counter of the catalogue, driven in a live process, read from outside, against a source that is not vmscope.

`CHECKS` has one check a row; a row without one fails `test_every_counter_has_a_check`.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import vmscope
from tests.support import SETTLED, Child, python_command, rests, settled
from tests.wait import wait_for
from vmscope import native
from vmscope.counters.catalogue import CATALOGUE

LISTENER_THREADS = {"c": 2, "python": 1}

NAMES = [row[0] for row in CATALOGUE]
KINDS = {row[0]: row[1] for row in CATALOGUE}
FEEDS = {row[0]: row[3] for row in CATALOGUE}
OPTIONS = ["-XX:PerfDataSamplingInterval=20", "-Dcheck=1"]

PROGRAM = f"""
import gc, mmap, os, resource, sys, threading, time, tracemalloc
pauses, bounds, causes, started, longest, began, ended = [[], [], []], [], [], 0, 0, 0, 0
import vmscope
vmscope.start(*{OPTIONS!r})
from vmscope.counters.registry import REGISTRY
def witness(phase, info):
    global started, longest
    if phase == "start":
        causes.append(REGISTRY.get("sun.gc.cause").value)
        started = time.monotonic_ns()
    else:
        stopped = time.monotonic_ns()
        pauses[info["generation"]].append(stopped - started)
        bounds.append((info["generation"], ended - started, stopped - began))
        longest = max(longest, pauses[info["generation"]][-1])
gc.callbacks.append(witness)
def herald(phase, info):
    global began, ended
    if phase == "start":
        began = time.monotonic_ns()
    else:
        ended = time.monotonic_ns()
gc.callbacks.insert(0, herald)
def burn(seconds=0.005):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
def ask_system(seconds=0.005):  # the kernel divides the time by where its ticks have met the process
    end = resource.getrusage(resource.RUSAGE_SELF).ru_stime + seconds
    while resource.getrusage(resource.RUSAGE_SELF).ru_stime < end:
        os.urandom(1_000_000)
kept = []
class Node:
    def __init__(self): self.me = self
print("ready", flush=True)
for line in sys.stdin:
    print(repr(eval(line)), flush=True)
"""


class Subject:
    """A process with vmscope started: what it says itself, and what its region says."""

    def __init__(self, implementation: str) -> None:
        self.implementation = implementation
        options = ["-Xutf8", "-Wignore::ImportWarning", "-Wdefault::ResourceWarning"]
        env = {"VMSCOPE_NATIVE": "1" if implementation == "c" else "0", "PYTHONHASHSEED": "7"}
        self.child = Child(python_command(PROGRAM, "one", "two", options=options), env=env)
        self.child.read_until(b"ready\n")
        self.pid = self.child.pid
        self.vm = vmscope.vm(self.pid)

    def ask(self, expression: str) -> Any:
        return ast.literal_eval(self.child.ask(expression))

    def do(self, code: str) -> None:
        self.ask(f"exec({code!r}, globals())")

    def value(self, name: str) -> Any:
        return self.vm.values()[name]

    def settled(self) -> Mapping[str, int | str]:
        """What the region shows when all that has happened until now is in it."""
        return settled(self.vm.values)

    def stands_still(self) -> None:
        """No more than one visit of the sampler in two seconds; the last ones of the work before may still come."""
        rests(self.vm.values, 2)

    def until(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        """Waits, with the program at work, so that samples are taken."""
        wait_for(lambda: condition() or self.burns(), seconds=seconds)

    def burns(self) -> bool:
        """The program has been at work once more; what is waited for is still to come."""
        self.ask("burn()")
        return False

    def until_equal(self, name: str, expected: str) -> None:
        """`expected` is an expression of the program's."""
        seen: list[tuple[object, object]] = []

        def equal() -> bool:
            seen.append((self.value(name), self.ask(expected)))
            return seen[-1][0] == seen[-1][1] or self.burns()

        wait_for(equal, lambda: f"{name}: {seen[-1]}")

    def until_near(self, name: str, source: Callable[[], float], share: float, slack: float = 0) -> None:
        seen: list[tuple[float, float]] = []

        def near() -> bool:
            seen.append((self.value(name), source()))
            return abs(seen[-1][0] - seen[-1][1]) <= abs(seen[-1][1]) * share + slack or self.burns()

        wait_for(near, lambda: f"{name}: {seen[-5:]}")

    def bracketed(self, name: str, source: str, drive: str, slack: int) -> None:
        """What only grows: after `drive` it is at least what the program read before, at most what it reads then."""
        before = self.value(name)
        self.do(drive)
        low = self.ask(source)
        self.until(lambda: self.value(name) + slack >= low)
        assert before <= low
        shown = self.value(name)
        assert shown <= self.ask(source) + slack


@pytest.fixture(scope="module", params=["c", "python"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    made = Subject(request.param)
    if made.ask("vmscope.status().implementation") != request.param:
        made.child.kill()
        pytest.skip("the extension is not built")
    yield made
    assert made.child.stop() == 0, "it still ends by itself"
    made.child.kill()


Check = Callable[[Subject], None]
CHECKS: dict[str, Check] = {}


def check(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a check for these rows; one of several rows is also given the name."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        for name in names:
            CHECKS[name] = function if len(names) == 1 else functools.partial(function, name=name)
        return function

    return register


@pytest.mark.parametrize("name", NAMES)
def test_counter(subject: Subject, name: str) -> None:
    if name not in subject.vm.values():
        pytest.skip("not in this form of the native part; see test_what_a_form_lacks")
    CHECKS[name](subject)


def test_every_counter_has_a_check() -> None:
    assert set(CHECKS) == set(NAMES)


def test_what_a_form_lacks(subject: Subject) -> None:
    missing = {name for name in NAMES if name not in subject.vm.values()}
    lacking = {name for name in NAMES if FEEDS[name].startswith(("scan:pools.", "scan:malloc."))}
    lacking |= {"python.gc.generation.2.objects", "python.gil.currentWait"}
    lacking |= {name for name in NAMES if FEEDS[name][1:] in lacking}
    assert missing == (lacking if subject.implementation == "python" else set())
    assert subject.ask("vmscope.status().overflow") == 0


def test_kinds_and_units(subject: Subject) -> None:
    """An outside reader finds each with the units and the variability of its row."""
    variability = {"constant": 1, "counter": 2, "clock": 2, "gauge": 3, "text": 3}
    counters = subject.vm.counters
    for name, kind, units, feed, *_ in CATALOGUE:
        if name in counters:
            target = KINDS[feed[1:]] if kind == "alias" else kind
            assert (counters[name].units, counters[name].variability) == (units, variability[target]), name


# -- aliases --------------------------------------------------------------------------------------


def _same(subject: Subject, name: str) -> None:
    """What it is an alias of has a check of its own; in one look both are the same, whenever that is."""
    target = FEEDS[name][1:]
    assert KINDS[target] != "alias"
    for _ in range(3):
        values = subject.vm.values()
        assert values[name] == values[target]
        subject.ask("burn(0.03)")


for row in CATALOGUE:
    if row[1] == "alias":
        CHECKS[row[0]] = functools.partial(_same, name=row[0])


# -- what is set once -----------------------------------------------------------------------------

ONCE = {
    "sun.rt.javaCommand": "'-c one two'",
    "java.rt.vmArgs": repr(" ".join(OPTIONS)),
    "java.rt.vmFlags": "''",
    "sun.rt.jvmVersion": "sys.hexversion",
    "sun.rt.internalVersion": "' '.join(sys.version.split())",
    "java.property.java.version": "'.'.join(map(str, sys.version_info[:3]))",
    "java.property.java.home": "sys.prefix",
    "java.property.java.class.path": "':'.join(sys.path)",
    "java.property.java.vm.name": "__import__('platform').python_implementation()",
    "java.property.java.vm.version": "__import__('platform').python_version()",
    "java.property.java.vm.vendor": "'Python Software Foundation'",
    "java.property.java.vm.info": "' '.join(sys.version.split()).split('(')[1].split(')')[0]",
    "java.property.java.vm.specification.name": "'Python Language Reference'",
    "java.property.java.vm.specification.vendor": "'Python Software Foundation'",
    "java.property.java.vm.specification.version": "__import__('sysconfig').get_python_version()",
    "python.abiFlags": "__import__('sysconfig').get_config_var('ABIFLAGS')",
    "python.debug": "__import__('sysconfig').get_config_var('Py_DEBUG') or 0",
    "python.platform": "__import__('platform').system().lower()",
    "python.executable": "sys.executable",
    "python.options": "'utf8'",
    "python.warnings": "'ignore::ImportWarning,default::ResourceWarning'",
    "python.virtualEnvironment": "sys.prefix if os.path.exists(sys.prefix + '/pyvenv.cfg') else ''",
    "python.hashSeedGiven": "1",
    "python.jit": "int(getattr(sys, '_jit', None) is not None and sys._jit.is_enabled())",
    "sun.os.hrt.frequency": "10 ** 9",
    "sun.gc.collector.0.name": "'generation 0'",
    "sun.gc.collector.1.name": "'generation 2'",
    "sun.gc.collector.2.name": "'generation 1'",
    "java.cls.sharedLoadedClasses": "0",
    "java.cls.sharedUnloadedClasses": "0",
    "vmscope.version": "vmscope.__version__",
    "vmscope.service": "''",
    "vmscope.implementation": "vmscope.status().implementation",
    "vmscope.implementation.reason": "'VMSCOPE_NATIVE=0' if os.environ.get('VMSCOPE_NATIVE') == '0' else ''",
}


def _once(subject: Subject, name: str) -> None:
    expected = subject.ask(ONCE[name])
    if isinstance(expected, str):  # as far as it fits
        expected = expected.encode()[:1024].decode(errors="ignore")
    assert subject.value(name) == expected


CHECKS |= {name: functools.partial(_once, name=name) for name in ONCE}


@check("python.commandLine")
def command_line(subject: Subject) -> None:
    words = Path(f"/proc/{subject.pid}/cmdline").read_bytes().split(b"\0")[:-1]
    assert subject.value("python.commandLine") == " ".join(map(os.fsdecode, words))[:1024]


@check("python.flags")
def flags(subject: Subject) -> None:
    words = subject.value("python.flags").split()
    assert "utf8_mode=1" in words
    assert [word for word in words if word.endswith(("=0", "=False"))] == []
    for word in words:
        name, _, text = word.partition("=")
        assert repr(subject.ask(f"sys.flags.{name}")) == text


@check("sun.rt.jvmCapabilities")
def capabilities(subject: Subject) -> None:
    """Whoever finds a socket need not send a signal, which ends a process that does not handle it."""
    attachable = Path(f"/tmp/.java_pid{subject.pid}").is_socket()
    assert subject.value("sun.rt.jvmCapabilities") == f"{attachable:d}" + "0" * 63


# -- time -----------------------------------------------------------------------------------------


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the third on."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


@check("sun.os.hrt.ticks")
def ticks(subject: Subject) -> None:
    started = time.monotonic() - subject.value("sun.os.hrt.ticks") / 1e9
    time.sleep(1)  # what the clock counts
    subject.until(  # half a second behind at most, where the mirror is let run
        lambda: abs(time.monotonic() - subject.value("sun.os.hrt.ticks") / 1e9 - started) < 0.8
    )


@check("sun.rt.createVmBeginTime")
def begin_time(subject: Subject) -> None:
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    begun = boot + int(_stat(subject.pid)[19]) / os.sysconf("SC_CLK_TCK")
    assert abs(subject.value("sun.rt.createVmBeginTime") / 1000 - begun) < 0.5


@check("sun.rt.createVmEndTime", "sun.rt.vmInitDoneTime")
def ready_times(subject: Subject, name: str) -> None:
    values = subject.vm.values()
    assert int(values["sun.rt.createVmBeginTime"]) < int(values[name])
    # the clock is half a second behind at most, where the mirror is let run
    subject.until(lambda: abs(int(values[name]) / 1000 - (time.time() - subject.value("sun.os.hrt.ticks") / 1e9)) < 1)


@check("vmscope.process.startTicks")
def start_ticks(subject: Subject) -> None:
    assert subject.value("vmscope.process.startTicks") == int(_stat(subject.pid)[19])


@check("vmscope.problem")
def problem(subject: Subject) -> None:
    assert subject.value("vmscope.problem") == ""
    subject.do("from vmscope import runtime; runtime.VM.note_problem('\N{GREEK SMALL LETTER ALPHA} is missing')")
    subject.until(lambda: subject.value("vmscope.problem") == "\\u03b1 is missing")


@check("vmscope.process.stackStart")
def stack_start(subject: Subject) -> None:
    assert subject.value("vmscope.process.stackStart") == int(_stat(subject.pid)[25])


# -- the collector --------------------------------------------------------------------------------

COLLECTOR = {0: 0, 1: 2, 2: 1}  # of each generation


def _collect(subject: Subject, generation: int) -> None:
    subject.do(
        "gc.disable()\n"
        "for _ in range(3):\n"
        f"    for _ in range(60_000): Node()\n"
        f"    gc.collect({generation})\n"
        "gc.enable()"
    )


def _stats(subject: Subject, name: str) -> None:
    generation = next(g for g in range(3) if name.startswith(_prefixes(g)))
    key = {"invocations": "collections"}.get(name.rpartition(".")[2], name.rpartition(".")[2])
    before = subject.value(name)
    if key == "uncollectable":
        _leave_uncollectable(subject)
    _collect(subject, generation)
    subject.until_equal(name, f"gc.get_stats()[{generation}]['{key}']")
    if key != "uncollectable" or subject.ask("bool(gc.garbage)"):
        assert subject.value(name) > before or key == "uncollectable"


def _prefixes(generation: int) -> tuple[str, str]:
    return f"sun.gc.collector.{COLLECTOR[generation]}.", f"python.gc.generation.{generation}."


def _leave_uncollectable(subject: Subject) -> None:
    subject.do(
        "try:\n"
        "    from _testcapi import with_tp_del\n"
        "except ImportError:\n"
        "    pass\n"
        "else:\n"
        "    @with_tp_del\n"
        "    class Stuck:\n"
        "        def __tp_del__(self): pass\n"
        "    for _ in range(5):\n"
        "        stuck = Stuck(); stuck.me = stuck\n"
        "    del stuck"
    )


def _time(subject: Subject, name: str) -> None:
    """Our look at the clock comes between two of the program's own, at the start of a collection and at its end.

    So what we counted lies between their sums, however busy the machine; where it is not, these are close together.
    """
    generation = next(g for g in range(3) if name.startswith(_prefixes(g)))
    for _ in range(5):
        subject.until_equal(name.replace("time", "invocations"), f"gc.get_stats()[{generation}]['collections']")
        before = subject.value(name)
        subject.do("bounds.clear()")
        _collect(subject, generation)
        subject.until_equal(name.replace("time", "invocations"), f"gc.get_stats()[{generation}]['collections']")
        assert subject.ask(f"len([1 for g, _, _ in bounds if g == {generation}])") >= 3
        inner = subject.ask(f"sum(inner for g, inner, _ in bounds if g == {generation})")
        outer = subject.ask(f"sum(outer for g, _, outer in bounds if g == {generation})")
        assert inner <= subject.value(name) - before <= outer
        if inner >= outer * 0.95:
            break


for g in range(3):
    collector, own = _prefixes(g)
    for name in (collector + "invocations", own + "collected", own + "uncollectable"):
        CHECKS[name] = functools.partial(_stats, name=name)
    CHECKS[collector + "time"] = functools.partial(_time, name=collector + "time")


@check("python.gc.generation.2.objects")
def long_lived(subject: Subject) -> None:
    name, source = "python.gc.generation.2.objects", "len(gc.get_objects(2))"
    before = subject.ask(f"[gc.collect(), {source}][1]")
    subject.until_near(name, lambda: subject.ask(source), 0.02, 500)
    subject.do("kept.extend([] for _ in range(300_000)); gc.collect(1)")  # or earlier: what survives that goes there
    subject.until_near(name, lambda: subject.ask(source), 0.02, 500)
    assert subject.value(name) - before > 290_000
    subject.do("kept.clear(); gc.collect()")
    subject.until_near(name, lambda: subject.ask(source), 0.02, 500)
    assert abs(subject.value(name) - before) < 5_000


@check("python.gc.longestPause")
def longest_pause(subject: Subject) -> None:
    """As above; each attempt takes longer than the one before."""
    seen: list[tuple[int, int]] = []
    while not seen or abs(seen[-1][0] - seen[-1][1]) > seen[-1][1] * 0.05:
        assert len(seen) < 10, seen
        subject.do(f"kept.extend([] for _ in range({200_000 * (len(seen) + 1)})); gc.collect()")
        subject.settled()
        seen.append((subject.value("python.gc.longestPause"), subject.ask("longest")))
    subject.do("kept.clear()")


@check("sun.gc.cause")
def cause(subject: Subject) -> None:
    subject.do("causes.clear(); gc.collect(1); gc.collect(2)")
    assert subject.ask("causes[:2]") == ["generation 1", "generation 2"]
    subject.until(lambda: subject.value("sun.gc.cause") == "No GC")


@check("sun.gc.lastCause")
def last_cause(subject: Subject) -> None:
    for generation in (2, 1):
        subject.do(f"gc.disable(); gc.collect({generation})")
        subject.until(lambda generation=generation: subject.value("sun.gc.lastCause") == f"generation {generation}")  # type: ignore[misc]
    subject.do("gc.enable()")


@check(*(f"python.gc.generation.{g}.count" for g in range(3)))
def generation_count(subject: Subject, name: str) -> None:
    generation = int(name.split(".")[3])
    drive = [
        "kept.extend([] for _ in range(5000))",
        "[gc.collect(0) for _ in range(3)]",
        "[gc.collect(1) for _ in 'ab']",
    ]
    subject.do(f"gc.disable(); gc.collect(); {drive[generation]}")
    expected = subject.ask("gc.get_count()")[generation]
    assert expected >= (5000, 3, 2)[generation]
    subject.until_near(name, lambda: subject.ask("gc.get_count()")[generation], 0.05 if generation == 0 else 0)
    subject.do("gc.enable(); kept.clear()")


@check(*(f"python.gc.generation.{g}.threshold" for g in range(3)))
def generation_threshold(subject: Subject, name: str) -> None:
    before = subject.ask("gc.get_threshold()")
    subject.do("gc.set_threshold(701, 11, 12)")
    subject.until(lambda: subject.value(name) == subject.ask("gc.get_threshold()")[int(name.split(".")[3])])
    subject.do(f"gc.set_threshold(*{before})")
    subject.until(lambda: subject.value(name) == before[int(name.split(".")[3])])


@check("python.gc.enabled")
def collector_enabled(subject: Subject) -> None:
    for call, shown in (("disable", 0), ("enable", 1)):
        subject.do(f"gc.{call}()")
        subject.until(lambda shown=shown: subject.value("python.gc.enabled") == shown)  # type: ignore[misc]
        assert subject.ask("gc.isenabled()") == bool(shown), "a sample leaves it as it was"


@check("python.gc.garbage")
def garbage(subject: Subject) -> None:
    subject.do("gc.garbage.extend([1, 2, 3])")
    subject.until_equal("python.gc.garbage", "len(gc.garbage)")
    assert subject.value("python.gc.garbage") >= 3
    subject.do("gc.garbage.clear()")
    subject.until_equal("python.gc.garbage", "0")


# -- memory ---------------------------------------------------------------------------------------


def _pymalloc(subject: Subject) -> dict[str, int]:
    """What CPython itself prints about its pools."""
    code = """
import tempfile
with tempfile.TemporaryFile() as file:
    saved = os.dup(2)
    os.dup2(file.fileno(), 2)
    sys._debugmallocstats()
    os.dup2(saved, 2)
    os.close(saved)
    file.seek(0)
    printed = file.read().decode()
"""
    subject.do(code)
    printed: str = subject.ask("printed")
    classes = re.findall(r"^ +\d+ +\d+ +\d+ +(\d+) +\d+$", printed, re.MULTILINE)
    arenas = re.search(r"# arenas allocated current += +([\d,]+)", printed)
    used = re.search(r"# bytes in allocated blocks += +([\d,]+)", printed)
    assert arenas, printed
    assert used, printed
    return {
        "blocks": sum(map(int, classes)),
        "arenas": int(arenas[1].replace(",", "")),
        "used": int(used[1].replace(",", "")),
    }


@check(*(f"python.memory.small.{key}" for key in ("used", "blocks", "arenas", "capacity")))
def small_objects(subject: Subject, name: str) -> None:
    key = name.rpartition(".")[2]
    factor, source = (1 << 20, "arenas") if key == "capacity" else (1, key)
    before = _pymalloc(subject)[source]
    for size in (40, 400):  # of different size classes
        subject.do(f"kept.extend(bytes({size}) for _ in range(100_000))")
        subject.until_near(name, lambda: _pymalloc(subject)[source] * factor, 0.01, factor if source == "arenas" else 0)
    grown = {"used": 40_000_000, "blocks": 190_000, "arenas": 10, "capacity": 10}[key]
    assert _pymalloc(subject)[source] - before >= grown
    subject.do("kept.clear(); gc.collect()")
    subject.until_near(name, lambda: _pymalloc(subject)[source] * factor, 0.01, factor if source == "arenas" else 0)


MALLINFO = """
import ctypes
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]
mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Info
"""


@check(*(f"python.memory.malloc.{key}" for key in ("used", "capacity", "mapped")))
def malloc(subject: Subject, name: str) -> None:
    assert hasattr(ctypes.CDLL(None), "mallinfo2")
    subject.do(MALLINFO)
    source = {"used": "uordblks + i.hblkhd", "capacity": "arena + i.hblkhd", "mapped": "hblkhd"}[
        name.rpartition(".")[2]
    ]
    subject.until_near(name, lambda: subject.ask(f"[i.{source} for i in [mallinfo2()]][0]"), 0.01, 1 << 18)
    before = subject.value(name)
    for size in (40 << 20, 1000):  # mapped, and not
        subject.do(f"kept.extend(bytearray({size}) for _ in range(max(1, 20_000_000 // {size})))")
        subject.until_near(name, lambda: subject.ask(f"[i.{source} for i in [mallinfo2()]][0]"), 0.01, 1 << 18)
    assert subject.value(name) - before >= 39 << 20
    subject.do("kept.clear()")
    subject.until_near(name, lambda: subject.ask(f"[i.{source} for i in [mallinfo2()]][0]"), 0.01, 1 << 18)


def _status(subject: Subject, key: str) -> int:
    text = Path(f"/proc/{subject.pid}/status").read_text()
    found = re.search(rf"^{key}:\s+(\d+) kB$", text, re.MULTILINE)
    assert found, text
    return int(found[1]) * 1024


@check("python.memory.resident", "python.memory.peak", "python.memory.virtual")
def memory(subject: Subject, name: str) -> None:
    key = {"resident": "VmRSS", "peak": "VmHWM", "virtual": "VmSize"}[name.rpartition(".")[2]]
    before = _status(subject, key)
    subject.do("kept.append(bytearray(os.urandom(1000) * 60_000))")
    subject.until_near(name, lambda: _status(subject, key), 0.02, 1 << 19)
    assert key == "VmHWM" or _status(subject, key) - before >= 59_000_000
    subject.do("kept.clear()")
    subject.until_near(name, lambda: _status(subject, key), 0.02, 1 << 19)


# Before 3.12.9 and 3.13.2 CPython may crash where tracemalloc stops while another thread makes a thread state.
STOP_IS_SAFE = (3, 12, 9) <= sys.version_info[:3] < (3, 13) or sys.version_info[:3] >= (3, 13, 2)


@check("python.memory.traced", "python.memory.tracedPeak")
def traced(subject: Subject, name: str) -> None:
    if STOP_IS_SAFE:
        traces(subject, name)
        subject.do("tracemalloc.stop(); kept.clear()")
        subject.until(lambda: subject.value(name) == 0)
    else:
        of_its_own = Subject(subject.implementation)
        traces(of_its_own, name)
        of_its_own.child.kill()


def traces(subject: Subject, name: str) -> None:
    assert subject.value(name) == 0
    position = int(name.endswith("Peak"))
    subject.do(
        "tracemalloc.start(); kept.append(bytearray(30_000_000)); kept.clear(); kept.append(bytearray(10_000_000))"
    )
    subject.until_near(name, lambda: subject.ask("tracemalloc.get_traced_memory()")[position], 0.02)
    assert subject.value(name) >= (10_000_000, 30_000_000)[position]


# -- threads --------------------------------------------------------------------------------------

THREADS = """
leave = threading.Event()
crowd = [threading.Thread(target=leave.wait, daemon=i < 3) for i in range(8)]
for thread in crowd: thread.start()
"""
LEAVE = "leave.set()\nfor thread in crowd: thread.join()"


@check("python.threads.live", "python.threads.daemon")
def threads(subject: Subject, name: str) -> None:
    source = {
        "live": "threading.active_count()",
        "daemon": "sum(thread.daemon for thread in threading.enumerate())",
    }[name.rpartition(".")[2]]
    subject.do(THREADS)
    assert subject.ask(source) == {"live": 9, "daemon": 3}[name.rpartition(".")[2]]
    subject.until_equal(name, source)
    subject.do(LEAVE)
    subject.until_equal(name, source)


@check("python.threads.peak")
def threads_peak(subject: Subject) -> None:
    subject.do(THREADS)
    subject.until(lambda: subject.value("python.threads.live") == 9)
    subject.do(LEAVE)
    subject.until(lambda: subject.value("python.threads.live") == 1)
    assert subject.value("python.threads.peak") == 9


@check("python.threads.started")
def threads_started(subject: Subject) -> None:
    before = subject.value("python.threads.started")
    subject.do(THREADS)
    subject.until(lambda: subject.value("python.threads.started") == before + 8)
    subject.do(LEAVE)
    if subject.implementation == "c":  # which sees those too that were never seen alive
        subject.do("for i in range(20): thread = threading.Thread(target=int); thread.start(); thread.join()")
        subject.until(lambda: subject.value("python.threads.started") == before + 28)


# -- the GIL --------------------------------------------------------------------------------------


@check("python.gil.enabled")
def gil_enabled(subject: Subject) -> None:
    subject.until_equal("python.gil.enabled", "int(getattr(sys, '_is_gil_enabled', lambda: True)())")


@check("python.gil.switchInterval")
def switch_interval(subject: Subject) -> None:
    for seconds in (0.0125, 0.005):
        subject.do(f"sys.setswitchinterval({seconds})")
        subject.until(lambda seconds=seconds: subject.value("python.gil.switchInterval") == seconds * 1e9)  # type: ignore[misc]


@check("python.gil.waits", "python.gil.waitTime", "python.gil.longestWait")
def gil_waits(subject: Subject, name: str) -> None:
    """With one busy thread each wait lasts for a switch interval, which is longer here than any wait before."""
    before, began = subject.vm.values(), time.monotonic_ns()
    interval = int(before["python.gil.longestWait"]) / 1e9 + 0.03
    subject.do(f"sys.setswitchinterval({interval}); burn({10 * interval + 0.5}); sys.setswitchinterval(0.005)")
    subject.until(lambda: int(subject.value("python.gil.longestWait")) >= 0.95e9 * interval)
    after = subject.settled()
    passed = time.monotonic_ns() - began
    waits, waited = (
        int(after[f"python.gil.{key}"]) - int(before[f"python.gil.{key}"]) for key in ("waits", "waitTime")
    )
    longest = int(after["python.gil.longestWait"])
    assert 1 <= waits <= int(after["vmscope.sampler.visits"]) - int(before["vmscope.sampler.visits"])
    assert 0.95e9 * interval <= longest <= waited <= passed


HOLD = """
import ctypes
def keep():
    return ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(2), 2)
"""


@check("python.gil.currentWait")
def gil_current_wait(shared: Subject) -> None:
    """A call in C that keeps the GIL is seen while it lasts, by the counters of whole waits too."""
    subject = Subject(shared.implementation)  # of its own: the longest wait of that one is to stay short
    before = subject.settled()
    subject.do(HOLD)
    subject.child.send("keep()")
    names = [f"python.gil.{name}" for name in ("currentWait", "waitTime", "longestWait", "waits")]
    seen: list[list[int]] = []
    while not seen or seen[-1][0] < 500_000_000:  # ns
        values = subject.settled()
        seen.append([int(values[name]) for name in names])
    wait, waited, longest, waits = seen[-1]
    assert sorted(seen) == seen
    assert waited >= int(before["python.gil.waitTime"]) + wait
    assert longest >= wait
    assert waits > int(before["python.gil.waits"])
    assert subject.child.ask("x") == "2"
    subject.until(lambda: subject.value("python.gil.currentWait") == 0)
    after = subject.settled()
    assert int(after["python.gil.waitTime"]) >= waited
    assert int(after["python.gil.longestWait"]) >= longest
    assert subject.child.stop() == 0
    subject.child.kill()


@check("python.gil.contention")
def gil_contention(subject: Subject) -> None:
    busy = "crowd = [threading.Thread(target=burn, args=[0.5]) for _ in range(4)]\nfor thread in crowd: thread.start()"
    subject.do(busy)
    seen = []
    while subject.ask("any(thread.is_alive() for thread in crowd)"):
        seen.append(subject.value("python.gil.contention"))
        time.sleep(0.05)  # several samples of the same
    assert 30 < max(seen) <= 100, "four of which three wait: 75"
    wait_for(lambda: not subject.value("python.gil.contention"), "nobody waits when nobody works")


# -- the process ----------------------------------------------------------------------------------

USAGE = "resource.getrusage(resource.RUSAGE_SELF)"
READ_FROM_DISK = """
import tempfile
with tempfile.TemporaryFile() as file:
    file.write(bytes(1 << 20)); file.flush(); os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as m:
        m.madvise(mmap.MADV_RANDOM)
        sum(m[::mmap.PAGESIZE])
"""


@check(
    "python.process.cpu.user",
    "python.process.cpu.system",
    "python.process.switches.voluntary",
    "python.process.switches.involuntary",
    "python.process.faults.minor",
    "python.process.faults.major",
)
def usage(subject: Subject, name: str) -> None:
    source, drive = {
        "user": (f"int({USAGE}.ru_utime * 1e9)", "burn(0.2)"),
        "system": (f"int({USAGE}.ru_stime * 1e9)", "ask_system()"),
        "voluntary": (f"{USAGE}.ru_nvcsw", "for _ in range(100): time.sleep(0.001)"),  # each is a voluntary switch
        "involuntary": (f"{USAGE}.ru_nivcsw", "burn(0.2)"),
        "minor": (f"{USAGE}.ru_minflt", "m = mmap.mmap(-1, 1 << 24); m.write(bytes(1 << 24)); m.close()"),
        "major": (f"{USAGE}.ru_majflt", READ_FROM_DISK),
    }[name.rpartition(".")[2]]
    before, own = subject.value(name), subject.ask(source)
    subject.bracketed(name, source, drive, 2000 if ".cpu." in name else 0)  # floats of microseconds
    if name.endswith("major") and subject.ask(source) == own:
        pytest.skip("temporary files are in memory here")
    least = {"user": 50_000_000, "system": 1_000_000, "involuntary": 0}.get(name.rpartition(".")[2], 100)
    assert subject.value(name) - before >= least


@check("python.process.files.open")
def open_files(subject: Subject) -> None:
    def source() -> int:
        return len(os.listdir(f"/proc/{subject.pid}/fd"))

    before = source()
    subject.do("kept.extend(open('/dev/null') for _ in range(30))")
    assert source() == before + 30
    subject.until(lambda: subject.value("python.process.files.open") == source())
    subject.do("[file.close() for file in kept]; kept.clear()")
    subject.until(lambda: subject.value("python.process.files.open") == before)


@check("python.process.files.limit")
def files_limit(subject: Subject) -> None:
    soft, hard = subject.ask("resource.getrlimit(resource.RLIMIT_NOFILE)")
    subject.do(f"resource.setrlimit(resource.RLIMIT_NOFILE, (321, {hard}))")
    subject.until(lambda: subject.value("python.process.files.limit") == 321)
    subject.do(f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))")
    subject.until(lambda: subject.value("python.process.files.limit") == soft)


# -- modules --------------------------------------------------------------------------------------

MAKE = "for i in range(40): sys.modules[f'made_{i}'] = sys"
REMOVE = "for i in range(40): del sys.modules[f'made_{i}']"


# Sleeps for no CPU time and counts all the same. `outer` imports `inner`; each says how long it took.
IMPORTED = """
import pathlib, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
folder.joinpath("inner.py").write_text("import time; time.sleep(0.2)")  # the time that an import takes
folder.joinpath("outer.py").write_text("import time; time.sleep(0.2); import inner")  # the time that an import takes
folder.joinpath("broken.py").write_text("import time; time.sleep(0.2); import inner; raise OSError")  # such
sys.path.insert(0, str(folder))
began = time.monotonic_ns()
try: __import__(NAME)
except OSError: pass
took = time.monotonic_ns() - began
sys.path.remove(str(folder))
for name in "inner", "outer": sys.modules.pop(name, None)
import shutil; shutil.rmtree(folder)
"""


@check("python.imports.time")
def import_time(subject: Subject) -> None:
    subject.do("import pathlib, shutil, tempfile")  # that is over now
    for name in ("outer", "broken"):
        before = subject.ask("REGISTRY.get('python.imports.time').value")  # the region is a moment behind
        subject.do(IMPORTED.replace("NAME", repr(name)))
        took = subject.ask("took")
        assert took > 400_000_000, "and that of the inner one is part of it"
        subject.until_near("python.imports.time", lambda before=before, took=took: before + took, 0.05)  # type: ignore[misc]


@check("python.modules", "java.cls.loadedClasses", "java.cls.unloadedClasses")
def modules(subject: Subject, name: str) -> None:
    names = ("python.modules", "java.cls.loadedClasses", "java.cls.unloadedClasses")
    subject.until_equal("python.modules", "len(sys.modules)")
    before = subject.vm.values()
    subject.do(MAKE)
    subject.until_equal("python.modules", "len(sys.modules)")
    grown = [int(subject.value(name)) - int(before[name]) for name in names]
    assert grown == [40, 40, 0]
    subject.do(REMOVE)
    subject.until_equal("python.modules", "len(sys.modules)")
    assert [int(subject.value(name)) - int(before[name]) for name in names] == [0, 40, 40]
    assert subject.value("java.cls.loadedClasses") - subject.value("java.cls.unloadedClasses") == subject.value(
        "python.modules"
    )


# -- the sampler ----------------------------------------------------------------------------------


@check("vmscope.sampler.visits")
def visits(subject: Subject) -> None:
    before, began = subject.value("vmscope.sampler.visits"), time.monotonic()
    subject.do("burn(0.5)")
    subject.settled()
    made, passed = subject.value("vmscope.sampler.visits") - before, time.monotonic() - began
    assert 5 <= made <= passed / 0.02 + 2
    subject.stands_still()


@check("vmscope.sampler.visitTime", "vmscope.sampler.longestVisit")
def visit_time(subject: Subject, name: str) -> None:
    """Some instructions at least; the longest no shorter than the mean. One of some means is what a quiet machine has;
    the twin's visits read files too, and give the GIL away for that.
    """
    most = 100_000 if subject.implementation == "c" else 20_000_000
    means: list[float] = []
    while not means or min(means) > most:
        assert len(means) < 6, means
        before = subject.vm.values()
        subject.do("burn(0.3)")
        after = subject.settled()
        (old, _, seen), (total, longest, count) = (
            [int(values[f"vmscope.sampler.{key}"]) for key in ("visitTime", "longestVisit", "visits")]
            for values in (before, after)
        )
        assert count > seen
        means.append((total - old) / (count - seen))
        assert total / count <= longest <= total
        assert 1000 < means[-1] <= longest
    assert int(after[name]) >= means[-1]


@check("vmscope.cpu")
def own_cpu(subject: Subject) -> None:
    """The kernel's account of all threads but the main one."""

    def source() -> int:
        tasks = [task for task in Path(f"/proc/{subject.pid}/task").iterdir() if task.name != str(subject.pid)]
        assert len(tasks) == 2 + LISTENER_THREADS[subject.value("vmscope.implementation")], (
            "the mirror, the sampler and the listener's"
        )
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)

    subject.do("burn(0.3)")
    subject.until_near("vmscope.cpu", source, 0.1, 2_000_000)


# -- importlib, and what is put into it ------------------------------------------------------------


def test_tracebacks_of_imports_are_as_without(implementation: str, tmp_path: Path) -> None:
    tmp_path.joinpath("broken.py").write_text("1 / 0\n")
    code = """
import importlib, sys, traceback
import vmscope
if sys.argv[1] != "never":
    vmscope.start()
if sys.argv[1] == "stopped":
    vmscope.stop()
sys.path.insert(0, "")
for load in (__import__, importlib.import_module):
    for name in ("no_such_module", "no_such_package.module", "broken"):
        try:
            load(name)
        except Exception:
            traceback.print_exc(file=sys.stdout)
import no_such_module
"""
    shown = set()
    for when in ("never", "started", "stopped"):
        run = subprocess.run(
            python_command(code, when),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert run.stdout.count("Traceback") == 6
        lines = run.stdout.splitlines()
        if implementation == "python":  # whose own frame is among importlib's, where those are shown
            lines = [line for line in lines if "<frozen importlib" not in line]
        shown.add((tuple(lines), run.stderr, run.returncode))
    assert len(shown) == 1


@pytest.mark.usefixtures("implementation")
def test_stop_takes_it_out_of_importlib() -> None:
    code = """
import sys
import vmscope
importlib = sys.modules["_frozen_importlib"]
original = importlib._find_and_load
vmscope.start()
ours = importlib._find_and_load
vmscope.stop()
print(ours is not original, importlib._find_and_load is original)
vmscope.start()
ours = importlib._find_and_load
importlib._find_and_load = lambda *arguments: ours(*arguments)
vmscope.stop()
import json
print(importlib._find_and_load is not original, json.dumps(1))
"""
    with Child(python_command(code)) as child:
        assert child.readline() == "True True"
        assert child.readline() == "True 1"
        assert child.stop() == 0


def test_what_was_put_off_is_read_when_the_program_stands_still(implementation: str) -> None:
    """All that happens comes within one period of what is not read at each sample; then nothing uses the CPU."""
    with Child(python_command(PROGRAM)) as child:
        child.read_until(b"ready\n")
        vm = vmscope.vm(child.pid)
        child.ask("burn(0.3)")
        # burn: so that a sample comes after the files
        child.ask("kept.extend([bytearray(b'x') * 60_000_000, *(open('/dev/null') for _ in range(99))]) or burn(0.01)")
        sources = {"python.memory.peak": 60_000_000, "python.process.files.open": 102}
        if implementation == "c":
            sources["python.memory.malloc.mapped"] = 60_000_000

        def grown() -> dict[str, int | str] | None:  # only the region is looked at
            found = vm.values()
            return found if all(int(found[name]) >= least for name, least in sources.items()) else None

        values = wait_for(grown, lambda: {name: vm.values()[name] for name in sources})
        assert values["python.process.files.open"] == len(os.listdir(f"/proc/{child.pid}/fd"))
        assert int(values["python.memory.peak"]) >= int(values["python.memory.resident"])
        rests(vm.values, 1.5)
        assert child.stop() == 0


# -- without a sampler, and around it -------------------------------------------------------------


def test_interval_0_turns_it_off() -> None:
    code = PROGRAM.replace(OPTIONS[0], "-XX:PerfDataSamplingInterval=0")
    with Child(python_command(code)) as child:
        child.read_until(b"ready\n")
        child.ask("burn(0.3)")
        child.ask("gc.collect()")
        values = settled(vmscope.vm(child.pid).values)
        assert values["vmscope.sampler.visits"] == 0
        assert values["python.process.cpu.user"] == 0
        assert int(values["sun.gc.collector.1.invocations"]) > 0, "the mirror is at work"
        assert len(os.listdir(f"/proc/{child.pid}/task")) == 2 + LISTENER_THREADS[native.IMPLEMENTATION]
        assert child.stop() == 0


def test_a_forked_child_counts_from_zero() -> None:
    code = f"""{SETTLED}
import os, sys, threading, time
import vmscope
vmscope.start("-XX:PerfDataSamplingInterval=10")
leave = threading.Event()
for _ in range(3): threading.Thread(target=leave.wait, daemon=True).start()
end = time.thread_time() + 0.3
while time.thread_time() < end: pass
pid = os.fork()
if pid == 0:
    def burn(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end: pass
    burn(0.1)
    threading.Thread(target=leave.wait, daemon=True).start()
    burn(0.2)
    from tests.wait import wait_for
    wait_for(lambda: str(os.getpid()) in (vmscope.status().path or ""))
    v = settled()
    print([v["python.threads.started"], v["python.threads.live"], v["python.threads.peak"],
           0 < v["python.process.cpu.user"] < 350_000_000, v["vmscope.sampler.visits"] > 0], flush=True)
    os._exit(0)
os.waitpid(pid, 0)
v = settled()
print([v["python.threads.started"], v["python.threads.live"]], flush=True)
"""
    with Child(python_command(code, options=["-Wignore"])) as child:
        assert ast.literal_eval(child.readline()) == [2, 2, 2, True, True]
        assert ast.literal_eval(child.readline()) == [4, 4]
        assert child.stop() == 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 does not warn")
def test_no_fork_warning_while_sampling() -> None:
    code = """
import os, vmscope
vmscope.start("-XX:PerfDataSamplingInterval=1")
for _ in range(100):
    sum(range(20_000))
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
print(len(os.listdir("/proc/self/task")), flush=True)
"""
    with Child(python_command(code, options=["-Werror"])) as child:
        assert int(child.readline()) <= 5
        assert child.stop() == 0
