"""A service that forgets to forget; docs/how-to/memory-leak.md finds what it keeps, and where that is made."""

from __future__ import annotations

import time


class Session:
    def __init__(self, user: int) -> None:
        self.user = user
        self.history = ["login"]


class Sessions:
    def __init__(self) -> None:
        self.by_number: dict[int, Session] = {}

    def open(self, number: int) -> Session:
        session = self.by_number[number] = Session(user=number % 100)
        return session


def serve(sessions: Sessions) -> None:
    number = 0
    while True:
        for _ in range(100):
            number += 1
            sessions.open(number)
        time.sleep(0.02)


if __name__ == "__main__":
    serve(Sessions())
