"""What good_agent.c looks at: the same as Slots.java."""

from __future__ import annotations

import sys
import threading
import time


class Slots:
    total = 5

    def __init__(self, next: object) -> None:
        self.field = 3
        self.next = next

    @staticmethod
    def stopped() -> None:
        pass

    @staticmethod
    def stop(number: int, text: str) -> None:
        big = 1 << 40
        real = 1.5
        small = 0.5
        error = RuntimeError("stop")  # noqa: F841 the agent's to see
        Slots.stopped()
        print(number, text, big, real, small)

    def go(self) -> None:
        Slots.stop(7, "a text")


def wait(condition: threading.Condition) -> None:
    with condition:
        while True:
            condition.wait()


def main() -> None:
    worker = threading.Thread(target=wait, args=(threading.Condition(),), name="worker", daemon=True)
    worker.start()
    assert worker.ident is not None
    while (frame := sys._current_frames().get(worker.ident)) is None or frame.f_code.co_name != "wait":
        time.sleep(0.001)  # run by its path, it finds no tests.wait
    Slots(Slots(Slots(b"\1\2\3"))).go()


main()
