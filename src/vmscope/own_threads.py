"""Code on threads of vmscope's own: a call a moment from now, what holds while it runs, and how it meets fork and exit.

A call comes 20 ms later, for what a process that ends soon must not pay for. Most processes that end, most forked
children and all that become another program have done so by then.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys

from vmscope import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_DELAY = 20_000_000  # ns

_hooked = False
_has_forked = False
_ends: list[Callable[[], object]] = []
_waiting: Callable[[], object] | None = None
_threshold = 0  # the program's own, where native.NO_COLLECTION stands in its place
_visits = 0  # calls under way for which it does
_visiting = _thread.allocate_lock()
_ours: set[int] = set()  # the threads that make them
_exiting = 0  # the thread on which the process ends, in code of vmscope's
_PATH_FINDER = sys.modules["_frozen_importlib_external"].PathFinder
_forks: list[list[Callable[[], object]]] = []  # forks that wait for our threads: hooks that were registered meanwhile
_register: Callable[..., object]  # os.register_at_fork, while `_note` stands in its place
_multiprocessing: object = None  # the module that has vmscope's hook


def call(callback: Callable[[], object], *, listens: bool = True) -> None:
    """Calls it in 20 ms; in a child that is forked before that, 20 ms after the fork.

    `listens`: it opens a listener, one descriptor of which is the program's. That is made now, when nothing else of a
    program with one thread opens or closes any.

    OSError where no thread can be started, RuntimeError in a sub-interpreter.
    """
    global _waiting
    _waiting = callback
    if listens:
        native.prepare_listener()
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


def threading_module() -> Any:
    """`threading`, where the program has imported it; None too while it does so, as then it has half of its names."""
    module = sys.modules.get("threading")
    return module if hasattr(module, "_main_thread") else None


def hook() -> None:
    """Sees to it that fork and exit find our threads in order."""
    global _hooked
    if not _hooked:  # what interrupts this lets it be done twice, which does no harm
        atexit.register(_exit)
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(
                before=_before_fork, after_in_parent=native.after_fork_in_parent, after_in_child=_after_fork
            )
        _hooked = True


def at_exit_of_worker(end: Callable[[], object]) -> None:
    """Where this is a child of multiprocessing, which ends with os._exit, without atexit: calls it at that end."""
    process, util = (sys.modules.get(f"multiprocessing.{name}") for name in ("process", "util"))
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, end, exitpriority=-1)


def at_exit_of_forked_worker(end: Callable[[], object]) -> None:
    """The same in a child that has just been forked, and that multiprocessing will make one of its own."""
    global _multiprocessing
    util = sys.modules.get("multiprocessing.util")
    if util is not None and util is not _multiprocessing:
        _multiprocessing = util
        util.register_after_fork(at_exit_of_worker, lambda _: util.Finalize(None, end, exitpriority=-1))


def at_exit(end: Callable[[], object], *, early: bool = False) -> None:
    """Calls it when the process ends, `early` before all that is there. atexit forgets what a call under way registers
    while it is waited for."""
    hook()
    if end not in _ends:
        _ends.insert(0 if early else len(_ends), end)


def in_child(start: Callable[[], object]) -> None:
    """Calls it in each forked child. Windows knows none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=start)


def _exit() -> None:
    """What follows is vmscope's: no counter or tool sees it, except what agents run (ProgramsCode)."""
    global _exiting
    _exiting = _thread.get_ident()
    native.leave_programs_code()
    try:
        cancel(wait=False)  # on a busy machine even a thread that ends at once takes its time
        for end in _ends:
            end()
    finally:
        native.enter_programs_code()
        _exiting = 0


def _run() -> None:
    """On the thread: what is waiting."""
    global _waiting
    callback, _waiting = _waiting, None
    if callback is not None:
        without_collection(callback)


def _fixed() -> list[str]:
    """The entries of sys.path that stand for no other folder when the program goes to one: `""` does."""
    return [entry for entry in sys.path if os.path.isabs(str(entry))]


