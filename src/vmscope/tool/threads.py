"""Threads as the tool interface knows them: one `Thread` object for each thread state.

An ident is used again as soon as its thread has ended; a `Thread` and its `id` never are.
"""

from __future__ import annotations

import _thread
import os
import sys
from itertools import count

_ids = count(1)
_known: dict[int, Thread] = {}  # by ident: threads that have not ended


class Thread:
    """A thread: `ident` and `native_id` as in `threading`, and an `id` that no other thread of this process gets.

    Compared by identity. It outlives its thread, and is then no longer `alive`.
    """

    __slots__ = ("__weakref__", "_ended", "id", "ident", "native_id")

    def __init__(self, ident: int, native_id: int | None = None) -> None:
        self.id = next(_ids)
        self.ident = ident
        self.native_id = native_id
        self._ended = False

    @property
    def name(self) -> str:
        """What `threading` calls it; "" when it does not know it, or is not imported."""
        threading = sys.modules.get("threading")
        known = None if threading is None or self._ended else threading._active.get(self.ident)
        return "" if known is None else str(known.name)

    @property
    def alive(self) -> bool:
        """False once it has ended."""
        return not self._ended

    def end(self, known: dict[int, Thread] = _known) -> None:
        """Called once, when the thread ends; the last one ends after this module's names are gone."""
        self._ended = True
        if known.get(self.ident) is self:
            del known[self.ident]

    def __repr__(self) -> str:
        return f"<Thread {self.id} {self.name!r}{'' if self.alive else ', ended'}>"


class _End:
    """Dies with its thread's state, which then says that the thread has ended."""

    __slots__ = ("thread",)

    def __init__(self, thread: Thread) -> None:
        self.thread = thread

    def __del__(self) -> None:
        self.thread.end()


_local = _thread._local()


def current() -> Thread:
    """The calling thread's."""
    try:
        end: _End = _local.end
    except AttributeError:
        ident = _thread.get_ident()
        thread = Thread(ident, _thread.get_native_id())
        _known[ident] = thread
        _local.end = _End(thread)
        return thread
    return end.thread


def _after_fork() -> None:
    """In a child only the thread that forked goes on."""
    ident = _thread.get_ident()
    for thread in [*_known.values()]:
        if thread.ident == ident:
            thread.native_id = _thread.get_native_id()
        else:
            thread.end()


os.register_at_fork(after_in_child=_after_fork)
