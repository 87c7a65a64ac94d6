"""Locks of ours, and what may not come while a thread has one: a callback of the collector, or of an object that is
freed, which waits for another thread, and that thread for the lock."""

from __future__ import annotations

import _thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

# Called with 1 before a thread takes one, with -1 when it has given it back
holders: list[Callable[[int], object]] = []


class QuietLock:
    """A lock that its owner may take again."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock: _thread.RLock = _thread.RLock()

    def acquire(self) -> bool:
        _hold(1)
        try:
            return self._lock.acquire()
        except BaseException:
            _hold(-1)
            raise

    def release(self) -> None:
        self._lock.release()
        _hold(-1)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _is_owned(self) -> bool:
        return self._lock._is_owned()  # type: ignore[attr-defined,no-any-return]


def _hold(change: int) -> None:
    for holder in holders:
        holder(change)
