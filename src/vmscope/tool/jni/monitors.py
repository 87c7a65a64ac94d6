"""JNI's MonitorEnter and MonitorExit: each object has a lock, which is there while somebody has it or waits for it."""

from __future__ import annotations

import _thread

from vmscope.tool.jni.group import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.jni.machine import Machine

ERROR = -1


class _Monitor:
    __slots__ = ("lock", "thing", "users")

    def __init__(self, thing: object) -> None:
        self.thing = thing  # its id is not another's meanwhile
        self.lock = _thread.RLock()
        self.users = 0  # how often it was entered, or is waited for


class Monitors(Group):
    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._monitors: dict[int, _Monitor] = {}
        self._changing = _thread.RLock()

    def monitor_enter(self, thing: object) -> int:
        with self._changing:
            monitor = self._monitors.setdefault(id(thing), _Monitor(thing))
            monitor.users += 1
        try:
            monitor.lock.acquire()
        except BaseException:
            self._leave(monitor)
            raise
        return 0

    def monitor_exit(self, thing: object) -> int:
        monitor = self._monitors.get(id(thing))
        try:
            if monitor is None:
                raise RuntimeError("nobody has entered it")
            monitor.lock.release()
        except RuntimeError as error:
            self.jni.throw(RuntimeError(f"MonitorExit: the monitor of {thing!r}: {error}"))
            return ERROR
        self._leave(monitor)
        return 0

    def _leave(self, monitor: _Monitor) -> None:
        with self._changing:
            monitor.users -= 1
            if not monitor.users:
                self._monitors.pop(id(monitor.thing), None)
