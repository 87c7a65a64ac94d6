"""The twin of termination_signals.c. signal.getsignal shows its handler, in Python, which waits for the main thread."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal without its enums, which take 1 ms
import os

from vmscope.native.signals import crash_handler

__all__ = ["end_signal", "forward_end_signals", "leave_end_signals", "take_end_signals"]

_TAKEN = (_signal.SIGTERM, _signal.SIGHUP)

_forward_to = _received = 0


def take_end_signals() -> None:
    """SIGTERM and SIGHUP, where their action is the default, end the region and the process. For the main thread."""
    for number in _TAKEN:
        if _signal.getsignal(number) == _signal.SIG_DFL:
            _signal.signal(number, _on_end)


def _on_end(signum: int, _: object) -> None:
    global _received
    _received = signum
    if _forward_to:
        _signal.raise_signal(_forward_to)
        return
    crash_handler.end_region()
    _signal.signal(signum, _signal.SIG_DFL)
    os.kill(os.getpid(), signum)


def forward_end_signals(signum: int, /) -> None:
    """From now on they call the handler of this signal instead, which has to end the process; 0: they do not."""
    global _forward_to
    _forward_to = signum


def leave_end_signals() -> None:
    """Puts back the default action where it was taken and no handler came since."""
    for number in _TAKEN:
        if _signal.getsignal(number) is _on_end:
            _signal.signal(number, _signal.SIG_DFL)


def end_signal() -> int:
    """The one of them that came last; 0: none did."""
    return _received
