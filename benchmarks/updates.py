"""An update of a counter, to a call of one of CPython's own C functions that has nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from timeit import Timer

import vmscope
from benchmarks.measure import Figure, Sample, in_turns

LOOPS = 200_000


def figures(rounds: int) -> Iterator[Figure]:
    vmscope.start()
    counter = vmscope.counter("benchmark.updates.counter")
    gauge = vmscope.gauge("benchmark.updates.gauge")
    found = in_turns(
        {
            "counter.inc()": _case("f()", counter.inc),
            "[].clear()": _case("f()", [].clear),
            "counter.add(1)": _case("f(1)", counter.add),
            "gauge.set(1)": _case("f(1)", gauge.set),
            "().count(1)": _case("f(1)", ().count),
        },
        rounds,
    )
    vmscope.stop()
    yield Figure("`counter.inc()`, to `[].clear()`", found["counter.inc()"], found["[].clear()"], None)
    for label in ("counter.add(1)", "gauge.set(1)"):
        yield Figure(f"`{label}`, to `().count(1)`", found[label], found["().count(1)"], None)


def _case(statement: str, function: Callable[..., object]) -> Callable[[], Sample]:
    timer = Timer(statement, globals={"f": function})

    def case() -> Sample:
        seconds = timer.timeit(LOOPS) / LOOPS
        return seconds, seconds

    return case
