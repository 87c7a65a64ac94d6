"""The Python twin of gate.c. A thread that waits stands in a frame of it, left out of its stack as all of vmscope's.

An exception that another thread sends it meanwhile arrives in that frame, and so not in the program.
"""

from __future__ import annotations

from vmscope.native.states import thread_state

__all__ = ["Gate"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from types import CodeType


class Gate:
    """Called as sys.monitoring calls: a thread for whose state there is a lock waits until the lock is free."""

    __slots__ = ("_own", "locks", "parked")

    def __init__(self, own: str) -> None:
        self._own = own
        self.locks: dict[int, LockType] = {}
        self.parked: set[int] = set()

    def __call__(self, code: CodeType, *_: object) -> None:
        if not self.locks or code.co_filename.startswith(self._own):
            return
        state = thread_state()
        while lock := self.locks.get(state):
            self.parked.add(state)
            try:
                with lock:
                    pass
            finally:
                self.parked.discard(state)
