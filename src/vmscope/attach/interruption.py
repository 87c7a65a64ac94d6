"""Signals that end a client come when it has taken away what it left with others, and not before."""

from __future__ import annotations

import sys
from time import sleep

from vmscope.errors import AttachError

if sys.platform != "win32":
    from _signal import (  # type: ignore[import-not-found]  # signal without its enums, which take 1 ms
        SIG_BLOCK,
        SIG_IGN,
        SIG_SETMASK,
        SIGHUP,
        SIGINT,
        SIGQUIT,
        SIGTERM,
        getsignal,
        pthread_sigmask,
        sigpending,
    )

    _ENDING = (SIGHUP, SIGINT, SIGQUIT, SIGTERM)


class Interruption:
    """Holds them back from this thread, in a `with` statement at whose end they do what they always do."""

    __slots__ = ("_before", "_held")

    def __enter__(self) -> Interruption:
        ending = {each for each in _ENDING if getsignal(each) != SIG_IGN}
        self._before: set[int] = pthread_sigmask(SIG_BLOCK, ending)
        self._held = ending - self._before
        return self

    def __exit__(self, *_: object) -> None:
        pthread_sigmask(SIG_SETMASK, self._before)

    def nap(self, seconds: float, pid: int) -> None:
        """Sleeps, not for long. AttachError where a signal has come."""
        sleep(seconds)
        if self._held & sigpending():
            raise AttachError(f"a signal came while process {pid} was asked", pid=pid)
