"""`python -m benchmarks.forker started|unstarted os._exit|sys.exit`: a program with a counter, which forks.

For each line that it reads it forks as often as the line says, one child after the other, and prints the wall and
CPU seconds that one fork, its child's exit and the wait took.
"""

from __future__ import annotations

import os
import sys
import time
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import vmscope


def cpu_seconds() -> float:
    """Of this process and of the children that it has waited for."""
    usages = (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def forks(count: int, normal: bool) -> tuple[float, float]:
    cpu = cpu_seconds()
    begin = time.perf_counter()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            if normal:
                sys.exit()
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            raise RuntimeError("a child failed")
    wall = time.perf_counter() - begin
    return wall / count, (cpu_seconds() - cpu) / count


def main(state: str, way: str) -> None:
    vmscope.counter("benchmark.forks")
    if state == "started":
        vmscope.start()
        if vmscope.status().path is None:
            raise RuntimeError(vmscope.status().reason)
    print("ready", flush=True)
    while line := sys.stdin.readline():
        print(*forks(int(line), way == "sys.exit"), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
