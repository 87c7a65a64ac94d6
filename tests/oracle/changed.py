"""What change_agent.c changes: the same as Changed.java."""

from __future__ import annotations

import threading
import time


class Changed:
    running = caught = False

    @staticmethod
    def answer() -> int:
        return 1

    @staticmethod
    def spin() -> None:
        try:
            while True:
                Changed.running = True
        except RuntimeError:  # as which IllegalStateException comes
            Changed.caught = True

    @staticmethod
    def ready() -> None:
        pass

    @staticmethod
    def ended() -> None:
        pass

    @staticmethod
    def main() -> None:
        worker = threading.Thread(target=Changed.spin, name="worker")
        worker.start()
        while not Changed.running:
            time.sleep(0.001)  # run by its path, it finds no tests.wait
        Changed.ready()
        worker.join()
        if Changed.caught and Changed.answer() == 1:
            Changed.ended()
