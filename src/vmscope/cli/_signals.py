"""Ctrl-C and SIGTERM as something to wait for."""

from __future__ import annotations


class Signals:
    """SIGTERM and SIGINT, while it is entered: `wait` returns once one has come."""

    def __enter__(self) -> Signals:
        import signal
        import threading

        self._came = threading.Event()
        self._before = [(number, signal.signal(number, self._end)) for number in (signal.SIGTERM, signal.SIGINT)]
        return self

    def _end(self, *_: object) -> None:
        self._came.set()

    def wait(self, seconds: float | None = None) -> bool:
        return self._came.wait(seconds)

    def __exit__(self, *_: object) -> None:
        import signal

        for number, handler in self._before:
            signal.signal(number, handler)
