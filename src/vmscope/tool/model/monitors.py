"""Raw monitors: an agent's own locks, which the program does not see."""

from __future__ import annotations

import _thread

from vmscope.tool.model import threads
from vmscope.tool.spec.errors import Interrupted, NotMonitorOwner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.tool.model.threads import Thread

interrupters: list[Callable[[int], bool]] = []  # called for a thread that is interrupted; whether that woke it
_LONGEST = 1 << 31  # ms in one go: the longest that every system's clocks can wait


class RawMonitor:
    """Entered as often as its owner likes; who waits gives it up meanwhile, and has it again afterwards."""

    __slots__ = ("_lock", "_waiters", "destroyed", "entered", "name", "owner")

    def __init__(self, name: str) -> None:
        self.name = name
        self.owner: Thread | None = None
        self.entered = 0
        self.destroyed = False
        self._lock = _thread.allocate_lock()
        self._waiters: list[_thread.LockType] = []

    def enter(self) -> None:
        own = threads.current()
        if self.owner is not own:
            self._lock.acquire()
            self.owner = own
        self.entered += 1

    def exit(self) -> None:
        self.check_owner()
        self.entered -= 1
        if not self.entered:
            self.owner = None
            self._lock.release()

    def wait(self, millis: int) -> None:
        """Until it is notified, or this many milliseconds have passed; 0 or less: for ever. Interrupted."""
        self.check_owner()
        own = threads.current()
        waiter = _thread.allocate_lock()
        waiter.acquire()
        own.waiter = waiter
        entered = self.entered
        try:
            if not own.interrupted:
                self._waiters.append(waiter)
                self.entered, self.owner = 0, None
                self._lock.release()
                try:
                    waiter.acquire(timeout=min(millis, _LONGEST) / 1000 if millis > 0 else -1)
                finally:
                    self._lock.acquire()
                    self.owner, self.entered = own, entered
                    if waiter in self._waiters:
                        self._waiters.remove(waiter)
        finally:
            own.waiter = None
        if own.interrupted:
            own.interrupted = False
            raise Interrupted

    def notify(self, most: int) -> None:
        """Wakes those that have waited longest."""
        self.check_owner()
        for waiter in self._waiters[:most]:
            wake(waiter)
        del self._waiters[:most]

    def check_owner(self) -> None:
        """NotMonitorOwner for all but its owner."""
        if self.owner is not threads.current():
            raise NotMonitorOwner(f"{self!r} is not owned by the current thread")

    def destroy(self) -> None:
        """NotMonitorOwner while another thread owns it; whoever waits is woken."""
        if self.owner is not None:
            self.check_owner()
        self.destroyed = True
        for waiter in self._waiters:
            wake(waiter)
        if self.owner is not None:
            self.entered, self.owner = 0, None
            self._lock.release()

    def __repr__(self) -> str:
        return f"<RawMonitor {self.name!r}{', destroyed' if self.destroyed else ''}>"


def wake(waiter: _thread.LockType) -> None:
    """Releases a lock that another may be releasing at this moment, for another reason."""
    try:
        waiter.release()
    except RuntimeError:  # it has been released
        return
