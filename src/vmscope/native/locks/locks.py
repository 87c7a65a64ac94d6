"""The Python twin of locks.c. What a signal handler raises may come between a lock and the `with` that it is for: it is
then taken for good. For looking at a program, not for one that goes on after Ctrl-C.
"""

from __future__ import annotations

import _thread
import sys

from vmscope.native.stacks.thread_states import thread_state

__all__ = ["MonitorLock", "MonitorRLock", "Monitors"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any


class Monitors:
    """What the locks of one VM share; `places`: locks note the frame that takes them."""

    def __init__(
        self,
        current: Callable[[], Any],
        tell: Callable[[bool, Any, Any], object],
        made: Callable[[], object],
        library: str,
        /,
    ) -> None:
        self.current = current
        self.tell = tell
        self.made = made
        self.library = library
        self.places = False
        self.taken: dict[int, MonitorLock] = {}  # by id: those that threads have

    def held(self, state: int, /) -> list[MonitorLock]:
        return [lock for lock in [*self.taken.values()] if lock.owner == state]


class MonitorLock:
    """Stands for threading.Lock. Its class has an attribute `monitors`."""

    __slots__ = ("__weakref__", "_code", "_frame", "_lock", "_waiters", "entered", "made", "owner")
    monitors: Monitors

    def __init__(self, *_: object, **__: object) -> None:
        self._lock: Any = self._make()
        self.made = self.monitors.made()
        self.owner = self.entered = self._frame = 0
        self._code: CodeType | None = None
        self._waiters: list[Any] = []

    def _make(self) -> object:
        return _thread.allocate_lock()

    @property
    def waiters(self) -> list[Any]:
        return [*self._waiters]

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if timeout != -1:
            _thread.allocate_lock().acquire(blocking, timeout)  # says what is wrong with them
        if self._lock.acquire(False):
            self._note_taken()
            return True
        return bool(blocking and timeout and self._wait(timeout))

    def _wait(self, timeout: float) -> bool:
        thread = self.monitors.current()
        self._waiters.append(thread)
        before = thread.contended, thread.patient  # a callback that waits is within another wait
        try:
            thread.contended, thread.patient = self, timeout < 0
            self.monitors.tell(False, thread, self)
            got = bool(self._lock.acquire(True, timeout))
            if got:
                self._note_taken()
        finally:
            thread.contended, thread.patient = before
            self._waiters.remove(thread)
        if got:
            try:
                self.monitors.tell(True, thread, self)
            except BaseException:
                self.release()
                raise
        return got

    def _note_taken(self) -> None:
        self.entered += 1
        if self.entered == 1:
            self.owner = thread_state()
            self.monitors.taken[id(self)] = self
            if self.monitors.places:
                self._find_place()

    def _find_place(self) -> None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename in (__file__, self.monitors.library):
            frame = frame.f_back
        self._frame, self._code = (0, None) if frame is None else (id(frame), frame.f_code)

    def taken_in(self, frame: FrameType, /) -> bool:
        return self._frame == id(frame) and self._code is frame.f_code

    def _note_left(self) -> None:
        self.monitors.taken.pop(id(self), None)
        self.owner = self.entered = self._frame = 0
        self._code = None

    def release(self) -> None:
        if self._lock.locked():
            self._note_left()
        self._lock.release()

    def locked(self) -> bool:
        return bool(self._lock.locked())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._lock._at_fork_reinit()
        self._note_left()
        self._waiters = []

    def __repr__(self) -> str:
        return f"<{'locked' if self.entered else 'unlocked'} {type(self).__name__} object at {id(self):#x}>"


class MonitorRLock(MonitorLock):
    """Stands for threading.RLock."""

    __slots__ = ()

    def _make(self) -> object:
        return _thread.RLock()

    def release(self) -> None:
        if self._lock._is_owned():
            if self.entered == 1:
                self._note_left()
            else:
                self.entered -= 1
        self._lock.release()

    def locked(self) -> bool:
        return self.entered > 0

    def _is_owned(self) -> bool:
        return bool(self._lock._is_owned())

    def _recursion_count(self) -> int:
        return self.entered if self._lock._is_owned() else 0

    def _release_save(self) -> tuple[int, int]:
        self._note_left()
        saved: tuple[int, int] = self._lock._release_save()
        return saved

    def _acquire_restore(self, saved: tuple[int, int], /) -> None:
        self._lock._acquire_restore(saved)
        self._note_taken()
        self.entered = saved[0]
