"""The Python twin of serving.c. What it opens is open in the whole process, and its thread is seen while it waits."""

from __future__ import annotations

import select
from time import monotonic_ns

from vmscope.native.threads.thread import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["serve", "stop_serving"]

_SLICE = 20_000_000  # ns between two looks at the descriptors
_TIMEOUT = 1_000_000_000  # ns


class _Serving(Thread):
    _kind = "serving"
    _fork_timeout = _TIMEOUT

    def __init__(self, callback: Callable[[bool], tuple[list[tuple[int, int]], int]]) -> None:
        super().__init__()
        self._callback = callback

    def _run(self) -> None:
        begins = True
        while not self._stopping:
            try:
                watched, milliseconds = self._callback(begins)
            except Exception:
                self._finished = True  # it reports its own failures; a host is never troubled
                return
            begins = False
            poll = select.poll()
            for fd, events in watched:
                poll.register(fd, events)
            due = monotonic_ns() + milliseconds * 1_000_000
            while (left := due - monotonic_ns()) > 0 and not self._stopping:
                if watched and poll.poll(0):
                    break
                self._wait(min(left, _SLICE if watched else left))


_last: _Serving | None = None


def serve(callback: Callable[[bool], tuple[list[tuple[int, int]], int]], /) -> None:
    """Calls it again and again on a thread of our own, not in a forked child.

    It gets whether it begins, and returns what it waits for, as a list of descriptors and events of poll(2), and for
    how many ms. OSError where no thread can be started.
    """
    global _last
    stop_serving()
    _last = _Serving(callback)
    _last._activate()


def stop_serving() -> bool:
    """Ends that; False if a call under way took too long."""
    global _last
    last, _last = _last, None
    return last is None or last._deactivate(_TIMEOUT)
