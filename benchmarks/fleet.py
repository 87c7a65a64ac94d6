"""`python -m benchmarks.fleet SIZE NUMBERS INTERVAL`: idle Python VMs, each with so many numbers in its region, and
sampled each INTERVAL ms (0: never).

Says "ready" when all have a region; all end when standard input does.
"""

from __future__ import annotations

import os
import sys

import vmscope


def publish(numbers: int, interval: int) -> None:
    vmscope.start(f"-XX:PerfDataSamplingInterval={interval}")
    present = sum(isinstance(value, int) for value in vmscope.vm("self").values().values())
    for number in range(numbers - present):
        vmscope.counter(f"benchmark.fleet.counter.{number}").add(number)


def main(size: int, numbers: int, interval: int) -> None:
    done, write_done = os.pipe()
    wait, write_wait = os.pipe()
    children = []
    for _ in range(size):
        pid = os.fork()
        if pid == 0:
            os.close(write_wait)
            publish(numbers, interval)
            os.write(write_done, b".")
            os.read(wait, 1)  # until the parent's end of the pipe is closed
            sys.exit()
        children.append(pid)
    left = size
    while left:
        left -= len(os.read(done, left))
    print("ready", flush=True)
    sys.stdin.read()
    os.close(write_wait)
    for pid in children:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
