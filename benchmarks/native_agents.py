"""What native agents cost: their calls, to the same agent in a JVM; their callbacks, to C that CPython calls itself."""

from __future__ import annotations

import ctypes
import gc
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from benchmarks.events import SHORT, SUITE, added, calls, monitoring, plain
from benchmarks.floor import compile_to, module
from benchmarks.measure import Figure, Sample, Series, call, in_turns, output
from vmscope import native, tool

RAW = 2  # the tool id of the raw callback
OBJECTS = 1_000_000
WALKED = """
import asyncio, ctypes, decimal, email, http.client, logging.handlers, multiprocessing.pool, sqlite3, unittest
class Order:
    def __init__(self, lines):
        self.lines, self.next = lines, None
kept = [[number, str(number)] for number in range(50_000)], [Order([each]) for each in range(20_000)]
"""
WALK_LIMIT = 5.0
TIMED = ("GetPhase", "Allocate and Deallocate", "SetEnvironmentLocalStorage")


def build(folder: str) -> str:
    """The agent, against a JDK's own header. RuntimeError without one."""
    from jdk import find

    found = find(17)
    include = None if found is None else Path(found).parent / "include"
    if include is None or not (include / "jvmti.h").is_file():
        raise RuntimeError("no JDK 17 with include/jvmti.h")
    library = f"{folder}/libagent.so"
    compile_to(library, "agent.c", f"-I{include}", f"-I{include}/linux")
    return library


def figures(rounds: int) -> Iterator[Figure]:
    if native.IMPLEMENTATION != "c":
        return
    with tempfile.TemporaryDirectory() as folder:
        library = build(folder)
        yield from frequent(library, max(3, rounds // 3))
        yield from loaded(library, rounds)
        yield from heap(library, rounds)
        yield from walks(library, max(3, rounds // 3))
        if monitoring is not None:
            yield from entries(library, rounds)


def frequent(library: str, rounds: int) -> Iterator[Figure]:
    """10,000,000 calls each, timed by the agent itself."""
    from jdk import find

    agent = f"-agentpath:{library}=calls"
    commands = {
        "here": [sys.executable, "-m", "vmscope", "run", agent, "-c", "pass"],
        "in a JVM": [f"{find(17)}/java", agent, "--version"],
    }
    found = {(whose, name): Series(f"{name}, {whose}") for whose in commands for name in TIMED}
    for _ in range(rounds):
        for whose, command in commands.items():
            failed, *seconds = output(command).splitlines()[0].split()
            if failed != "0":
                raise RuntimeError("a function of the agent's failed")
            for name, value in zip(TIMED, seconds, strict=True):
                found[whose, name].values.append(float(value))
    for name in TIMED:
        yield Figure(f"{name}, 10^7 times, to a JVM's", found["here", name], found["in a JVM", name], 0.8)


def walks(library: str, rounds: int) -> Iterator[Figure]:
    """For each object, timed by the agent itself, of a program with some 280,000 and of a JVM with 60,000."""
    from jdk import find

    agent = f"-agentpath:{library}=walks"
    commands = {
        "here": [sys.executable, "-m", "vmscope", "run", agent, "-c", WALKED],
        "in a JVM": [f"{find(17)}/java", agent, "--version"],
    }
    names = "IterateThroughHeap", "FollowReferences"
    found = {(whose, name): Series(f"{name}, {whose}") for whose in commands for name in names}
    for _ in range(rounds):
        for whose, command in commands.items():
            failed, *seconds = output(command).splitlines()[-1].split()
            if failed != "0":
                raise RuntimeError("a walk of the agent's failed")
            for name, value in zip(names, seconds, strict=True):
                found[whose, name].values.append(float(value))
    for name in names:
        yield Figure(f"{name}, an object, to a JVM's", found["here", name], found["in a JVM", name], WALK_LIMIT)


def loaded(library: str, rounds: int) -> Iterator[Figure]:
    """A CPU-bound program by its own clock."""

    def suite(*before: str) -> Callable[[], Sample]:
        def case() -> Sample:
            wall, cpu = output([sys.executable, *before, "-c", SUITE.format(before="")]).split()
            return float(wall), float(cpu)

        return case

    found = in_turns({"plain": suite(), "an agent": suite("-m", "vmscope", "run", f"-agentpath:{library}")}, 2 * rounds)
    yield Figure("a native agent loaded that takes nothing", found["an agent"], found["plain"], 1.01)


def heap(library: str, rounds: int) -> Iterator[Figure]:
    things = [[] for _ in range(OBJECTS)]  # type: list[list[object]]
    agent = tool.load_agent(library, "heap")
    walk = ctypes.CDLL(library).walk
    walk.restype = ctypes.c_int64

    def iterate() -> None:
        if walk() < len(things):
            raise RuntimeError("the walk has not met every object")

    def loop() -> None:
        for _ in gc.get_objects():
            pass

    try:
        found = in_turns({"walk": call(iterate), "loop": call(loop)}, rounds)
    finally:
        tool.unload_agent(agent)
    name = "IterateThroughHeap over 10^6 objects, to gc.get_objects() and a loop"
    yield Figure(name, found["walk"], found["loop"], 3.0)


def raw(counting: ModuleType) -> Sample:
    """As `benchmarks.events` has it, with a callback in C."""
    monitoring.use_tool_id(RAW, "raw")
    monitoring.register_callback(RAW, monitoring.events.PY_START, counting.entry)
    monitoring.set_events(RAW, monitoring.events.PY_START)
    try:
        calls()
        return call(calls, 5)()
    finally:
        monitoring.set_events(RAW, 0)
        monitoring.register_callback(RAW, monitoring.events.PY_START, None)
        monitoring.free_tool_id(RAW)
        calls()


def entries(library: str, rounds: int) -> Iterator[Figure]:
    counting = module("counting")
    count = ctypes.CDLL(library).count_entries
    count.restype = ctypes.c_int64

    def counted() -> Sample:
        agent = tool.load_agent(library, "entry")
        try:
            before = count()
            calls()
            if count() - before < 1000:
                raise RuntimeError("the agent is not told of method entries")
            return call(calls, 5)()
        finally:
            tool.unload_agent(agent)
            calls()

    found = in_turns({"plain": plain, "raw": lambda: raw(counting), "agent": counted}, rounds * SHORT)
    yield Figure("METHOD_ENTRY to a native callback: whole run", found["agent"], found["raw"], 1.3)
    yield added("METHOD_ENTRY to a native callback: added cost", found["agent"], found["raw"], found["plain"], 1.4)
