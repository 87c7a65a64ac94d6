"""The Python twin of deferring_lock.c, without which there are not native agents: nothing is to be postponed."""

from __future__ import annotations

from _thread import RLock as DeferringLock

__all__ = ["DeferringLock"]
