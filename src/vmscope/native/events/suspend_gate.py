"""The twin of suspend_gate.c. A thread that waits stands in a frame of it, left out of its stack as all of vmscope's.

An exception that another thread sends it meanwhile arrives in that frame, and so not in the program.
"""

from __future__ import annotations

import sys

from vmscope.native.stacks.thread_states import thread_state

__all__ = ["SuspendGate"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from types import CodeType, FrameType


class SuspendGate:
    """Called as sys.monitoring calls: a thread for whose state there is a lock waits until the lock is free."""

    __slots__ = ("_called", "_hosts", "_own", "locks", "parked")

    def __init__(self, own: str, called: str, hosts: tuple[str, ...]) -> None:
        self._own = own
        self._called = called
        self._hosts = hosts
        self.locks: dict[int, LockType] = {}
        self.parked: set[int] = set()

    def __call__(self, code: CodeType, *given: object) -> None:
        if not self.locks or code.co_filename.startswith(self._own):
            return
        state = thread_state()
        if state in self.locks and given and self._is_called_by_own(code):
            return
        while lock := self.locks.get(state):
            self.parked.add(state)
            try:
                with lock:
                    pass
            finally:
                self.parked.discard(state)

    def _is_called_by_own(self, code: CodeType) -> bool:
        """Whether the calling thread is in what code of vmscope's has called, maybe with a lock of vmscope's."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code is not code:  # the dispatch's
            frame = frame.f_back
        while frame is not None and frame.f_code.co_filename.startswith(self._called):
            frame = frame.f_back
        name = "" if frame is None else frame.f_code.co_filename
        return name.startswith(self._own) and not name.startswith(self._hosts)
