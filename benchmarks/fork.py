"""Fork, exit and wait of a process that is visible, to one that is not; the child ends at once, in either way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from benchmarks.measure import Figure, Sample, in_turns
from benchmarks.world import ROOT
from tests.support import Child

FORKS = 100


def figures(rounds: int) -> Iterator[Figure]:
    for way in ("os._exit", "sys.exit"):
        with ExitStack() as stack:
            cases = {}
            for state in ("started", "unstarted"):
                child = stack.enter_context(Child([sys.executable, "-m", "benchmarks.forker", state, way], cwd=ROOT))
                child.read_until(b"ready\n")
                cases[state] = _case(child)
            found = in_turns(cases, rounds)
        yield Figure(f"fork, `{way}()` and wait, started to unstarted", found["started"], found["unstarted"], 1.3)


def _case(child: Child) -> Callable[[], Sample]:
    def case() -> Sample:
        wall, cpu = child.ask(str(FORKS)).split()
        return float(wall), float(cpu)

    return case
