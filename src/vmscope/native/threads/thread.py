"""The Python twin of thread.c: threads of our own, with the GIL, and what os.fork does to them."""

from __future__ import annotations

import errno
import os
import sys
from _thread import allocate_lock, get_native_id, start_new_thread
from time import monotonic_ns, sleep, thread_time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType

__all__ = ["after_fork_in_child", "after_fork_in_parent", "before_fork", "in_main_interpreter"]

_HOOK_DEPTH = 16
_STUCK_TRIES = 4  # times the timeout, for a thread that a frozen disk holds
_PAUSE, STOP = 1, 2  # what a thread has to do: to end for the time of a fork, or for good

_active: dict[str, Thread] = {}  # one of each kind; in this order, for what the first one calls may start the second


class Own:
    """What these threads use: ns of CPU, and how many of them there are."""

    cpu = 0
    threads = 0


class Thread:
    """A thread that waits, works, and ends on request. A subclass gives `_run`."""

    _kind = ""
    _fork_timeout = 50_000_000  # ns
    _fork_tries = 40  # times that, for one that nothing gives a processor

    def __init__(self) -> None:
        self.error = 0
        self._running = allocate_lock()  # held by the thread
        self._wake = allocate_lock()  # held while there is nothing to wake the thread for
        self._wake.acquire()
        self._stopping = 0  # or _PAUSE, or STOP
        self._finished = False
        self._task = ""
        self._paused = 0  # forks under way
        self._late = False  # the last fork has waited in vain: the next ones hardly wait
        self._cpu = 0  # ns that are accounted for

    def _run(self) -> None:
        """Works until `_stopping`."""
        raise NotImplementedError

    def _forked(self) -> None:
        """In a forked child: what belongs to the parent's thread goes."""

    def _activate(self) -> None:
        """Takes the place of its kind and starts the thread. RuntimeError where another has it, OSError."""
        if _active.setdefault(self._kind, self) is not self:
            raise RuntimeError(f"this process has a running {self._kind}")
        self._finished = False
        try:
            self._start_thread()
        except OSError:
            del _active[self._kind]
            raise

    def _deactivate(self, timeout: int) -> bool:
        """Leaves the place, and ends the thread: True when it ended in time."""
        if _active.get(self._kind) is self:
            del _active[self._kind]  # no fork starts it again
        return self._stop_thread(STOP, timeout)

    def _start_thread(self) -> None:
        self._stopping = 0
        if self._running.acquire(False):
            try:
                start_new_thread(self._work, ())
            except RuntimeError as error:
                self._running.release()
                raise OSError(errno.EAGAIN, str(error)) from error

    def _work(self) -> None:
        self._task = f"/proc/self/task/{get_native_id()}"
        self._cpu = 0
        Own.threads += 1
        try:
            self._run()
        except Exception as error:  # the interpreter would print it
            self.error = getattr(error, "errno", None) or errno.EIO
        finally:
            self._account()
            Own.threads -= 1
            self._running.release()

    def _stop_thread(self, order: int, timeout: int) -> bool:
        deadline = monotonic_ns() + timeout
        self._stopping = order
        self._kick()
        if not self._running.acquire(timeout=timeout / 1e9):
            return False
        self._running.release()
        while os.path.exists(self._task) and monotonic_ns() < deadline:  # os.fork would still count it
            sleep(0)
        return True

    def _is_stuck(self) -> bool:
        """Whether the kernel keeps it waiting for a disk."""
        try:
            with open(f"{self._task}/stat", "rb") as file:
                return file.read().rpartition(b") ")[2].startswith(b"D")
        except OSError:
            return True

    def _kick(self) -> None:
        try:
            self._wake.release()
        except RuntimeError:
            pass  # it is kicked already

    def _wait(self, nanoseconds: int) -> int:
        """Waits, or until there is something to do; _PAUSE or STOP when the thread has to end."""
        self._account()
        if not self._stopping:
            self._wake.acquire(timeout=nanoseconds / 1e9)
        self._account()
        return self._stopping

    def _account(self) -> None:
        cpu = thread_time_ns()
        Own.cpu += cpu - self._cpu
        self._cpu = cpu


# -- fork ---------------------------------------------------------------------------------------------


def resume() -> None:
    """Starts the threads again that a fork stopped."""
    for thread in tuple(_active.values()):
        if not thread._paused and not thread._finished:
            try:
                thread._start_thread()
            except OSError as error:
                thread.error = error.errno or errno.EAGAIN


_forking: FrameType | None = None  # in which the main thread calls os.fork
_forking_at = 0  # and where in it: what it calls later is not a hook of that fork


class _PendingCall:
    """What the interpreter calls by PyObject_IsTrue, which is C: a callback that ctypes makes can be memory that is
    writable and executable."""

    def __bool__(self) -> bool:
        """False: it went well. Where it comes in a hook of the program's, os.fork has yet to count the threads."""
        global _forking
        frame: FrameType | None = sys._getframe(1)
        for _ in range(_HOOK_DEPTH):
            if frame is None or frame is _forking:
                break
            frame = frame.f_back
            if frame is not None and frame is _forking and frame.f_lasti == _forking_at:
                _resume_later()
                return False
        _forking = None
        resume()
        return False


_pending_call = _PendingCall()


def _resume_later() -> None:
    """From 3.12 on os.fork counts the threads after its hooks, to warn: only a pending call comes later than that."""
    try:
        from ctypes import py_object, pythonapi
    except ImportError:  # built without libffi: the next entry, `refresh` or collection resumes
        return
    pythonapi.Py_AddPendingCall(pythonapi.PyObject_IsTrue, py_object(_pending_call))


def _find_interpreters() -> ModuleType | None:
    for name in ("_interpreters", "_xxsubinterpreters"):  # from 3.13 on, before
        try:
            return __import__(name)
        except ImportError:
            continue
    return None


_interpreters = _find_interpreters()  # now: when it is asked, the program's folder may come before the library's


def in_main_interpreter() -> bool:
    """False in a sub-interpreter, which has no threads of vmscope's."""
    return _interpreters is None or bool(_interpreters.get_current() == _interpreters.get_main())


def before_fork() -> None:
    """For os.register_at_fork: stops the threads."""
    seen = 0
    while seen < len(_active):  # the first one's last work may be to start the second
        thread = tuple(_active.values())[seen]
        thread._paused += 1
        if thread._paused == 1:  # of two threads that fork at once the first one waits
            thread._late = not _pause(thread)
        seen += 1


def _pause(thread: Thread) -> bool:
    """Ends it for the time of a fork; False where that takes too long."""
    for tries in range(1, 2 if thread._late else thread._fork_tries + 1):
        if thread._stop_thread(_PAUSE, thread._fork_timeout):
            return True
        if tries >= _STUCK_TRIES and thread._is_stuck():
            break
    return False


def after_fork_in_parent() -> None:
    """For os.register_at_fork: lets them start again."""
    global _forking, _forking_at
    for thread in _active.values():
        if thread._paused:
            thread._paused -= 1
    if sys.version_info < (3, 12) or get_native_id() != os.getpid():
        resume()  # no warning is due, or one in any case, as the program has threads of its own
    elif _active:
        _forking = sys._getframe(1)
        _forking_at = _forking.f_lasti
        _resume_later()


def after_fork_in_child() -> None:
    """For os.register_at_fork: forgets them: they are the parent's."""
    for thread in _active.values():
        thread._forked()
    _active.clear()
    Own.cpu = Own.threads = 0
