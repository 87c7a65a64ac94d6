"""The locks of metrics: labels() in a signal handler, or in a child that was forked while a thread had one, hangs on
prometheus_client's own."""

from __future__ import annotations

import os
from _thread import RLock
from weakref import WeakSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_locks: WeakSet[Any] = WeakSet()


def make() -> Any:
    """One that the thread which has it may take again, and that is free in a forked child."""
    lock = RLock()
    _locks.add(lock)
    return lock


def after_fork() -> None:
    for lock in list(_locks):
        if not lock._is_owned():  # the thread that has it is the parent's
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=after_fork)
