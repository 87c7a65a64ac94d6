"""Three workers with the same job, one of which is slow; docs/how-to/slow-worker.md finds out which, and why."""

from __future__ import annotations

import multiprocessing
import re
import time

import vmscope

jobs = vmscope.counter("shop.jobs", units=vmscope.Units.EVENTS)
job_time = vmscope.histogram("shop.job", bounds=[0.01, 0.1, 1])  # seconds


def match(pattern: str) -> bool:
    return re.fullmatch(pattern, "a" * 23) is not None


def work(pattern: str) -> None:
    while True:
        with job_time.time():
            match(pattern)
        jobs.inc()
        time.sleep(0.02)


if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    for pattern in ("a+", "a*", "(a+)+b"):
        fork.Process(target=work, args=(pattern,)).start()
