"""Updates, to methods in C that do nothing; and a forked child's first update, to its later ones."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from statistics import median
from timeit import Timer
from typing import Any

import vmscope
from benchmarks.floor import empty
from benchmarks.measure import Figure, Sample, Series, in_turns

LOOPS = 20_000
UNROLLED = 10  # statements a loop, so that the loop itself hardly counts
BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0]
FORKS = 41


def figures(rounds: int) -> Iterator[Figure]:
    vmscope.start()
    counter = vmscope.counter("benchmark.updates.counter")
    gauge = vmscope.gauge("benchmark.updates.gauge")
    fractions = vmscope.counter("benchmark.updates.fractions")
    level = vmscope.float_gauge("benchmark.updates.level")
    histogram = vmscope.histogram("benchmark.updates.histogram", bounds=BOUNDS)
    text = vmscope.text("benchmark.updates.text")
    nothing = empty()
    found = in_turns(
        {
            "empty METH_NOARGS": statement("f.noargs()", nothing),
            "inc()": statement("f.inc()", counter),
            "dec()": statement("f.dec()", gauge),
            "empty METH_O": statement("f.o(1)", nothing),
            "add(1)": statement("f.add(1)", counter),
            "add(0.1)": statement("f.add(0.1)", fractions),
            "set(0.1)": statement("f.set(0.1)", level),
            "set(1)": statement("f.set(1)", gauge),
            "observe(0.07)": statement("f.observe(0.07)", histogram),
            "observe(9.5)": statement("f.observe(9.5)", histogram),
            "set('open')": statement("f.set('open')", text),
            "time()": statement("with f.time(): pass", histogram),
            "one label": statement("f.labels(method='GET').inc()", counter),
            "two labels": statement("f.labels(method='GET', code='200').inc()", counter),
        },
        3 * rounds,
    )
    many = [counter.labels(number=number) for number in range(170)]
    very_first, first, later = first_updates(many)
    vmscope.stop()
    for what, of, limit in (
        ("inc()", "empty METH_NOARGS", 1.1),
        ("dec()", "empty METH_NOARGS", 1.1),
        ("add(1)", "empty METH_O", 1.15),
        ("set(1)", "empty METH_O", 1.15),
        ("add(0.1)", "empty METH_O", 3.0),
        ("set(0.1)", "empty METH_O", 3.0),
        ("observe(0.07)", "empty METH_O", 1.7),
        ("observe(9.5)", "empty METH_O", 1.7),
        ("set('open')", "empty METH_O", None),
        ("one label", "inc()", 6.0),
        ("two labels", "inc()", 12.0),
        ("time()", "inc()", None),
    ):
        yield Figure(NAMES[what], found[what], found[of], limit)
    yield Figure("a forked child's first `inc()` of a counter, to a later one", first, later, 5.0)
    yield Figure("a forked child's very first `inc()`, its caches cold, to a later one", very_first, later, None)


NAMES = {
    "inc()": "`counter.inc()`, to an empty METH_NOARGS",
    "dec()": "`gauge.dec()`, to an empty METH_NOARGS",
    "add(1)": "`counter.add(1)`, to an empty METH_O",
    "add(0.1)": "`counter.add(0.1)`, to an empty METH_O",
    "set(0.1)": "`float_gauge.set(0.1)`, to an empty METH_O",
    "set(1)": "`gauge.set(1)`, to an empty METH_O",
    "observe(0.07)": "`histogram.observe(0.07)` of 12 bounds, a middle one, to an empty METH_O",
    "observe(9.5)": "`histogram.observe(9.5)` of 12 bounds, above the last, to an empty METH_O",
    "set('open')": "`text.set('open')`, to an empty METH_O",
    "one label": "`counter.labels(method='GET').inc()`, to `inc()`",
    "two labels": "`counter.labels(method='GET', code='200').inc()`, to `inc()`",
    "time()": "`with histogram.time()`, to `inc()`",
}


def statement(code: str, subject: object, loops: int = LOOPS) -> Callable[[], Sample]:
    """A case that runs a statement about `f`, a local variable, many times; the sample is one run's, in CPU time.

    Of the thread's own: a sample is short, and on a busy machine the clock shows others' turns in half of them.
    """
    timer = Timer(
        "\n".join([code] * UNROLLED), setup="f = subject", timer=time.thread_time, globals={"subject": subject}
    )

    def case() -> Sample:
        seconds = timer.timeit(loops) / (loops * UNROLLED)
        return seconds, seconds

    return case


def first_updates(counters: list[Any], forks: int = FORKS) -> tuple[Series, Series, Series]:
    """In each of some forked children: its very first update; the first of another counter; later ones (median)."""
    names = ("the very first", "the first of a counter", "later")
    found = tuple(Series(name) for name in names)
    _timed(counters[0], 1000)  # the interpreter adapts its code, as that of any program that runs
    for _ in range(forks):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            updates = [*_timed(counters[0], 1), *_timed(counters[-1], 102)]
            os.write(write, json.dumps([*updates[:2], median(updates[2:])]).encode())
            os._exit(0)
        os.close(write)
        with open(read, "rb") as pipe:
            values = json.load(pipe)
        if os.waitpid(pid, 0)[1]:
            raise RuntimeError("a child failed")
        for series, value in zip(found, values, strict=True):
            series.values.append(value)
    return found[0], found[1], found[2]


def _timed(counter: Any, times: int) -> list[float]:
    now = time.perf_counter_ns
    found = []
    for _ in range(times):
        now()  # so that the clock itself is warm
        begin = now()
        counter.inc()
        found.append((now() - begin) / 1e9)
    return found
