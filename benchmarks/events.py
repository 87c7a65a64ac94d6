"""What events cost: a program's calls with METHOD_ENTRY, against sys.monitoring's own callback and against none."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from benchmarks.measure import Figure, Sample, Series, call, in_turns, output
from vmscope import tool
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.sources.event_sources import install

ENTRY = tool.Event.METHOD_ENTRY
monitoring: Any = getattr(sys, "monitoring", None)
RAW = 2  # the tool id of the raw callback
SHORT = 10


SWALLOWED = 2000


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def hot(n: int, never: int = -1) -> int:
    total = 0
    for i in range(n):
        total += i & 7
        if i == never:
            total -= 1  # the cold line
    return total


def on_entry(env: Environment, thread: tool.Thread, method: CodeType) -> None:
    pass


def raw_entry(code: CodeType, offset: int) -> None:
    pass


def live_host() -> Host:
    host = Host()
    install(host)
    host.enter(tool.Phase.LIVE)
    return host


def listening(host: Host, thread: tool.Thread | None = None) -> Environment:
    env = host.get_env()
    env.add_capabilities({tool.Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS})
    env.set_event_callbacks({ENTRY: on_entry})
    env.set_event_notification_mode(True, ENTRY, thread)
    return env


def calls() -> int:
    return fib(15)


def plain() -> Sample:
    return call(calls, 5)()


def raw() -> Sample:
    monitoring.use_tool_id(RAW, "raw")
    monitoring.register_callback(RAW, monitoring.events.PY_START, raw_entry)
    monitoring.set_events(RAW, monitoring.events.PY_START)
    try:
        calls()
        return call(calls, 5)()
    finally:
        monitoring.set_events(RAW, 0)
        monitoring.register_callback(RAW, monitoring.events.PY_START, None)
        monitoring.free_tool_id(RAW)
        calls()


def environments(count: int, thread: tool.Thread | None = None) -> Callable[[], Sample]:
    host = live_host()

    def case() -> Sample:
        made = [listening(host, thread) for _ in range(count)]
        try:
            calls()
            return call(calls, 5)()
        finally:
            for env in made:
                env.dispose_environment()
            calls()

    return case


def breakpoint_case() -> Sample:
    host = live_host()
    env = host.get_env()
    env.add_capabilities({tool.Capability.CAN_GENERATE_BREAKPOINT_EVENTS})
    env.set_event_callbacks({tool.Event.BREAKPOINT: lambda *_: None})
    env.set_event_notification_mode(True, tool.Event.BREAKPOINT)
    line = hot.__code__.co_firstlineno + 5
    env.set_breakpoint(hot.__code__, next(start for start, _, at in hot.__code__.co_lines() if at == line))
    try:
        return loop()
    finally:
        env.dispose_environment()
        hot(100)


def loop() -> Sample:
    hot(5_000)
    return call(lambda: hot(5_000), 5)()


def added(name: str, subject: Series, base: Series, without: Series, limit: float | None) -> Figure:
    """The cost that each adds to a run with neither: its median is taken from both."""

    def beyond(series: Series) -> Series:
        pairs = zip(series.values, without.values, strict=True)
        return Series(f"{series.label}, added", "s", [value - plain for value, plain in pairs])

    return Figure(name, beyond(subject), beyond(base), limit)


class Missing:
    def __getattr__(self, name: str) -> object:
        raise AttributeError(name)


MISSING = Missing()


def under(depth: int) -> None:
    if depth:
        under(depth - 1)
    else:
        for _ in range(SWALLOWED):
            hasattr(MISSING, "thing")


def swallowed(depth: int) -> Callable[[], Sample]:
    """Exceptions that C code swallows, so many frames deep, with somebody who listens."""

    def case() -> Sample:
        host = live_host()
        env = host.get_env()
        env.add_capabilities({tool.Capability.CAN_GENERATE_EXCEPTION_EVENTS})
        env.set_event_callbacks({tool.Event.EXCEPTION: lambda *arguments: None})
        env.set_event_notification_mode(True, tool.Event.EXCEPTION)
        try:
            under(depth)
            return call(lambda: under(depth))()
        finally:
            env.dispose_environment()

    return case


def exceptions(rounds: int) -> Iterator[Figure]:
    found = in_turns({"under 700 frames": swallowed(700), "under none": swallowed(0)}, rounds)
    name = "EXCEPTION where C code swallows it, under 700 frames, to under none"
    yield Figure(name, found["under 700 frames"], found["under none"], 4.0)


def figures(rounds: int) -> Iterator[Figure]:
    if monitoring is None:
        return
    ready, done = threading.Event(), threading.Event()
    others: list[tool.Thread] = []

    def wait() -> None:
        from vmscope.tool.model import threads

        others.append(threads.current())
        ready.set()
        done.wait()

    other = threading.Thread(target=wait)
    other.start()
    ready.wait()
    try:
        found = in_turns(  # many short turns: what else the machine does hits few of them
            {
                "plain": plain,
                "raw PY_START": raw,
                "one environment": environments(1),
                "three environments": environments(3),
                "another thread's": environments(1, others[0]),
                "disposed of": plain,
            },
            rounds * SHORT,
        )
        loops = in_turns({"no breakpoint": loop, "a breakpoint at a cold line": breakpoint_case}, rounds * SHORT)
    finally:
        done.set()
        other.join()
    base, one = found["raw PY_START"], found["one environment"]
    three, elsewhere = found["three environments"], found["another thread's"]
    yield from (
        Figure("METHOD_ENTRY, one environment: whole run", one, base, 1.2),
        added("METHOD_ENTRY, one environment: added cost", one, base, found["plain"], 1.35),
        Figure("METHOD_ENTRY, three environments: whole run", three, base, 2.1),
        added("METHOD_ENTRY, three environments: added cost", three, base, found["plain"], 3.0),
        added("METHOD_ENTRY for another thread: added cost", elsewhere, base, found["plain"], 0.5),
        Figure("a breakpoint at a cold line", loops["a breakpoint at a cold line"], loops["no breakpoint"], 1.02),
        Figure("all environments disposed of again", found["disposed of"], found["plain"], 1.02),
        *exceptions(rounds),
        *without_events(rounds),
    )


SUITE = """
import time
{before}
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
begin = time.perf_counter(), time.process_time()
fib(23)
counts = {{}}
for i in range(200_000):
    counts[i & 1023] = counts.get(i & 511, 0) + i
sorted(str(i * 7919 % 10007) for i in range(60_000))
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""
LOADED = "from vmscope import tool; env = tool.vm().get_env()"
HELD = f"{LOADED}; env.add_capabilities(env.get_potential_capabilities())"  # and so every flag that can be set


def suite(before: str) -> Callable[[], Sample]:
    """A CPU-bound program by its own clock: what it takes to import the interface is not in it."""

    def case() -> Sample:
        wall, cpu = output([sys.executable, "-c", SUITE.format(before=before)]).split()
        return float(wall), float(cpu)

    return case


def without_events(rounds: int) -> Iterator[Figure]:
    """What costs nothing as long as nothing is enabled: the interface, and what has been made possible in it."""
    cases = {"plain": suite(""), "interface loaded": suite(LOADED), "every capability held": suite(HELD)}
    found = in_turns(cases, rounds)
    yield Figure("interface loaded, no capability taken", found["interface loaded"], found["plain"], 1.01)
    yield Figure("every capability taken, nothing enabled", found["every capability held"], found["plain"], 1.01)