class _Finder:
    """Finds modules for our own code, and none in the folder that the program is in just now: who may write there would
    choose what the program runs as soon as a client asks."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """None: the other finders are asked as ever."""
        if path is not None or _thread.get_ident() not in _ours:
            return None
        for finder in sys.meta_path:
            if finder is not _Finder:
                spec = finder.find_spec(name, _fixed() if finder is _PATH_FINDER else None)
                if spec is not None:
                    return spec
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class ProgramsCode:
    """A context, around the program's code on a thread of vmscope's, or at the end of the process: it finds modules as
    the program does, and the program's tools see it."""

    __slots__ = ("_exits", "_was_ours")

    def __enter__(self) -> None:
        global _exiting
        own = _thread.get_ident()
        self._was_ours, self._exits = own in _ours, own == _exiting
        _ours.discard(own)
        if self._exits:
            _exiting = 0  # one within this one changes nothing
        if self._was_ours or self._exits:
            native.enter_programs_code()

    def __exit__(self, *_: object) -> None:
        global _exiting
        if self._was_ours or self._exits:
            native.leave_programs_code()
        if self._was_ours:
            _ours.add(_thread.get_ident())
        if self._exits:
            _exiting = _thread.get_ident()


def without_collection(callback: Callable[[], object]) -> object:
    """Calls it, on a thread of vmscope's, with no garbage collection but its own; what it returns.

    One would run the program's destructors on a thread that the program does not know, and in a call of `call` where
    a descriptor has another meaning. CPython has no switch for one thread: the first threshold is out of reach
    meanwhile, for all threads, unless the program sets its own. Not gc.disable(): many a program does that itself for
    a while, and asks gc.isenabled() before, hardly any for the thresholds. One that has, and puts them back when the
    call is over, collects nothing until the next call finds what stands there.
    """
    global _visits
    with _visiting:
        if not _visits:
            _suspend()
        _visits += 1
        _ours.add(_thread.get_ident())
    try:
        return callback()
    finally:
        with _visiting:
            _visits -= 1
            _ours.discard(_thread.get_ident())
            if not _visits:
                _restore()


def steps_without_collection(steps: Generator[None, None, None]) -> Iterator[None]:
    """The same for what is done in steps: between two of them the collector is the program's."""
    advance, close = lambda: next(steps, steps), steps.close  # made later, they could be what a collection begins with
    try:
        while without_collection(advance) is not steps:
            yield
    except BaseException:
        without_collection(close)
        raise


def thresholds() -> tuple[int, ...]:
    """The collector's, as the program has them: also in `without_collection`."""
    import gc

    first, *others = gc.get_threshold()
    return (_threshold if first == native.NO_COLLECTION else first, *others)


def _suspend() -> None:
    global _threshold
    import gc

    _threshold, *others = thresholds()
    if _threshold:  # 0: the program does without
        gc.set_threshold(native.NO_COLLECTION, *others)
    if len(_fixed()) < len(sys.path):
        sys.meta_path.insert(0, _Finder)


def _restore() -> None:
    import gc

    if gc.get_threshold()[0] == native.NO_COLLECTION:  # else the program has set its own
        gc.set_threshold(*thresholds())
    if _Finder in (sys.meta_path or ()):  # None, at the very end
        sys.meta_path.remove(_Finder)


def had_children() -> bool:
    """Whether this process has children, or has had some: forked ones, and others that have used CPU time."""
    if _has_forked or any(os.times()[2:4]):
        return True
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (AttributeError, ChildProcessError):  # Windows; there are none
        return False
    return True


def _before_fork() -> None:
    """Waits for our threads. What one of them imports meanwhile, such as logging, may register hooks of its own: too
    late for this fork to call `before`, and in time for those that undo it. So `before` is called here."""
    global _has_forked, _register
    _has_forked = True
    late: list[Callable[[], object]] = []
    _forks.append(late)
    if len(_forks) == 1:
        _register, os.register_at_fork = os.register_at_fork, _note  # type: ignore[assignment]
    try:
        native.before_fork()
    finally:
        _forks[:] = [each for each in _forks if each is not late]
        if not _forks:
            os.register_at_fork = _register  # type: ignore[assignment]
    for before in reversed(late):
        before()


def _note(**hooks: Callable[[], object]) -> None:
    """os.register_at_fork, while forks wait."""
    _register(**hooks)
    for late in _forks if "before" in hooks else ():
        late.append(hooks["before"])


def _after_fork() -> None:
    global _has_forked, _visits, _visiting
    _has_forked = False
    if _forks:  # of other threads, which are the parent's
        _forks.clear()
        os.register_at_fork = _register  # type: ignore[assignment]
    native.after_fork_in_child()
    if _visits:  # forked in the middle of a call that took too long to be waited for
        _visits, _visiting = 0, _thread.allocate_lock()
        _ours.clear()
        _restore()
    if _waiting is not None:
        try:
            call(_waiting)
        except (OSError, RuntimeError):
            pass  # no more threads: then this child is not seen
