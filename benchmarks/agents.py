"""What the agents that come with vmscope cost the code that they are not about."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from benchmarks.events import fib, hot, live_host
from benchmarks.measure import Figure, Sample, call, in_turns, output
from vmscope.agents import exceptions, trace
from vmscope.tool.host import Host


def traced() -> int:
    return 1


def suite() -> int:
    """Calls and a loop; it raises nothing."""
    return fib(15) + hot(3000)


def plain() -> Sample:
    return call(suite, 5)()


def with_agent(load: Callable[[Host, str], int], unload: Callable[[Host], None], options: str) -> Sample:
    vm = live_host()
    load(vm, options)
    try:
        suite()
        return plain()
    finally:
        unload(vm)
        suite()


LOCKS = """
import threading, time
def inner(lock):
    with lock:
        pass
def deep(frames, lock, count):
    if frames:
        return deep(frames - 1, lock, count)
    for _ in range(count):
        inner(lock)
lock = threading.Lock()
begin = time.perf_counter(), time.process_time()
deep(30, lock, 200_000)
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""


def locked(*agents: str) -> Callable[[], Sample]:
    """A program that takes a lock that is free, 30 frames deep, by its own clock."""

    def case() -> Sample:
        wall, cpu = output([sys.executable, "-m", "vmscope", "run", *agents, "-c", LOCKS]).split()
        return float(wall), float(cpu)

    return case


def locks(rounds: int) -> Iterator[Figure]:
    name = "-pyagent:vmscope.agents.locks"
    cases = {"no agent": locked(), "owners": locked(name), "no owners": locked(f"{name}=owners=off")}
    found = in_turns(cases, rounds)
    yield Figure("`locks`, a function that takes a free lock", found["owners"], found["no agent"], 1.2)
    yield Figure("`locks=owners=off`, the same", found["no owners"], found["no agent"], 1.1)


def figures(rounds: int) -> Iterator[Figure]:
    yield from locks(rounds)
    if not hasattr(sys, "monitoring"):
        return
    cases: dict[str, Callable[[], Sample]] = {
        "no agent": plain,
        "`trace` on one function, code outside it": lambda: with_agent(
            trace.agent_on_attach, trace.agent_on_unload, f"match={__name__}.traced"
        ),
        "`exceptions`, code that raises nothing": lambda: with_agent(
            exceptions.agent_on_attach, exceptions.agent_on_unload, ""
        ),
    }
    found = in_turns(cases, rounds)
    base = found.pop("no agent")
    for (name, series), limit in zip(found.items(), (1.02, 1.01), strict=True):
        yield Figure(name, series, base, limit)
