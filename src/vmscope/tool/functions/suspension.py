"""The functions that suspend threads and let them go on."""

from __future__ import annotations

import _thread
import os
import time
from collections.abc import Sequence

from vmscope import native
from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import threads
from vmscope.tool.model.frames import OWN
from vmscope.tool.model.introspection import is_a
from vmscope.tool.model.thread_state import ThreadState, state_of
from vmscope.tool.model.threads import Thread
from vmscope.tool.sources import thread_events
from vmscope.tool.spec.codes import Error
from vmscope.tool.spec.errors import (
    InvalidEnvironment,
    InvalidThread,
    NotAvailable,
    ThreadNotAlive,
    ThreadNotSuspended,
    ThreadSuspended,
    ToolError,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARY = os.path.dirname(os.__file__) + os.sep  # what vmscope's own code calls
HOSTS = f"{OWN}cli{os.sep}", thread_events.__file__  # which call the program's code
ARRIVAL = 0.1  # s: the longest that a thread is waited for that still runs; it stops when it is through with its line


class Suspension:
    """The suspended threads of one VM. `gate` is what sys.monitoring calls for each line and jump while there are any;
    `armed` says that it does."""

    def __init__(self) -> None:
        self.gate = native.SuspendGate(OWN, LIBRARY, HOSTS)
        self.armed = False
        self._threads: dict[Thread, Base] = {}  # by whom

    def __bool__(self) -> bool:
        return bool(self._threads)

    def add(self, thread: Thread, by: Base) -> None:
        """ThreadSuspended."""
        if thread.suspended:
            raise ThreadSuspended(f"{thread!r} is suspended already")
        lock = _thread.allocate_lock()
        lock.acquire()
        self.gate.locks[thread.state] = lock
        self._threads[thread] = by
        thread.suspended, thread.gate = True, self.gate
        thread.endings.add(self._ended)

    def remove(self, thread: Thread) -> None:
        """ThreadNotSuspended."""
        if not thread.suspended:
            raise ThreadNotSuspended(f"{thread!r} is not suspended")
        self._ended(thread)
        thread.endings.discard(self._ended)

    def drop(self, by: Base) -> None:
        """Those that this environment has suspended go on."""
        for thread in [thread for thread, whose in self._threads.items() if whose is by]:
            self.remove(thread)

    def _ended(self, thread: Thread) -> None:
        thread.suspended = False
        self._threads.pop(thread, None)
        lock = self.gate.locks.pop(thread.state, None)
        if lock is not None:
            lock.release()

    def wait_for(self, those: Sequence[Thread]) -> None:
        """Until each stands still, or waits for something outside of Python; not for ever."""
        deadline = time.monotonic() + ARRIVAL
        running = ThreadState.ALIVE | ThreadState.RUNNABLE | ThreadState.SUSPENDED
        for thread in those:
            while thread.state not in self.gate.parked and state_of(thread, None) == running:
                if time.monotonic() >= deadline:
                    return
                time.sleep(0.0002)


class Suspending(Base):
    @function
    def suspend_thread(self, thread: Thread | None = None) -> None:
        """Stops a thread until it is resumed; None is the current one, which returns when another has resumed it.
        ThreadSuspended, ThreadNotAlive.

        CPython: LINE and JUMP of sys.monitoring for all code; the thread waits in what they call.
        Differs: it stops before its next line; where it waits in C, when it comes back from there. While any \
thread is suspended, each line and jump of the others costs a call. It goes on too when this environment is disposed of.
        """
        thread = thread or threads.current()
        with self.host.lock:
            self._add(thread)
            self._arm([thread])
        self._settle([thread])

    @function
    def resume_thread(self, thread: Thread | None = None) -> None:
        """Lets a suspended thread go on. ThreadNotSuspended, ThreadNotAlive.

        CPython: the lock that it waits for is released.
        """
        self._resume(thread or threads.current())

    @function
    def suspend_thread_list(self, threads: Sequence[Thread]) -> list[Error]:
        """As `suspend_thread` for each, the current thread last. What became of each stands in the list: NONE,
        THREAD_SUSPENDED, THREAD_NOT_ALIVE, INVALID_THREAD.

        CPython: as for one; all are asked to stop before any is waited for.
        """
        with self.host.lock:
            results = [outcome(self._add, thread) for thread in threads]
            added = [thread for thread, result in zip(threads, results, strict=True) if result == Error.NONE]
            if added:
                self._arm(added)
        self._settle(added)
        return results

    @function
    def resume_thread_list(self, threads: Sequence[Thread]) -> list[Error]:
        """As `resume_thread` for each. What became of each stands in the list: NONE, THREAD_NOT_SUSPENDED,
        THREAD_NOT_ALIVE, INVALID_THREAD.

        CPython: as for one.
        """
        return [outcome(self._resume, thread) for thread in threads]

    def _arm(self, added: Sequence[Thread]) -> None:
        """NotAvailable, and no thread is suspended, where sys.monitoring cannot be had."""
        self.host.changed()
        if not self.host.suspension.armed:
            for thread in added:
                self.host.suspension.remove(thread)
            raise NotAvailable("all tool ids of sys.monitoring are taken: no thread can be stopped")

    def _settle(self, added: Sequence[Thread]) -> None:
        """Until the others stand still; then, if it is among them, the current thread does."""
        own = threads.current()
        self.host.suspension.wait_for([thread for thread in added if thread is not own])
        if own in added:
            self.host.suspension.gate(PROGRAM)

    def _add(self, thread: Thread) -> None:
        check(thread)
        if self.disposed:  # meanwhile: it would never be resumed
            raise InvalidEnvironment("this environment has been disposed of")
        self.host.suspension.add(thread, self)
        if self._resume_all not in self.closers:
            self.closers.append(self._resume_all)

    def _resume_all(self) -> None:
        """It is disposed of."""
        with self.host.lock:
            self.host.suspension.drop(self)
            self.host.changed()

    def _resume(self, thread: Thread) -> None:
        with self.host.lock:
            check(thread)
            self.host.suspension.remove(thread)
        self.host.changed()


PROGRAM = compile("", "<suspended>", "exec")  # code that is not vmscope's own


def check(thread: object) -> None:
    """InvalidThread, ThreadNotAlive."""
    if not is_a(thread, Thread):
        raise InvalidThread(f"{shown(thread)} is not a Thread")
    if not thread.alive:
        raise ThreadNotAlive(f"{thread!r} is not alive")


def outcome(call: Callable[[Thread], None], thread: Thread) -> Error:
    """The code of what a call for one thread of a list came to."""
    try:
        call(thread)
    except ToolError as error:
        return Error(error.code)
    return Error.NONE
