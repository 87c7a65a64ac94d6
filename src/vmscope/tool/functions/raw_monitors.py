"""The functions on raw monitors."""

from __future__ import annotations

import sys

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model.monitors import RawMonitor


class RawMonitors(Base):
    @function
    def create_raw_monitor(self, name: str) -> RawMonitor:
        """A new one, without an owner.

        CPython: a lock of `_thread`, with its owner and those who wait beside it.
        """
        return RawMonitor(name)

    @function
    def destroy_raw_monitor(self, monitor: RawMonitor) -> None:
        """After that it is InvalidMonitor. NotMonitorOwner while another thread owns it.

        CPython: its owner gives it up first.
        Differs: who waits in it is woken.
        """
        monitor.destroy()

    @function
    def raw_monitor_enter(self, monitor: RawMonitor) -> None:
        """Waits until no other thread owns it.

        CPython: the lock, unless this thread has it already.
        """
        monitor.enter()

    @function
    def raw_monitor_exit(self, monitor: RawMonitor) -> None:
        """Gives it up, when it has been done as often as entering. NotMonitorOwner.

        CPython: the lock is released.
        """
        monitor.exit()

    @function
    def raw_monitor_wait(self, monitor: RawMonitor, millis: int) -> None:
        """Gives it up until it is notified, or the time is over; 0 is for ever. NotMonitorOwner, Interrupted.

        CPython: a lock for each that waits, which the notifier releases.
        Differs: in the main thread a signal's handler may raise out of it.
        """
        monitor.wait(millis)

    @function
    def raw_monitor_notify(self, monitor: RawMonitor) -> None:
        """Wakes one that waits. NotMonitorOwner.

        CPython: the one that has waited longest.
        """
        monitor.notify(1)

    @function
    def raw_monitor_notify_all(self, monitor: RawMonitor) -> None:
        """Wakes all that wait. NotMonitorOwner.

        CPython: in the order in which they came.
        """
        monitor.notify(sys.maxsize)
