"""A program with counters of its own; docs/how-to/count.md reads them."""

from __future__ import annotations

import random
import time

import vmscope

parcels = vmscope.counter("depot.parcels", units=vmscope.Units.EVENTS)  # only grows
waiting = vmscope.gauge("depot.waiting")  # goes up and down
weighing = vmscope.histogram("depot.weighing", bounds=[0.001, 0.01, 0.1])  # seconds
state = vmscope.text("depot.state", capacity=16)


def weigh() -> None:
    time.sleep(random.expovariate(200))


if __name__ == "__main__":
    vmscope.start()
    state.set("open")
    while True:
        waiting.set(random.randrange(20))
        with weighing.time():
            weigh()
        parcels.labels(country=random.choice(["NL", "FR"])).inc()
