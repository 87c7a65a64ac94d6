"""The functions that start threads, stop and interrupt them."""

from __future__ import annotations

import _thread
from _thread import allocate_lock, start_new_thread  # as before anybody's ThreadStart, and before gevent's patches
from collections.abc import Callable

from vmscope import native, own_threads
from vmscope.tool import agent_errors
from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import threads
from vmscope.tool.model.monitors import interrupters, wake
from vmscope.tool.model.threads import Thread
from vmscope.tool.spec.errors import InvalidObject, InvalidPriority, InvalidThread, OutOfMemory, ThreadNotAlive, shown
from vmscope.tool.spec.events import Event

LOWEST, HIGHEST = 1, 10  # priorities


class ThreadControl(Base):
    @function
    def stop_thread(self, thread: Thread, exception: object) -> None:
        """Lets a thread raise an exception, an object or a class, where it stands. InvalidObject, ThreadNotAlive;
        NullPointer for None.

        CPython: PyThreadState_SetAsyncExc.
        Differs: a thread that waits in C raises it when it returns from there; a second one replaces the first.
        """
        if isinstance(exception, BaseException):
            kind = _raising_type(exception)
        elif isinstance(exception, type) and issubclass(exception, BaseException):
            kind = exception
        else:
            raise InvalidObject(f"{shown(exception)} is not an exception")
        if not native.stop_thread(thread.state, kind):
            raise ThreadNotAlive(f"{thread!r} has ended")

    @function
    def interrupt_thread(self, thread: Thread | None = None) -> None:
        """Ends a thread's wait in a raw monitor, with Interrupted; the next one, where it is not waiting now.
        None is the current thread.

        CPython: in the main thread SIGINT's handler runs too, by default a KeyboardInterrupt; it ends a sleep as well.
        Differs: other threads cannot be woken out of what they wait for in C.
        """
        thread = thread or threads.current()
        thread.interrupted = True
        waiter = thread.waiter
        woken = [interrupt(thread.native_id) for interrupt in interrupters if thread.native_id]
        if waiter is not None:
            wake(waiter)
        elif not any(woken) and is_main(thread):
            _interrupt_main(thread)

    @function
    def run_agent_thread(
        self, thread: Thread, proc: Callable[..., object], argument: object = None, priority: int = 5
    ) -> None:
        """Starts a thread that runs `proc(environment, argument)`. `thread` is a new `Thread(name=...)`; InvalidThread
        for one that was started before, InvalidPriority for one not from 1 to 10.

        CPython: _thread.start_new_thread; `threading` does not know it, and the exit does not wait for it. What it \
raises is logged.
        Differs: the priority has no effect.
        """
        if thread.started:
            raise InvalidThread(f"{thread!r} was started before")
        if not LOWEST <= priority <= HIGHEST:
            raise InvalidPriority(f"a priority is from {LOWEST} to {HIGHEST}, not {priority}")
        thread.priority, thread.daemon = priority, True
        started = allocate_lock()
        started.acquire()
        with threads.starting:
            try:
                start_new_thread(self._run_agent, (thread, proc, argument, started.release))
            except RuntimeError as error:  # can't start new thread
                raise OutOfMemory("the system starts no thread") from error
            started.acquire()

    def _run_agent(
        self, thread: Thread, proc: Callable[..., object], argument: object, started: Callable[[], None]
    ) -> None:
        with native.DeferringLock():  # for which the one that starts it waits
            thread.begin()
        started()
        self.host.post(Event.THREAD_START, thread)
        try:
            proc(self, argument)
        except SystemExit:
            return
        except BaseException as error:
            agent_errors.report(self.agent, "thread", "its thread %s raised", thread.name, error=error)
        finally:
            self.host.post(Event.THREAD_END, thread)
            _forget_dummy(thread)


def _raising_type(exception: BaseException) -> type[BaseException]:
    """A class that, called to make an exception, gives this one: CPython sends classes only."""

    class Raising(BaseException):
        def __new__(cls) -> BaseException:  # type: ignore[misc]
            return exception

    return Raising


def is_main(thread: Thread) -> bool:
    """Whether it is the one on which Python calls the handlers of signals."""
    import threading

    return threading.main_thread().ident == thread.ident


def _interrupt_main(thread: Thread) -> None:
    import signal

    if callable(signal.getsignal(signal.SIGINT)):
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(thread.ident, signal.SIGINT)  # which ends a system call, too
        else:
            _thread.interrupt_main()


def _forget_dummy(thread: Thread) -> None:
    """What asks for the current thread, as logging does, lets `threading` make an object that never ends."""
    threading = own_threads.threading_module()
    if threading is not None and isinstance(threading._active.get(thread.ident), threading._DummyThread):
        with threading._active_limbo_lock:
            threading._active.pop(thread.ident, None)
