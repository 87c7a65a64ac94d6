"""Locks that know who has them and who waits: what `threading.Lock` and `threading.RLock` make once an environment has
asked for what only they can tell.

They replace the two names and nothing else: locks that were there before, and those that `_thread` makes, stay what
they are. It is for good, as a JVM's flags are: locks that were made so are in use.
"""

from __future__ import annotations

import _thread
import os
import sys

from vmscope.tool import threads
from vmscope.tool.capabilities import mask
from vmscope.tool.events import Event
from vmscope.tool.frames import is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from vmscope.tool.host import Host
    from vmscope.tool.threads import Thread

NEEDED = mask(5, 6, 28, 34)
DEPTHS = mask(34)
LIBRARY = os.path.dirname(os.__file__) + os.sep  # the standard library
PACKAGES = tuple(f"{LIBRARY}{each}{os.sep}" for each in ("site-packages", "dist-packages"))  # which is not its own


class Hold:
    """Who has a lock, how often, and where it was first taken: so many frames from the outermost, in this code."""

    __slots__ = ("code", "entered", "height", "thread")

    def __init__(self, thread: Thread, place: tuple[int, CodeType] | None) -> None:
        self.thread = thread
        self.entered = 1
        self.height: int = place[0] if place else 0
        self.code: CodeType | None = place[1] if place else None


class MonitorLock:
    """In the place of threading.Lock's."""

    __slots__ = ("__weakref__", "_lock", "hold", "made", "waiters")
    _locks: Locks  # of the class that takes the place

    def __init__(self) -> None:
        self._lock: Any = self._make()
        self.made = maker()
        self.hold: Hold | None = None
        self.waiters: list[Thread] = []

    def _make(self) -> object:
        return _thread.allocate_lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if timeout != -1 and (timeout < 0 or not blocking):
            return bool(self._lock.acquire(blocking, timeout))  # which says what is wrong with it
        if not self._lock.acquire(False) and not (blocking and timeout and self._wait(timeout)):
            return False
        self._taken()
        return True

    def _wait(self, timeout: float) -> bool:
        own = threads.current()
        self.waiters.append(own)
        before = own.contended, own.patient  # a callback that waits for a lock is within another wait
        own.contended, own.patient = self, timeout < 0
        try:
            self._locks.tell(Event.MONITOR_CONTENDED_ENTER, own, self)
            taken = bool(self._lock.acquire(True, timeout))
        finally:
            own.contended, own.patient = before
            self.waiters.remove(own)
        if taken:
            try:
                self._locks.tell(Event.MONITOR_CONTENDED_ENTERED, own, self)
            except BaseException:  # the user's interrupt: who asked for the lock does not get it
                self._lock.release()
                raise
        return taken

    def _taken(self) -> None:
        own = threads.current()
        if self.hold is not None and self.hold.thread is own:
            self.hold.entered += 1
        else:
            self.hold = Hold(own, place() if self._locks.depths else None)
            own.monitors[id(self)] = self

    def release(self) -> None:
        self._left(1)
        self._lock.release()

    def _left(self, times: int) -> None:
        hold = self.hold
        if hold is not None:
            hold.entered -= times
            if hold.entered <= 0:
                self.hold = None
                hold.thread.monitors.pop(id(self), None)

    def locked(self) -> bool:
        return bool(self._lock.locked())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._lock._at_fork_reinit()
        self._left(self.hold.entered if self.hold is not None else 0)
        self.waiters = []

    def __repr__(self) -> str:
        return f"<vmscope {self._lock!r}>"


class MonitorRLock(MonitorLock):
    """In the place of threading.RLock's."""

    __slots__ = ()

    def _make(self) -> object:
        return _thread.RLock()

    def release(self) -> None:
        if self._lock._is_owned():
            self._left(1)
        self._lock.release()

    def locked(self) -> bool:
        return self.hold is not None

    # What threading.Condition asks of a lock that can be taken more than once.

    def _is_owned(self) -> bool:
        return bool(self._lock._is_owned())

    def _release_save(self) -> object:
        self._left(self.hold.entered if self.hold is not None else 0)
        return self._lock._release_save()

    def _acquire_restore(self, state: Any) -> None:
        self._lock._acquire_restore(state)
        self._taken()
        if self.hold is not None:
            self.hold.entered = state[0]


class Locks:
    """The mechanism: once one of the capabilities is held, `threading` makes the locks above."""

    def __init__(self) -> None:
        self.host: Host
        self.depths = False
        self._made = False
        self._telling: set[Thread] = set()

    def tell(self, event: Event, own: Thread, *arguments: object) -> None:
        """Sends an event of the calling thread. A callback sets off no other: it may need locks itself."""
        if own in self._telling:
            return
        self._telling.add(own)
        try:
            self.host.post(event, own, *arguments, thread=own)
        finally:
            self._telling.discard(own)

    def update(self, host: Host) -> None:
        self.host = host
        held = 0
        for environment in host.environments:
            held |= environment.held
        self.depths |= bool(held & DEPTHS)
        if held & NEEDED and not self._made:
            self._made = True
            import threading

            module: Any = threading
            module.Lock = type("Lock", (MonitorLock,), {"__slots__": (), "_locks": self})
            module.RLock = type("RLock", (MonitorRLock,), {"__slots__": (), "_locks": self})
            module.Condition.wait = self._waiting(module.Condition.wait)

    def _waiting(self, theirs: Any) -> Any:
        def wait(condition: Any, timeout: float | None = None) -> bool:
            own = threads.current()
            before, own.contended = own.contended, condition
            self.tell(Event.MONITOR_WAIT, own, condition, int((timeout or 0) * 1000))
            notified = False
            try:
                notified = bool(theirs(condition, timeout))
            finally:
                own.contended = before
                self.tell(Event.MONITOR_WAITED, own, condition, not notified)
            return notified

        wait.__wrapped__ = theirs  # type: ignore[attr-defined]
        return wait


def maker() -> tuple[str, CodeType, int]:
    """Where a lock is made: module, method and location. What the standard library makes for a program is made by the
    program: the lock of a queue by who makes the queue. What it makes for itself, when it is imported, by itself.
    """
    frame = inner = sys._getframe(2)
    while is_library(frame.f_code) and frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    if is_library(frame.f_code) and frame.f_back is None:  # nobody but the library
        frame = inner
    return frame.f_globals.get("__name__", "?"), frame.f_code, frame.f_lasti


def is_library(code: CodeType) -> bool:
    name = code.co_filename
    return name.startswith(LIBRARY) and not name.startswith(PACKAGES)


def place() -> tuple[int, CodeType] | None:
    """How many frames the program is deep where it takes a lock, and the code of the innermost."""
    frame = sys._getframe()
    while frame.f_back is not None and (is_own(frame.f_code) or frame.f_globals.get("__name__") == "threading"):
        frame = frame.f_back
    code, height = frame.f_code, 1
    while frame.f_back is not None:
        frame = frame.f_back
        height += 1
    return height, code
