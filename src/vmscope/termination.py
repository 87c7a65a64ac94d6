"""Ends of this process that run no `atexit` function: SIGTERM and SIGHUP, `os._exit`, and `os.exec*`.

Each takes the region's file and the socket away first, and saves the region where that was asked for. Other ends need
nothing of this: a return of the main program runs `atexit` functions, a crash runs crash_handler.c's handler. Another
VM removes what SIGKILL leaves.
"""

from __future__ import annotations

import os
import sys

from vmscope import native, own_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_replaced: dict[str, tuple[object, object]] = {}  # of `os`, by name: what stood there, what stands there now
_end: Callable[[], object] | None = None
_forwarding_signal = 0  # a signal whose handler calls _end; 0: there is none


def take_signals(end: Callable[[], object]) -> None:
    """SIGTERM and SIGHUP, where the program neither handles nor ignores them, end the region and then the process.

    `end` ends the VM with its agents, for which Python code has to run: see `forwarding_signal`.
    """
    global _end
    was_taken, _end = _end is not None, end  # before they are: `leave` ends what an exception leaves half done
    if not was_taken:
        native.take_end_signals()
        own_threads.at_exit(native.leave_end_signals)


def forwarding_signal() -> int:
    """The number of a signal whose handler ends the VM and then the process; 0 where there can be none.

    SIGRTMAX, which has no other use. A handler can be installed on the main thread alone.
    """
    global _forwarding_signal
    import _signal  # type: ignore[import-not-found]  # signal without its enums, which take 1 ms

    if _end is not None and not _forwarding_signal and _signal.getsignal(_signal.SIGRTMAX) == _signal.SIG_DFL:
        try:
            _signal.signal(_signal.SIGRTMAX, _end_in_order)
            _forwarding_signal = _signal.SIGRTMAX
        except ValueError:  # another thread
            pass
    return _forwarding_signal


def _end_in_order(signum: int, _: object) -> None:
    global _forwarding_signal
    import _signal

    _signal.signal(signum, _signal.SIG_DFL)
    _forwarding_signal = 0
    native.leave_end_signals()
    try:
        if _end is not None:
            _end()
    finally:  # whatever goes wrong, the program is not left running with an error that is not its own
        os.kill(os.getpid(), native.end_signal() or signum)


def watch_calls(returned: Callable[[], object], end: Callable[..., object] = native.end_region) -> None:
    """`os._exit` calls `end` first, and `os.exec*` ends the region; `returned` is called where exec has failed after
    that."""
    if _replaced:
        return

    def before_exec(path: object, *_: object) -> None:
        if _is_program(path) and native.end_region():
            own_threads.call(returned)

    for name, first in (("_exit", end), ("execv", before_exec), ("execve", before_exec)):
        function = getattr(os, name)
        stand_in = native.After(function, None, first)
        _replaced[name] = function, stand_in
        setattr(os, name, stand_in)
        if function in os.supports_fd:
            os.supports_fd.add(stand_in)


def leave() -> None:
    """Puts back what stood there before, where no other code has put something in its place."""
    global _end
    if _end is not None:
        native.leave_end_signals()
        _end = None
    for name, (function, stand_in) in _replaced.items():
        if getattr(os, name) is stand_in:
            setattr(os, name, function)
        os.supports_fd.discard(stand_in)
    _replaced.clear()


def _is_program(path: object) -> bool:
    """Whether exec may succeed: `os.execvp` tries each folder of PATH."""
    try:
        return os.access(path, os.X_OK) and not os.path.isdir(path)  # type: ignore[arg-type]
    except (OSError, TypeError, ValueError):
        return False


if sys.platform == "win32":  # a process there ends otherwise, and its mapping with it
    del forwarding_signal, leave, take_signals, watch_calls
