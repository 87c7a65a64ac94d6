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
    from typing import Any

_replaced: list[tuple[object, str, object, Any]] = []  # module, name, what stood there, what stands there now
_end: Callable[[], object] | None = None
_TAKEN = 1, 15  # SIGHUP, SIGTERM
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
        if native.IMPLEMENTATION == "c":  # the twin's handler is what a program finds there, and puts back
            import _signal  # type: ignore[import-not-found]  # signal without its enums, which take 1 ms

            _replace(_signal, "signal", _take_signals_again)


def _take_signals_again(_previous: object, signum: int, *_: object) -> None:
    """After `signal.signal`, which puts the default action where the handler in C has been: a server that handled the
    signal for a while, as uvicorn does, ends itself by it."""
    if _end is not None and signum in _TAKEN:
        native.take_end_signals()


def forwarding_signal() -> int:
    """The number of a signal whose handler ends the VM and then the process; 0 where there can be none.

    SIGRTMAX, which has no other use. A handler can be installed on the main thread alone.
    """
    global _forwarding_signal
    import _signal

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
    if any(module is os for module, *_ in _replaced):
        return

    def before_exec(path: object, *_: object) -> None:
        if _is_program(path) and native.end_region():
            own_threads.call(returned)

    for name, first in (("_exit", end), ("execv", before_exec), ("execve", before_exec)):
        function, stand_in = _replace(os, name, None, first)
        if function in os.supports_fd:
            os.supports_fd.add(stand_in)


def _replace(
    module: Any, name: str, then: Callable[..., object] | None, first: Callable[..., object] | None = None
) -> tuple[Any, Any]:
    """The function of the module, and what stands in its place from now on."""
    function = getattr(module, name)
    stand_in = native.After(function, then, first)
    _replaced.append((module, name, function, stand_in))
    setattr(module, name, stand_in)
    return function, stand_in


def leave() -> None:
    """Puts back what stood there before, where no other code has put something in its place."""
    global _end
    if _end is not None:
        native.leave_end_signals()
        _end = None
    for module, name, function, stand_in in _replaced:
        if getattr(module, name) is stand_in:
            setattr(module, name, function)
        os.supports_fd.discard(stand_in)
    _replaced.clear()


def _is_program(path: object) -> bool:
    """Whether exec may succeed: `os.execvp` tries each folder of PATH. It takes a descriptor too."""
    if isinstance(path, int):
        path = f"/proc/self/fd/{path}"
    try:
        return os.access(path, os.X_OK) and not os.path.isdir(path)  # type: ignore[arg-type]
    except (OSError, TypeError, ValueError):
        return False


if sys.platform == "win32":  # a process there ends otherwise, and its mapping with it
    del forwarding_signal, leave, take_signals, watch_calls
