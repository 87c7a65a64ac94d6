"""What has to be asked for its value, as callbacks are: again and again, on a daemon thread of the program's."""

from __future__ import annotations

import os
import threading
from functools import partial
from weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    class Instrument(Protocol):
        def ask(self) -> None:
            """Puts the value of now into the region. It does not raise."""

    Added = TypeVar("Added", bound=Instrument)

INTERVAL = 5.0  # seconds after which they are asked again


class Asked:
    """Asks instruments on a thread that starts with the first of them; in a forked child on one of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._instruments: list[Instrument] = []
        self._lock = threading.Lock()
        self._closed = self._soon = False
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=partial(_after_fork, ref(self)))

    def add(self, instrument: Added, *, now: bool = False) -> Added:
        """Asks it from now on; with `now` for the first time soon."""
        with self._lock:
            self._instruments.append(instrument)
            self._start()
        if now:
            self._soon = True
            self._wake.set()
        return instrument

    def remove(self, instrument: Instrument) -> None:
        with self._lock:
            if instrument in self._instruments:
                self._instruments.remove(instrument)

    def ask(self) -> None:
        for instrument in tuple(self._instruments):
            instrument.ask()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def _start(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        wake = self._wake
        while True:
            wake.wait(INTERVAL)
            wake.clear()
            if self._closed:
                return
            self.ask()

    def after_fork(self) -> None:
        """In a child: the thread is the parent's."""
        self._lock = threading.Lock()
        self._thread = None
        self._wake = threading.Event()
        if self._instruments:
            self._start()
            if self._soon:
                self._wake.set()


def _after_fork(asked: ref[Asked]) -> None:
    found = asked()
    if found is not None:
        found.after_fork()
