"""The Python twin of import_timer.c."""

from __future__ import annotations

from _thread import _local
from time import monotonic_ns

from vmscope.native.counters.slots import LongSlot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ImportTimer"]

_under_way = _local()


def ImportTimer(function: Callable[..., object], slot: LongSlot) -> Callable[..., object]:
    """Calls the function; ns spent in it, on any thread, go to the slot."""
    if not all((callable(function), isinstance(slot, LongSlot))):
        raise TypeError("an ImportTimer takes a function and a LongSlot")

    def call(*arguments: object) -> object:
        if getattr(_under_way, "import_", False):  # the outermost one counts for all
            return function(*arguments)
        _under_way.import_ = True
        start = monotonic_ns()
        try:
            return function(*arguments)
        finally:
            slot._add(monotonic_ns() - start)
            _under_way.import_ = False

    code = getattr(function, "__code__", None)
    if code is not None:  # Python takes the frames of importlib's own file out of tracebacks, by its name
        call.__code__ = call.__code__.replace(co_filename=code.co_filename)
    return call
