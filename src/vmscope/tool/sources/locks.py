"""Locks that know who has them and who waits: what `threading.Lock` and `threading.RLock` make once an environment has
asked for what only they can tell.

They replace the two names and nothing else: locks that were there before, and those that `_thread` makes, stay what
they are; so does what gevent puts instead of all of them. It is for good, as a JVM's flags are: locks that were
made so are in use.
"""

from __future__ import annotations

import _thread
import os
import sys
from types import BuiltinFunctionType

from vmscope import native
from vmscope.tool.model import threads
from vmscope.tool.model.frames import is_own
from vmscope.tool.spec.capabilities import mask
from vmscope.tool.spec.events import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from vmscope.native import MonitorLock, Monitors
    from vmscope.tool.host import Host
    from vmscope.tool.model.threads import Thread

NEEDED = mask(5, 6, 28, 34)
DEPTHS = mask(34)
LIBRARY = os.path.dirname(os.__file__) + os.sep  # the standard library
PACKAGES = tuple(f"{LIBRARY}{each}{os.sep}" for each in ("site-packages", "dist-packages"))  # which is not its own


class LockEvents:
    """The mechanism: once one of the capabilities is held, `threading` makes locks of `native.MonitorLock`'s kind."""

    def __init__(self) -> None:
        self.host: Host
        self._monitors: Monitors | None = None
        self._posting: set[Thread] = set()

    def held(self, thread: Thread) -> list[MonitorLock]:
        """Those of the locks above that a thread has, the first taken first."""
        return [] if self._monitors is None else self._monitors.held(thread.state)

    def post(self, event: Event, own: Thread, *arguments: object) -> None:
        """Sends an event of the calling thread. A callback sets off no other: it may need locks itself."""
        if own in self._posting:
            return
        try:
            self._posting.add(own)
            self.host.post(event, own, *arguments, thread=own)
        finally:
            self._posting.discard(own)

    def update(self, host: Host) -> None:
        self.host = host
        held = 0
        for environment in host.environments:
            held |= environment.held
        if held & NEEDED and self._monitors is None:
            self._replace()
        if held & DEPTHS and self._monitors is not None:
            self._monitors.places = True

    def _replace(self) -> None:
        import threading

        module: Any = threading
        library = module.Condition.__init__.__code__.co_filename
        self._monitors = native.Monitors(threads.current, self._contended, maker, library)
        for name, base in (("Lock", native.MonitorLock), ("RLock", native.MonitorRLock)):
            new = in_place_of(getattr(module, name), base)
            shared = {"__slots__": (), "__module__": "threading", "__new__": new, "monitors": self._monitors}
            setattr(module, name, type(name, (base,), shared))
        module.Condition.wait = self._waiting(module.Condition.wait)

    def _contended(self, entered: bool, own: Thread, lock: MonitorLock) -> None:
        self.post(Event.MONITOR_CONTENDED_ENTERED if entered else Event.MONITOR_CONTENDED_ENTER, own, lock)

    def _waiting(self, theirs: Any) -> Any:
        def wait(condition: Any, timeout: float | None = None) -> bool:
            own = threads.current()
            before = own.contended
            notified = False
            try:
                own.contended = condition
                self.post(Event.MONITOR_WAIT, own, condition, int((timeout or 0) * 1000))
                notified = bool(theirs(condition, timeout))
            finally:
                own.contended = before
                self.post(Event.MONITOR_WAITED, own, condition, not notified)
            return notified

        wait.__wrapped__ = theirs  # type: ignore[attr-defined]
        return wait


def in_place_of(theirs: Callable[..., object], base: type[MonitorLock]) -> Callable[..., object]:
    """The `__new__` of a class that makes such locks, and what there was before where gevent or similar has put locks
    of its own instead of CPython's: those know greenlets.
    """

    def new(cls: type[MonitorLock], *arguments: Any, **named: Any) -> object:
        if type(_thread.allocate_lock) is not BuiltinFunctionType:
            return theirs(*arguments, **named)
        return base.__new__(cls)

    return new


def maker() -> tuple[str, CodeType, int]:
    """Where a lock is made: module, method and location. What the standard library makes for a program is made by the
    program: the lock of a queue by who makes the queue. What it makes for itself, when it is imported, by itself.
    """
    frame = sys._getframe(1)
    while is_own(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    inner = frame
    while is_library(frame.f_code) and frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    if is_library(frame.f_code) and frame.f_back is None:  # only the library
        frame = inner
    return frame.f_globals.get("__name__", "?"), frame.f_code, frame.f_lasti


def is_library(code: CodeType) -> bool:
    name = code.co_filename
    return name.startswith(LIBRARY) and not name.startswith(PACKAGES)
