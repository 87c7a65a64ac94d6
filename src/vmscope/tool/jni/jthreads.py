"""What a jthread refers to: the program's own object for the thread, which `threading` has, else a stand-in for one.

A handle may be made when `threading` does not have the object yet, and so often that a look for it would cost more
than the event. So it is resolved when it is used (`native/jni/handles.c`).
"""

from __future__ import annotations

import threading

from vmscope.tool.model import introspection, threads
from vmscope.tool.model.threads import Thread


class UnknownThread(threading.Thread):
    """Stands for a thread that `threading` does not know, and must not: an agent's, one of C code's."""

    def __init__(self, thread: Thread) -> None:  # not that of its base, which would count it among the program's
        self.thread = thread

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.thread!r}>"

    @property
    def name(self) -> str:
        return self.thread.name

    @name.setter
    def name(self, name: str) -> None:
        self.thread.rename(name)

    @property
    def daemon(self) -> bool:
        return self.thread.daemon

    @daemon.setter
    def daemon(self, daemonic: bool) -> None:
        self.thread.daemon = daemonic

    @property
    def ident(self) -> int | None:
        return self.thread.ident or None

    @property
    def native_id(self) -> int | None:
        return self.thread.native_id

    def is_alive(self) -> bool:
        return self.thread.alive

    def start(self) -> None:
        raise RuntimeError(f"{self!r} is started by RunAgentThread")

    def run(self) -> None:
        """It has nothing to run: an agent's function is run by RunAgentThread."""

    def join(self, timeout: float | None = None) -> None:
        raise RuntimeError(f"{self!r} cannot be waited for: threading does not know when it ends")


def object_of(thread: Thread | UnknownThread) -> threading.Thread:
    """What agents are handed for it."""
    if isinstance(thread, UnknownThread):
        thread = thread.thread
    known = thread.known()
    if known is not None:
        return known
    if thread.stand_in is None:
        thread.stand_in = UnknownThread(thread)
    return thread.stand_in  # type: ignore[return-value]


def thread_of(thing: object) -> object:
    """The Thread of what an agent hands over for one; what is not a thread comes back as it is."""
    if isinstance(thing, UnknownThread):
        return thing.thread
    return threads.of_program(thing) if introspection.is_a(thing, threading.Thread) else thing
