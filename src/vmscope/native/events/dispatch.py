"""The Python twin of dispatch.c."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import CodeType, FrameType, MethodType
from typing import Any, Protocol

__all__ = ["After", "EventDispatcher", "HandlerChain", "enter_thread", "leave_thread", "variable"]

MOST = 6  # arguments of an event, after the thread
LEAST = {"entry": 1, "return": 3, "unwind": 1, "plain": 0}

_ended: weakref.WeakSet[Any] = weakref.WeakSet()


class Listening(Protocol):
    """What of an environment an event dispatcher needs."""

    failures: dict[int, int]

    def failed(self, event: Any, error: BaseException, /) -> None: ...


Listener = tuple[Listening, Callable[..., object], tuple[object, ...] | None, bool]


class EventDispatcher:
    """Called as sys.monitoring calls; calls each listener with its environment, the thread and the event's arguments.

    What the shape makes of the arguments: "entry" (method), "return" and "unwind" (method, popped by exception,
    value), "plain" (as they are). What a callback raises goes to its environment's failed(event, error), a
    KeyboardInterrupt to the program. Methods whose file name begins with `own` are passed over, other than in "plain".
    """

    __slots__ = ("_current", "_event", "_listeners", "_own", "_shape")

    def __init__(self, event: int, shape: str, current: Callable[[], object], own: str, /) -> None:
        if not own:
            raise ValueError("own code has a folder")
        if shape not in LEAST:
            raise ValueError(f"{shape!r} is not a shape of an event dispatcher")
        self._event = event
        self._shape = shape
        self._current = current
        self._own = own
        self._listeners: tuple[Listener, ...] = ()

    def listen(self, listeners: tuple[Listener, ...], /) -> tuple[Listener, ...]:
        """From now on these are called, in this order: tuples (environment, callback, threads or None, failing).

        Gives back those of before.
        """
        if not isinstance(listeners, tuple):
            raise TypeError(f"an event dispatcher listens for a tuple of listeners, not {type(listeners).__name__}")
        for _, _, threads, _ in listeners:
            if threads is not None and not isinstance(threads, tuple):
                raise TypeError("a listener's threads are a tuple, or None for every thread")
        before, self._listeners = self._listeners, listeners
        return before

    def __call__(self, /, *arguments: Any) -> None:
        if not LEAST[self._shape] <= len(arguments) <= MOST:
            raise TypeError("an event dispatcher is called as sys.monitoring calls, or with its event's arguments")
        begun = self._listeners
        if not begun or (self._shape != "plain" and _is_own(self._own, arguments[0])):
            return
        thread = self._current()
        if thread in _ended:
            return
        if self._shape == "entry":
            arguments = arguments[:1]
        elif self._shape == "return":
            arguments = arguments[0], False, arguments[2]
        elif self._shape == "unwind":
            arguments = arguments[0], True, None
        interrupt: BaseException | None = None
        for listener in begun:
            now = self._listeners
            if now is not begun:
                there = [each for each in now if each[0] is listener[0]]
                if not there or not _hears(listener, thread):
                    continue
                listener = there[0]
            if _hears(listener, thread):
                try:
                    self._call(listener, thread, arguments)
                except BaseException as error:
                    interrupt = interrupt or error
        if interrupt is not None:
            raise interrupt

    def _call(self, listener: Listener, thread: object, arguments: tuple[object, ...]) -> None:
        environment, callback, _, _ = listener
        try:
            callback(environment, thread, *arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            try:
                environment.failed(self._event, error)
            except KeyboardInterrupt:
                raise
            except BaseException as second:
                if second is error:  # it was not for the environment
                    raise
                unraisable(second, self)
        else:
            environment.failures.pop(self._event, None)


class HandlerChain:
    """Called as sys.monitoring calls; calls each handler with the same, and gives the last one's answer.

    Methods whose file name begins with `own` are passed over; with flags, so are those that have none of them. What a
    handler raises goes to sys.unraisablehook, a KeyboardInterrupt to the program.
    """

    __slots__ = ("_flags", "_own", "handlers")

    def __init__(self, handlers: tuple[Callable[..., object], ...], own: str, flags: int = 0, /) -> None:
        if not isinstance(handlers, tuple):
            raise TypeError(f"a chain has a tuple of handlers, not {type(handlers).__name__}")
        if not own:
            raise ValueError("own code has a folder")
        self.handlers = handlers
        self._own = own
        self._flags = flags

    def __call__(self, /, *arguments: object) -> object:
        if not 1 <= len(arguments) <= MOST:
            raise TypeError("a chain is called as sys.monitoring calls")
        answer: object = None
        interrupt: KeyboardInterrupt | None = None
        code = arguments[0]
        flags = code.co_flags if isinstance(code, CodeType) else 0
        if (self._flags and not flags & self._flags) or _is_own(self._own, code):
            return None
        for handler in self.handlers:
            try:
                answer = handler(*arguments)
            except KeyboardInterrupt as error:
                answer = None
                interrupt = interrupt or error
            except BaseException as error:
                answer = None
                unraisable(error, self)
        if interrupt is not None:
            raise interrupt
        return answer


class After:
    """Calls `first`, if not None, with the arguments by position; the function as it is called; then `then`.

    `then`, if not None, is given what the function returned and the arguments by position; what it gives back, if not
    None, is returned instead. As an attribute of a class it is a method. What `first` and `then` raise goes to
    sys.unraisablehook, a KeyboardInterrupt to the program.
    """

    __slots__ = ("__wrapped__", "_first", "_then")

    def __init__(
        self,
        function: Callable[..., Any],
        then: Callable[..., object] | None,
        first: Callable[..., object] | None = None,
        /,
    ) -> None:
        self.__wrapped__ = function
        self._then = then
        self._first = first

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __get__(self, instance: object, owner: object = None, /) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        if self._first is not None:
            try:
                self._first(*arguments)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                unraisable(error, self._first)
        result = self.__wrapped__(*arguments, **named)
        if self._then is None:
            return result
        try:
            other = self._then(result, *arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            unraisable(error, self._then)
            return result
        return result if other is None else other


class Unraisable:
    """What sys.unraisablehook is given."""

    def __init__(self, error: BaseException, where: object) -> None:
        self.exc_type = type(error)
        self.exc_value = error
        self.exc_traceback = error.__traceback__
        self.err_msg = None
        self.object = where


def unraisable(error: BaseException, where: object) -> None:
    """As C code reports an error that it cannot raise. The default hook takes nothing that is made in Python."""
    hook: Callable[[Any], object] = sys.unraisablehook
    try:
        if hook is not sys.__unraisablehook__:
            hook(Unraisable(error, where))
        elif sys.stderr is not None:
            sys.stderr.write(f"Exception ignored in: {where!r}\n")
            sys.__excepthook__(type(error), error, error.__traceback__)
    except Exception:
        pass  # where it should be reported failed too


def _is_own(own: str, code: object) -> bool:
    return isinstance(code, CodeType) and code.co_filename.startswith(own)


def _hears(listener: Listener, thread: object) -> bool:
    return listener[2] is None or any(each is thread for each in listener[2])


def enter_thread(thread: object, /) -> None:
    """What the calling thread sends is this Thread's from now on: here it is asked for each time."""


def leave_thread(thread: Any, reference: object = None, /) -> None:
    """This Thread has ended: calls its end(); if it is the calling one, it sends nothing any more."""
    thread.end()
    _ended.add(thread)


def variable(frame: FrameType, name: str, /) -> object:
    """A local variable's value. NameError."""
    try:
        found: object = frame.f_locals[name]
    except KeyError:
        raise NameError(f"variable {name!r} does not exist") from None
    return found
