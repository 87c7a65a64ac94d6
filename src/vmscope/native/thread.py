"""The Python twin of thread.c: threads of our own, with the GIL, and what os.fork does to them.

One difference shows: after a fork a thread starts again with the next entry, `refresh` or collection, because
Python code cannot start it after os.fork has returned (3.11, which does not warn: at once).
"""

from __future__ import annotations

import errno
import sys
from _thread import allocate_lock, start_new_thread

__all__ = ["after_fork_in_child", "after_fork_in_parent", "before_fork"]

_active: dict[str, Thread] = {}  # one of each kind; in this order, for what the first one calls may start the second


class Thread:
    """A thread that waits, works and ends when told. A subclass gives `_run`."""

    _kind = ""
    _fork_timeout = 50_000_000  # ns

    def __init__(self) -> None:
        self.error = 0
        self._running = allocate_lock()  # held by the thread
        self._wake = allocate_lock()  # held while there is nothing to wake the thread for
        self._wake.acquire()
        self._stopping = self._finished = False
        self._paused = 0  # forks under way

    def _run(self) -> None:
        """Works until `_stopping`."""
        raise NotImplementedError

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
        return self._stop_thread(timeout)

    def _start_thread(self) -> None:
        self._stopping = False
        if self._running.acquire(False):
            try:
                start_new_thread(self._work, ())
            except RuntimeError as error:
                self._running.release()
                raise OSError(errno.EAGAIN, str(error)) from error

    def _work(self) -> None:
        try:
            self._run()
        finally:
            self._running.release()

    def _stop_thread(self, timeout: int) -> bool:
        self._stopping = True
        self._kick()
        if not self._running.acquire(timeout=timeout / 1e9):
            return False
        self._running.release()
        return True

    def _kick(self) -> None:
        try:
            self._wake.release()
        except RuntimeError:
            pass  # it is kicked already

    def _wait(self, nanoseconds: int) -> bool:
        if not self._stopping:
            self._wake.acquire(timeout=nanoseconds / 1e9)
        return self._stopping


# -- fork ---------------------------------------------------------------------------------------------


def resume() -> None:
    """Starts the threads again that a fork stopped."""
    for thread in tuple(_active.values()):
        if not thread._paused and not thread._finished:
            try:
                thread._start_thread()
            except OSError as error:
                thread.error = error.errno or errno.EAGAIN


def before_fork() -> None:
    """For os.register_at_fork: stops the threads."""
    seen = 0
    while seen < len(_active):  # the first one's last work may be to start the second
        thread = tuple(_active.values())[seen]
        thread._paused += 1
        if thread._paused == 1:  # of two threads that fork at once the first one waits
            thread._stop_thread(thread._fork_timeout)
        seen += 1


def after_fork_in_parent() -> None:
    """For os.register_at_fork: lets them start again."""
    for thread in _active.values():
        if thread._paused:
            thread._paused -= 1
    if sys.version_info < (3, 12):
        resume()


def after_fork_in_child() -> None:
    """For os.register_at_fork: forgets them: they are the parent's."""
    _active.clear()
