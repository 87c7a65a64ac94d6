"""One call, a moment from now, on a thread of our own: for what a process must not pay that ends soon.

Most processes that end, most forked children and all that become another program have done so by then.
"""

from __future__ import annotations

import atexit
import os

from vmscope import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DELAY = 20_000_000  # ns
_NO_COLLECTION = 1 << 30

_hooked = False
_ends: list[Callable[[], object]] = []
_waiting: Callable[[], object] | None = None
_thresholds: tuple[int, int, int] | None = None  # the program's, while they are not in force
_visits = 0  # calls under way for which they are not


def call(callback: Callable[[], object]) -> None:
    """Calls it in 20 ms; in a child that is forked before that, 20 ms after the fork.

    OSError where no thread can be started, RuntimeError in a sub-interpreter.
    """
    global _waiting
    _waiting = callback
    try:
        native.call_later(_DELAY, _run)
    except BaseException:
        _waiting = None
        raise
    hook()


def cancel(wait: bool = True) -> None:
    """No call comes any more; one under way is waited for. Without `wait` the thread may still be there, asleep."""
    global _waiting
    _waiting = None
    native.cancel_call(wait)


def hook() -> None:
    """Sees to it that fork and exit find our threads in order."""
    global _hooked
    if not _hooked:
        _hooked = True
        atexit.register(_exit)
        os.register_at_fork(
            before=native.before_fork, after_in_parent=native.after_fork_in_parent, after_in_child=_after_fork
        )


def at_exit(end: Callable[[], object]) -> None:
    """Calls it when the process ends. atexit forgets what a call under way registers while it is waited for."""
    hook()
    _ends.append(end)


def _exit() -> None:
    cancel(wait=False)  # on a busy machine even a thread that ends at once takes its time
    for end in _ends:
        end()


def _run() -> None:
    """On the thread: what is waiting."""
    global _waiting
    callback, _waiting = _waiting, None
    if callback is not None:
        without_collection(callback)


def without_collection(callback: Callable[[], object]) -> None:
    """Calls it, on a thread of ours, with no garbage collection but those that it asks for itself.

    One would run the program's destructors on a thread that the program does not know, and in a call of `call` where
    a descriptor has another meaning.
    """
    global _visits, _thresholds
    import gc

    if not _visits:
        _thresholds = gc.get_threshold()
        if _thresholds[0]:  # 0: the program does without
            gc.set_threshold(_NO_COLLECTION, *_thresholds[1:])
    _visits += 1
    try:
        callback()
    finally:
        _visits -= 1
        if not _visits:
            _restore()


def thresholds() -> tuple[int, int, int]:
    """The collector's, as the program has them: also in `without_collection`."""
    import gc

    return _thresholds or gc.get_threshold()


def _restore() -> None:
    global _thresholds
    import gc

    if _thresholds is not None and gc.get_threshold()[0] == _NO_COLLECTION:  # else the program has set its own
        gc.set_threshold(*_thresholds)
    _thresholds = None


def _after_fork() -> None:
    global _visits
    native.after_fork_in_child()
    _visits = 0
    if _thresholds is not None:  # forked in the middle of a call that took too long to be waited for
        _restore()
    if _waiting is not None:
        try:
            call(_waiting)
        except (OSError, RuntimeError):
            pass  # no more threads: then this child is not seen
