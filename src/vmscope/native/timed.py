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


_COROUTINE = 0x80 | 0x100  # of a code object: async def, and types.coroutine


def timed(histogram: Clocked, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, each of whose calls is observed from its begin to its end; of `async def` the whole await."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _COROUTINE:

        @wraps(function)
        async def timed_coroutine(*args: Any, **kwargs: Any) -> Any:
            with histogram.time():
                return await function(*args, **kwargs)

        return timed_coroutine

    @wraps(function)
    def timed_call(*args: Any, **kwargs: Any) -> Any:
        with histogram.time():
            return function(*args, **kwargs)

    return timed_call
