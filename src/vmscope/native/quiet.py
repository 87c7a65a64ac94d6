"""The Python twin of quiet.c, without which there are no native agents: nothing is to be postponed."""

from __future__ import annotations

from _thread import RLock as QuietLock

__all__ = ["QuietLock"]
