"""The twin of thread_states.c. It numbers the states itself: each is found by its thread's ident, when it is first met.

A thread that ended unseen, and whose ident was used again before the next look, is taken for the one that follows. Its
stacks are read one after the other, while threads go on.
"""

from __future__ import annotations

import _thread
import sys
from itertools import count

__all__ = [
    "lock_address",
    "runtime_span",
    "stop_thread",
    "thread_stacks",
    "thread_state",
    "thread_states",
    "tie_thread",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

_numbers = count(1)
_by_ident: dict[int, int] = {}
_own = _thread._local()


class _End:
    """Dies with its thread, whose ident then is another's."""

    def __init__(self, ident: int, state: int) -> None:
        self.ident = ident
        self.state = state

    def __del__(self, known: dict[int, int] = _by_ident) -> None:
        if known.get(self.ident) == self.state:
            del known[self.ident]


def thread_state() -> int:
    try:
        end: _End = _own.end
    except AttributeError:
        ident = _thread.get_ident()
        end = _own.end = _End(ident, _by_ident.setdefault(ident, next(_numbers)))
    return end.state


def thread_states() -> list[tuple[int, int, int, bool]]:
    thread_state()
    known = list(_by_ident)  # before the look: one that comes after it has not ended
    idents = list(sys._current_frames())  # the frames would keep each other: this function's is among them
    for ident in [ident for ident in known if ident not in idents]:
        _by_ident.pop(ident, None)
    threading = sys.modules.get("threading")
    active = getattr(threading, "_active", {})  # a module that is being imported may have none yet
    rows = []
    for ident in reversed(idents):  # the newest comes first
        native_id = getattr(active.get(ident), "native_id", None) or 0
        rows.append((_by_ident.setdefault(ident, next(_numbers)), ident, native_id, True))
    return sorted(rows)


def thread_stacks(limit: int, only: int = 0) -> list[tuple[int, list[tuple[CodeType, int]]]]:
    frames = sys._current_frames()
    stacks = []
    for state, ident, _, _ in thread_states():
        frame: FrameType | None = frames.get(ident)
        if frame is None or only not in (0, state):
            continue
        stack: list[tuple[CodeType, int]] = []
        while frame is not None and len(stack) < limit:
            stack.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        stacks.append((state, stack))
    frames.clear()  # this function's is among them, and would be garbage
    return stacks


def tie_thread(state: int, thing: object) -> bool:
    return False


def stop_thread(state: int, kind: type[BaseException]) -> bool:
    import ctypes

    ident = next((ident for known, ident, _, _ in thread_states() if known == state), None)
    if ident is None:
        return False
    found: int = ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(kind))
    return bool(found)


def lock_address(lock: object) -> int:
    return 0


def runtime_span() -> tuple[int, int]:
    return 0, 0
