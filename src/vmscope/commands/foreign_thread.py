"""Commands run on a thread of vmscope's that the program does not know, and must not know when they have ended.

Two things that Python code does, knowingly or not, would show it. `threading` makes an object for each thread that
asks who it is, as logging does for every record. Before 3.13 it takes the thread that imports it first for the main
one, which the end of the process would then wait for.
"""

from __future__ import annotations

import _thread
import os
import sys

from vmscope import own_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from types import ModuleType, TracebackType


class HiddenThread:
    """A context, around whatever runs code that is not ours, or may call some: what `threading` took for true in it is
    put right. Unless it is `ours` it finds modules as the program does."""

    __slots__ = ("_code", "_known", "_there")

    def __init__(self, ours: bool = False) -> None:
        self._code = None if ours else own_threads.ProgramsCode()

    def __enter__(self) -> None:
        if self._code is not None:
            self._code.__enter__()
        module = own_threads.threading_module()
        self._there = module is not None
        self._known = module is not None and _thread.get_ident() in module._active

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._code is not None:
            self._code.__exit__()
        module = own_threads.threading_module()
        if module is None:
            return
        if not self._there:
            _give_to_main(module)
        if not self._known:
            _forget(module)


def _forget(module: ModuleType) -> None:
    with module._active_limbo_lock:
        if isinstance(module._active.get(_thread.get_ident()), module._DummyThread):
            del module._active[_thread.get_ident()]


def _give_to_main(module: ModuleType) -> None:
    """`threading` was imported here first: its main thread is not this one, but the oldest."""
    main: threading.Thread = module._main_thread
    ident = [*sys._current_frames()][-1]
    main._native_id = os.getpid()  # type: ignore[attr-defined]
    if main.ident == ident:
        return
    with module._active_limbo_lock:
        module._active.pop(main.ident, None)
        module._active[ident] = main
        main._ident = ident  # type: ignore[attr-defined]
    lock = _thread.allocate_lock()  # in place of one that the end of this thread would release
    lock.acquire()
    with module._shutdown_locks_lock:
        module._shutdown_locks.discard(main._tstate_lock)  # type: ignore[attr-defined]
        module._shutdown_locks.add(lock)
        main._tstate_lock = lock  # type: ignore[attr-defined]
