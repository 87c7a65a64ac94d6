"""A program: threads that do with counters all that one can, at once; then what came of it, as JSON.

Run on a free-threaded interpreter, also under ThreadSanitizer. `python -m tests.threads [THREADS [ROUNDS]]`
"""

from __future__ import annotations

import gc
import json
import sys
import threading

import vmscope
from vmscope import native
from vmscope.counters.registry import Registry

THREADS, ROUNDS = (int(argument) for argument in (*sys.argv[1:], "8", "2000")[:2])
OPTIONS = ("-XX:PerfDataSamplingInterval=1", "-XX:PerfDataMemorySize=4m")


def main() -> None:
    vmscope.start(*OPTIONS)
    counter = vmscope.counter("threads.counter")
    gauge = vmscope.gauge("threads.gauge")
    text = vmscope.text("threads.text", capacity=100)
    histogram = vmscope.histogram("threads.histogram", bounds=[0.5, 1.5, 2.5])
    timer = vmscope.histogram("threads.timer", bounds=[1000.0])
    shared = timer.time()
    begin = threading.Barrier(THREADS)
    texts = [chr(65 + i) * 100 for i in range(THREADS)]
    failures: list[BaseException] = []

    def work(index: int) -> None:
        begin.wait()
        for i in range(ROUNDS):
            counter.inc()
            counter.add(2)
            gauge.add(3)
            gauge.dec()
            text.set(texts[index])
            assert text.value in texts
            histogram.observe(i % 4)
            with shared:
                counter.labels(way="one", number=i % 7).inc()
            histogram.labels(way=str(i % 3)).observe(1)
            vmscope.counter(f"threads.made.{i // 4}").inc()
            if i % 20 == 0:
                create_and_destroy()
            if i % 100 == 0:
                gc.collect()
                vmscope.status()

    def run(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for _ in range(5):  # the region comes and goes meanwhile
        vmscope.stop()
        vmscope.start(*OPTIONS)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    region = vmscope.status()
    vmscope.stop()
    print(
        json.dumps(
            {
                "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
                "implementation": native.IMPLEMENTATION,
                "published": region.path is not None,
                "overflow": region.overflow,
                "counter": counter.value,
                "gauge": gauge.value,
                "buckets": histogram.cells[1:],
                "sum": histogram.sum,
                "timed": timer.count,
                "labels": [counter.labels(number=i, way="one").value for i in range(7)],
                "observed": [histogram.labels(way=i).count for i in range(3)],
                "made": [vmscope.counter(f"threads.made.{i}").value for i in range(-(-ROUNDS // 4))],
            }
        )
    )


def create_and_destroy() -> None:
    """Counters that no region shows, which go with the registry that has them."""
    registry = Registry()
    made = registry.counter("short")
    made.labels(of="life").inc()
    registry.histogram("short.too", bounds=[1.0]).labels(of="life").observe(1)
    registry.text("short.text").set("life")
    assert made.labels(of="life").value == 1


if __name__ == "__main__":
    main()
