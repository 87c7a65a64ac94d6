"""JNI's MonitorEnter and MonitorExit: each object has a lock, which is there while somebody has it or waits for it.
What a thread has at its end, or when it is detached, it gives up."""

from __future__ import annotations

import _thread
import os

from vmscope.tool import threads
from vmscope.tool.jni.group import Group
from vmscope.tool.quiet import QuietLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.jni.machine import Machine
    from vmscope.tool.threads import Thread

ERROR = -1


class _Monitor:
    __slots__ = ("entered", "lock", "owner", "thing", "users")

    def __init__(self, thing: object) -> None:
        self.thing = thing  # its id is not another's meanwhile
        self.lock = _thread.allocate_lock()
        self.owner: Thread | None = None
        self.entered = 0  # how often by its owner
        self.users = 0  # who has it, or waits for it


class Monitors(Group):
    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._monitors: dict[int, _Monitor] = {}
        self._changing = QuietLock()
        os.register_at_fork(  # in a child other threads' ends change something, at once
            before=self._changing.acquire,
            after_in_parent=self._changing.release,
            after_in_child=self._changing.release,
        )

    def monitor_enter(self, thing: object) -> int:
        own = threads.current()
        with self._changing:
            monitor = self._monitors.setdefault(id(thing), _Monitor(thing))
            if monitor.owner is own:
                monitor.entered += 1
                return 0
            monitor.users += 1
        try:
            monitor.lock.acquire()
        except BaseException:
            self._leave(monitor)
            raise
        monitor.owner, monitor.entered = own, 1
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
        why = "nobody has entered it" if monitor is None else "it is another thread's"
        self.jni.throw(RuntimeError(f"MonitorExit: the monitor of {thing!r}: {why}"))
        return ERROR

    def _give_up(self, thread: Thread) -> None:
        with self._changing:
            for monitor in [*self._monitors.values()]:
                if monitor.owner is thread:
                    self._abandon(monitor)

    def _abandon(self, monitor: _Monitor) -> None:
        monitor.owner, monitor.entered = None, 0
        monitor.lock.release()
        self._leave(monitor)

    def _leave(self, monitor: _Monitor) -> None:
        with self._changing:
            monitor.users -= 1
            if not monitor.users:
                self._monitors.pop(id(monitor.thing), None)
