"""What a histogram's timer makes of a function that it decorates."""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    class Clocked(Protocol):
        def time(self) -> AbstractContextManager[object]: ...


# Flags of a code object.
_COROUTINE = 0x80 | 0x100  # async def, and types.coroutine
_GENERATOR = 0x20
_ASYNC_GENERATOR = 0x200


def timed(histogram: Clocked, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, each of whose calls is observed from its begin to its end.

    Of `async def` that is the whole await, of a generator from its first value asked for to its end. TypeError for an
    asynchronous generator: nothing can stand in its place and pass on what it is sent.
    """
    code = getattr(function, "__code__", None)
    flags = 0 if code is None else code.co_flags
    if flags & _ASYNC_GENERATOR:
        raise TypeError(f"{function.__qualname__} is an asynchronous generator: use the timer in it, by `with`")
    if flags & _COROUTINE:

        @wraps(function)
        async def timed_coroutine(*args: Any, **kwargs: Any) -> Any:
            with histogram.time():
                return await function(*args, **kwargs)

        return timed_coroutine

    if flags & _GENERATOR:

        @wraps(function)
        def timed_generator(*args: Any, **kwargs: Any) -> Any:
            with histogram.time():
                return (yield from function(*args, **kwargs))

        return timed_generator

    @wraps(function)
    def timed_call(*args: Any, **kwargs: Any) -> Any:
        with histogram.time():
            return function(*args, **kwargs)

    return timed_call
