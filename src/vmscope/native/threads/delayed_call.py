"""The Python twin of delayed_call.c: one call, a moment from now, on a thread of our own.

Two differences show: what that thread opens is open in the whole process, and from Python 3.12 on a process that
forks before the call comes does without it.
"""

from __future__ import annotations

from time import monotonic_ns

from vmscope.native.threads.thread import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_later", "cancel_call", "enter_programs_code", "leave_programs_code", "prepare_listener"]

_TIMEOUT = 1_000_000_000  # ns: a fork in the middle of the call would copy half of what it does


class _DelayedCall(Thread):
    _kind = "delayed call"
    _fork_timeout = _TIMEOUT

    def __init__(self, delay: int, callback: Callable[[], object]) -> None:
        super().__init__()
        self._deadline = monotonic_ns() + delay
        self._callback = callback

    def _run(self) -> None:
        left = self._deadline - monotonic_ns()
        if left <= 0 or not self._wait(left):
            self._finished = True
            try:
                self._callback()
            except Exception:
                pass  # it reports its own failures; a host is never troubled


_last: _DelayedCall | None = None


def call_later(delay: int, callback: Callable[[], object], /) -> None:
    """Calls `callback` once, on a thread of our own, in `delay` ns; not in a forked child.

    Takes the place of a call that still waits. OSError where no thread can be started.
    """
    global _last
    if delay < 0:
        raise ValueError("the delay is at least 0 ns")
    if not cancel_call():
        raise RuntimeError("an earlier call is still under way")
    _last = _DelayedCall(delay, callback)
    _last._activate()


def prepare_listener() -> None:
    """Nothing: the twin's descriptors are all the program's."""


def cancel_call(wait: bool = True, /) -> bool:
    """No call comes any more; one under way is waited for. False if that took too long.

    `wait` makes no difference here: a thread that only sleeps ends at once.
    """
    return _last is None or _last._deactivate(_TIMEOUT)


def enter_programs_code() -> None:
    """Nothing: the program's tools see the twin's own code too."""


def leave_programs_code() -> None:
    """Nothing, as above."""
