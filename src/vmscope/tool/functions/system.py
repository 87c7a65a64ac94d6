"""The functions about the machine and the clocks, and the two that are there for agents in C."""

from __future__ import annotations

import time
from enum import IntEnum

from vmscope.tool import processors
from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import threads
from vmscope.tool.model.threads import Thread
from vmscope.tool.spec.errors import IllegalArgument, ThreadNotAlive


class TimerKind(IntEnum):
    """What a clock measures."""

    USER_CPU = 30
    TOTAL_CPU = 31
    ELAPSED = 32


class LocationFormat(IntEnum):
    """What a location is."""

    OTHER = 0
    JVMBCI = 1
    MACHINEPC = 2


class TimerInfo:
    """A clock: each counts nanoseconds from 0 to `max_value`.

    `kind` says whose time, `may_skip_forward` and `may_skip_backward` whether it can jump.
    """

    __slots__ = ("kind", "max_value", "may_skip_backward", "may_skip_forward")

    def __init__(self, kind: TimerKind) -> None:
        self.kind = kind
        self.max_value = (1 << 63) - 1
        self.may_skip_forward = False
        self.may_skip_backward = False

    def __repr__(self) -> str:
        return f"<TimerInfo {self.kind.name}>"


class System(Base):
    @function
    def get_time(self) -> int:
        """Nanoseconds since some moment; only differences mean anything.

        CPython: time.perf_counter_ns.
        """
        return time.perf_counter_ns()

    @function
    def get_timer_info(self) -> TimerInfo:
        """The clock of `get_time`.

        CPython: monotonic.
        """
        return TimerInfo(TimerKind.ELAPSED)

    @function
    def get_current_thread_cpu_time(self) -> int:
        """Nanoseconds of processor time, user and system, of the calling thread.

        CPython: time.thread_time_ns.
        """
        return time.thread_time_ns()

    @function
    def get_current_thread_cpu_timer_info(self) -> TimerInfo:
        """The clock of `get_current_thread_cpu_time`.

        CPython: user and system time.
        """
        return TimerInfo(TimerKind.TOTAL_CPU)

    @function
    def get_thread_cpu_time(self, thread: Thread | None = None) -> int:
        """Nanoseconds of processor time, user and system, of a thread; None for the calling one. ThreadNotAlive.

        CPython: the CPU clock of its native id.
        """
        thread = thread or threads.current()
        try:
            return time.clock_gettime_ns(cpu_clock(thread))
        except OSError:
            raise ThreadNotAlive(f"{thread!r} has ended") from None

    @function
    def get_thread_cpu_timer_info(self) -> TimerInfo:
        """The clock of `get_thread_cpu_time`.

        CPython: user and system time.
        """
        return TimerInfo(TimerKind.TOTAL_CPU)

    @function
    def get_available_processors(self) -> int:
        """How many processors this process may run on now.

        CPython: those that it is bound to; fewer where a control group limits its time, as a JVM counts.
        """
        return processors.available()

    @function
    def get_jlocation_format(self) -> LocationFormat:
        """What a location is.

        CPython: OTHER: the offset of an instruction in co_code.
        Differs: a JVM's are indexes of its own bytecodes.
        """
        return LocationFormat.OTHER

    @function
    def allocate(self, size: int) -> bytearray:
        """Memory for the agent, zeroed. IllegalArgument for less than nothing, OutOfMemory.

        CPython: a bytearray.
        """
        if size < 0:
            raise IllegalArgument(f"{size} bytes cannot be allocated")
        return bytearray(size)

    @function
    def deallocate(self, memory: bytearray | None) -> None:
        """Gives memory from `allocate` back, so that it is empty; None is allowed. IllegalArgument while it is in use.

        CPython: the bytearray is cleared; without this it goes with its last reference.
        """
        try:
            if memory is not None:
                memory.clear()
        except BufferError:
            raise IllegalArgument("a view of this memory is in use") from None


def cpu_clock(thread: Thread) -> int:
    """The clock that Linux has for a thread id: one that is gone is an error, where pthread's would crash."""
    if thread.native_id is None:
        raise ThreadNotAlive(f"{thread!r} has no native thread that is known")
    return ~thread.native_id << 3 | 6
