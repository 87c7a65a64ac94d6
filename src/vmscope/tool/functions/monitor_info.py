"""The functions that tell who has which lock, and who waits for it."""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import NamedTuple

from vmscope import own_threads
from vmscope.native import MonitorLock
from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import threads
from vmscope.tool.model.frames import frames_of
from vmscope.tool.model.thread_state import condition_wait
from vmscope.tool.model.threads import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Entered(Protocol):
        """Monitors that are not locks of Python's: any object may be one."""

        def held(self, thread: Thread) -> list[object]:
            """The objects that it has entered."""
            ...

        def holder(self, thing: object) -> tuple[Thread | None, int, list[Thread]] | None:
            """Owner, how often it has it, who waits; None for an object that no thread has, or waits for."""
            ...


entered: list[Entered] = []  # JNI's, once there are native agents
OWNER = re.compile(r"owner=(\d+) count=(\d+)")  # as an RLock says of itself


class MonitorUsage(NamedTuple):
    """Who has it, how often; who waits to get it; who waits to be notified."""

    owner: Thread | None
    entry_count: int
    waiters: list[Thread]
    notify_waiters: list[Thread]


class MonitorStackDepth(NamedTuple):
    """A lock, and the depth of the frame that took it: -1 where that has returned, or JNI's MonitorEnter took it."""

    monitor: object
    stack_depth: int


class MonitorInfo(Base):
    @function
    def get_owned_monitor_info(self, thread: Thread | None = None) -> list[object]:
        """The locks that a thread has, the first taken first; None is the current thread. ThreadNotAlive.

        CPython: what threading.Lock and threading.RLock have made since the capability was taken.
        Differs: locks made before, and those of _thread, are unknown.
        """
        return self._held(thread or threads.current())

    def _held(self, thread: Thread) -> list[object]:
        return [*self.host.locks.held(thread), *(thing for monitors in entered for thing in monitors.held(thread))]

    @function
    def get_owned_monitor_stack_depth_info(self, thread: Thread | None = None) -> list[MonitorStackDepth]:
        """As `get_owned_monitor_info`, each with the depth of the frame that took it. ThreadNotAlive.

        CPython: the frame's address, noted when the lock was taken.
        Differs: locks made before, and those of _thread, are unknown.
        """
        thread = thread or threads.current()
        frames = [*frames_of(self.host, thread)]
        return [MonitorStackDepth(lock, depth(lock, frames)) for lock in self._held(thread)]

    @function
    def get_current_contended_monitor(self, thread: Thread | None = None) -> object:
        """The lock that a thread waits to get, or the condition that it waits for; None for none. ThreadNotAlive.

        CPython: what threading's locks and conditions have noted since the capability was taken.
        Differs: locks made before, and those of _thread, are unknown.
        """
        return (thread or threads.current()).contended

    @function
    def get_object_monitor_usage(self, object: object) -> MonitorUsage:
        """Who has a lock, and who waits; of a condition, its lock, and who waits to be notified. An object that is
        not a lock has no owner.

        CPython: an RLock tells its owner; threading.Condition.wait's frames tell who waits to be notified.
        Differs: a plain Lock's owner, and who waits to get a lock, are known of those made since \
can_get_owned_monitor_info or similar was taken; of other Locks only whether a thread has it.
        """
        lock = getattr(object, "_lock", None) if is_condition(object) else object
        owner, count, waiters = next(filter(None, (each.holder(object) for each in entered)), None) or holder(lock)
        return MonitorUsage(owner, count, waiters, waiting_for(object))


def depth(lock: object, frames: list[FrameType]) -> int:
    """Where in a stack, the innermost first, the frame is that took the lock; -1 where no frame has."""
    if not isinstance(lock, MonitorLock):
        return -1
    return next((at for at, frame in enumerate(frames) if lock.taken_in(frame)), -1)


def holder(lock: object) -> tuple[Thread | None, int, list[Thread]]:
    """Owner, how often it has it, who waits."""
    if isinstance(lock, MonitorLock):
        owner, waiters = lock.owner, [each for each in lock.waiters if each.alive]
        return next((each for each in threads.living() if each.state == owner), None), lock.entered, waiters
    kind = f"{type(lock).__module__}.{type(lock).__qualname__}"
    if kind == "_thread.RLock":
        ident, count = map(int, OWNER.search(repr(lock)).groups())  # type: ignore[union-attr]
        return next((each for each in threads.living() if each.ident == ident), None), count, []
    if kind == "_thread.lock":
        return None, int(lock.locked()), []  # type: ignore[attr-defined]
    return None, 0, []


def is_condition(thing: object) -> bool:
    threading = own_threads.threading_module()
    return threading is not None and isinstance(thing, threading.Condition)


def waiting_for(condition: object) -> list[Thread]:
    """The threads that are within its `wait`."""
    if not is_condition(condition):
        return []
    wait, frames = condition_wait(), sys._current_frames()
    found = []
    for thread in threads.living():
        frame = frames.get(thread.ident)
        while frame is not None:
            if frame.f_code is wait and frame.f_locals.get("self") is condition:
                found.append(thread)
                break
            frame = frame.f_back
    return found
