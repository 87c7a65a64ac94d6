"""Exception and ExceptionCatch: each throw and each catch once, from what CPython says in every frame."""

from __future__ import annotations

from types import CodeType
from weakref import WeakKeyDictionary

from vmscope.tool.model import threads
from vmscope.tool.model.frames import frame_of
from vmscope.tool.sources import exception_handlers
from vmscope.tool.spec.events import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.native import EventDispatcher
    from vmscope.tool.host import Host
    from vmscope.tool.model.threads import Thread

HEAP, THREADS = 1 | 2, 1 | 4  # JVM TI's flags: out of memory, and of which kind
NO_THREAD = "can't start new thread"
FLYING = 256  # exceptions in flight on one thread that are kept apart
PROGRAMS, OWN, NEW = range(3)  # whose one is; NEW: the program's, made in place of another, with no traceback yet


class ExceptionEvents:
    """CPython's RAISE comes in each frame that an exception passes through, EXCEPTION_HANDLED for `finally` too.

    An exception is in flight from where it was thrown until it is caught; on the way nothing is sent again. It is known
    by its id alone, so it lives no longer than without vmscope. One that C code swallowed stays in flight, but another
    one at its address begins without a traceback below it, and is thrown anew.

    The interpreter has exceptions of its own: by StopIteration and StopAsyncIteration C code ends a loop or an `await`,
    by GeneratorExit it closes a generator. One that no `raise` threw, and no `except` will catch, is not reported.
    """

    def __init__(self, thrown: EventDispatcher, caught: EventDispatcher) -> None:
        self.thrown = thrown
        self.caught = caught
        self._host: Host | None = None
        self._listened: set[Thread] | None = set()  # threads on which throws are sent; None: on all
        self._flying: WeakKeyDictionary[Thread, dict[int, int]] = WeakKeyDictionary()

    def listen(self, host: Host, listened: set[Thread] | None) -> None:
        """An environment listens on these threads."""
        self._host = host
        self._listened = listened

    def forget(self) -> None:
        """No environment listens any more."""
        self._flying.clear()

    def raised(self, code: CodeType, offset: int, error: BaseException) -> None:
        """RAISE: by a `raise`, by C code, or in a frame that was left by it."""
        trace = error.__traceback__
        self._throw(code, offset, error, passing=trace is not None and trace.tb_next is not None)

    def reraised(self, code: CodeType, offset: int, error: BaseException) -> None:
        """RERAISE: a bare `raise`, or the end of a handler that did not catch."""
        self._throw(code, offset, error, passing=True)

    def _throw(self, code: CodeType, offset: int, error: BaseException, passing: bool) -> None:
        thread = threads.current()
        if exception_handlers.ends(code, offset, error):
            self._flying.get(thread, {}).pop(id(error), None)
            if exception_handlers.by_statement(error):
                self.caught(code, offset, error)
            return
        kind = exhausted(error)
        heard = self._listened is None or thread in self._listened
        if not heard and not kind:
            return
        flying = self._flying.setdefault(thread, {})
        known = flying.get(id(error))
        if known is not None and (passing or known == NEW):
            flying[id(error)] = PROGRAMS if known == NEW else known
            return
        method, location = exception_handlers.find(frame_of(code), offset, error)
        own = is_own(code, error, method, location)
        flying[id(error)] = OWN if own else NEW if error.__traceback__ is None else PROGRAMS
        if len(flying) > FLYING:
            del flying[next(iter(flying))]
        if kind:
            self._exhausted(kind, error)
        if heard and not own:
            self.thrown(code, offset, error, method, location)

    def handled(self, code: CodeType, offset: int, error: BaseException) -> None:
        """EXCEPTION_HANDLED: at the beginning of an `except`, a `finally`, or of what the compiler put there."""
        thread = threads.current()
        frame = frame_of(code)
        if frame is None or not exception_handlers.catches(frame, offset, error):
            return
        own = self._flying.get(thread, {}).pop(id(error), None) == OWN
        if not own and (exception_handlers.by_statement(error) or not exception_handlers.swallows(code, offset)):
            self.caught(code, offset, error)

    def _exhausted(self, kind: int, error: BaseException) -> None:
        if self._host is not None:
            post_exhausted(self._host, kind, error)


def post_exhausted(host: Host, kind: int, error: BaseException) -> None:
    """ResourceExhausted, for all who have enabled it: as in HotSpot, without the kind's capability too."""
    thread = threads.current()
    for environment in host.environments:
        if environment.wants(Event.RESOURCE_EXHAUSTED, thread):
            environment.deliver(Event.RESOURCE_EXHAUSTED, (kind, str(error) or type(error).__name__))


def is_own(code: CodeType, error: BaseException, method: CodeType | None, location: int) -> bool:
    """Whether what is thrown in this code, and will be caught there, is the interpreter's own."""
    if not isinstance(error, (StopIteration, StopAsyncIteration, GeneratorExit)) or exception_handlers.by_statement(
        error
    ):
        return False
    if isinstance(error, GeneratorExit):
        return method is not code
    return method is not None and exception_handlers.swallows(method, location)


def exhausted(error: BaseException) -> int:
    """JVM TI's flags for what there is no more of; 0 for another error."""
    if isinstance(error, MemoryError):
        return HEAP
    return THREADS if type(error) is RuntimeError and error.args == (NO_THREAD,) else 0
