"""Measuring: whole processes by wait4, calls by the clock; always in turns, so that a slow moment hits both sides."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

Sample = tuple[float, float]  # wall and CPU seconds
NULL = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]


class Series:
    """What was measured of one thing. `unit` is "s", "B", "%", or "x" for ratios; `cpu` may be empty."""

    def __init__(self, label: str, unit: str = "s", values: Sequence[float] = (), cpu: Sequence[float] = ()) -> None:
        self.label = label
        self.unit = unit
        self.values = list(values)
        self.cpu = list(cpu)

    def add(self, sample: Sample) -> None:
        self.values.append(sample[0])
        self.cpu.append(sample[1])


class Figure:
    """One thing measured against another (or by itself), and the most that it may come to.

    `limit` is a ratio, or in the subject's unit where there is no `base`; None for a row that only informs.
    Without a base `quantile` says which of the values counts: 1 the greatest, 0.5 the median.
    """

    def __init__(
        self, name: str, subject: Series, base: Series | None, limit: float | None, quantile: float = 1.0
    ) -> None:
        self.name = name
        self.quantile = quantile
        self.subject = subject
        self.base = base
        self.limit = limit

    @property
    def value(self) -> float:
        """The ratio of the medians; where there is no base, the value that counts."""
        if self.base is None:
            return sorted(self.subject.values)[round(self.quantile * (len(self.subject.values) - 1))]
        return median(self.subject.values) / median(self.base.values)

    @property
    def cpu_ratio(self) -> float | None:
        if self.base is None or not self.subject.cpu or not self.base.cpu:
            return None
        return median(self.subject.cpu) / median(self.base.cpu)

    @property
    def passed(self) -> bool | None:
        return None if self.limit is None else self.value <= self.limit


class Outcome:
    """What became of an attempt, in words: of vmscope, and of its peers. `passed`: ours is as it should be."""

    def __init__(self, name: str, results: dict[str, str], passed: bool) -> None:
        self.name = name
        self.results = results
        self.passed = passed


Row = Figure | Outcome


def in_turns(cases: dict[str, Callable[[], Sample]], rounds: int, warm_up: int = 2) -> dict[str, Series]:
    """Each case once a round, A B A B; the first rounds are thrown away."""
    found = {label: Series(label) for label in cases}
    for turn in range(warm_up + rounds):
        for label, case in cases.items():
            sample = case()
            if turn >= warm_up:
                found[label].add(sample)
    return found


def process(command: list[str], *, may_fail: bool = False) -> Callable[[], Sample]:
    """A case that runs a whole process, from its start until it has been waited for. RuntimeError if it fails.

    One that `may_fail` may end with status 1, and what it says of that is not shown.
    """
    actions = [*NULL, (os.POSIX_SPAWN_DUP2, 1, 2)] if may_fail else NULL

    def case() -> Sample:
        begin = time.perf_counter()
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - begin
        if status and not (may_fail and os.waitstatus_to_exitcode(status) == 1):
            raise RuntimeError(f"{' '.join(command)} ended with wait status {status}")
        return wall, usage.ru_utime + usage.ru_stime

    return case


def call(function: Callable[[], object], loops: int = 1) -> Callable[[], Sample]:
    """A case that calls a function `loops` times; the sample is one call's."""

    def case() -> Sample:
        turns = range(loops)
        cpu = time.process_time()
        begin = time.perf_counter()
        for _ in turns:
            function()
        wall = time.perf_counter() - begin
        return wall / loops, (time.process_time() - cpu) / loops

    return case


def output(command: list[str]) -> str:
    """What a command prints: looked at once before it is measured, so that no failure is measured."""
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if run.returncode or run.stderr:
        raise RuntimeError(f"{' '.join(command)} ended with {run.returncode}: {run.stderr}")
    return run.stdout


# A process inherits the peak of the one that it is spawned from: so a small one spawns and measures it.
LAUNCHER = """
import os, sys
null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=null)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(status != 0)
"""


def peak_memory(command: list[str], rounds: int) -> Series:
    """The greatest resident size of a process, in bytes."""
    found = Series(" ".join(os.path.basename(word) for word in command), "B")
    for _ in range(rounds):
        found.values.append(1024.0 * int(output([sys.executable, "-I", "-S", "-c", LAUNCHER, *command])))
    return found
