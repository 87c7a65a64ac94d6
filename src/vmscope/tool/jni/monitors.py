"""JNI's MonitorEnter and MonitorExit: each object has a lock, which is there while a thread has it or waits for it.
What a thread has at its end, or when it is detached, it gives up."""

from __future__ import annotations

import _thread
import os

from vmscope import native
from vmscope.tool.functions import monitor_info
from vmscope.tool.jni.base import Group
from vmscope.tool.model import threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.jni.bridge import NativeAgentBridge
    from vmscope.tool.model.threads import Thread

ERROR = -1


class _Monitor:
    __slots__ = ("entered", "lock", "owner", "thing", "waiters")

    def __init__(self, thing: object) -> None:
        self.thing = thing  # its id is not another's meanwhile
        self.lock = _thread.allocate_lock()
        self.owner: Thread | None = None
        self.entered = 0  # how often by its owner
        self.waiters: list[Thread] = []  # to get it


class Monitors(Group):
    def __init__(self, bridge: NativeAgentBridge) -> None:
        super().__init__(bridge)
        self._monitors: dict[int, _Monitor] = {}
        self._changing = native.DeferringLock()
        os.register_at_fork(  # in a child other threads' ends change something, at once, and before what is done here
            before=self._changing.acquire,
            after_in_parent=self._changing.release,
            after_in_child=self._after_fork,
        )
        monitor_info.entered.append(self)

    def monitor_enter(self, thing: object) -> int:
        own = threads.current()
        with self._changing:
            monitor = self._monitors.setdefault(id(thing), _Monitor(thing))
            if monitor.owner is own:
                monitor.entered += 1
                return 0
            monitor.waiters.append(own)
        before = own.contended, own.patient
        try:
            if not monitor.lock.acquire(blocking=False):
                own.contended, own.patient = thing, True
                monitor.lock.acquire()
        except BaseException:
            self._leave(monitor, own)
            raise
        finally:
            own.contended, own.patient = before
        with self._changing:
            monitor.owner, monitor.entered = own, 1
            monitor.waiters.remove(own)
        own.endings.add(self._give_up)
        return 0

    def monitor_exit(self, thing: object) -> int:
        with self._changing:
            monitor = self._monitors.get(id(thing))
            if monitor is not None and monitor.owner is threads.current():
                monitor.entered -= 1
                if not monitor.entered:
                    self._abandon(monitor)
                return 0
        why = "no thread has entered it" if monitor is None else "it is another thread's"
        self.jni.throw(RuntimeError(f"MonitorExit: the monitor of {thing!r}: {why}"))
        return ERROR

    def held(self, thread: Thread) -> list[object]:
        """The objects whose monitors it has."""
        with self._changing:
            return [each.thing for each in self._monitors.values() if each.owner is thread]

    def holder(self, thing: object) -> tuple[Thread | None, int, list[Thread]] | None:
        """Who has an object's monitor, how often, and who waits for it; None where no thread does."""
        with self._changing:
            monitor = self._monitors.get(id(thing))
            return None if monitor is None else (monitor.owner, monitor.entered, [*monitor.waiters])

    def _after_fork(self) -> None:
        """Other threads do not wait any more, nor will they note what they have just got."""
        own = threads.current()
        for monitor in [*self._monitors.values()]:
            monitor.waiters = [each for each in monitor.waiters if each is own]
            self._forget(monitor)
        self._changing.release()

    def _give_up(self, thread: Thread) -> None:
        with self._changing:
            for monitor in [*self._monitors.values()]:
                if monitor.owner is thread:
                    self._abandon(monitor)

    def _abandon(self, monitor: _Monitor) -> None:
        monitor.owner, monitor.entered = None, 0
        monitor.lock.release()
        self._forget(monitor)

    def _leave(self, monitor: _Monitor, waiter: Thread) -> None:
        with self._changing:
            monitor.waiters.remove(waiter)
            self._forget(monitor)

    def _forget(self, monitor: _Monitor) -> None:
        if monitor.owner is None and not monitor.waiters:
            self._monitors.pop(id(monitor.thing), None)
