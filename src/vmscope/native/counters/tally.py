"""The Python twin of tally.c. It needs frames of its own, which near the recursion limit there may not be."""

from __future__ import annotations

from vmscope.native.counters.slots import LongSlot

__all__ = ["Tally"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Tally:
    """Counts events in total, and those of each kind in the slot that make(kind) gives.

    It does so for `limit` kinds; `other` is for the rest.
    """

    __slots__ = ("_kinds", "_limit", "_make", "_making", "_other", "_total", "on")

    def __init__(self, total: LongSlot, other: LongSlot, make: Callable[[str], LongSlot], limit: int) -> None:
        if any(not isinstance(slot, LongSlot) for slot in (total, other)):
            raise TypeError("a tally takes a LongSlot for all events and one for other kinds")
        self._total = total
        self._other = other
        self._make = make
        self._limit = limit
        self._kinds: dict[str, LongSlot] = {}
        self._making = False  # making a slot may itself be an event
        self.on = True

    def count(self, kind: str) -> None:
        """One event of this kind."""
        if self.on:
            self._total._add(1)
            (self._kinds.get(kind) or self._new(kind))._add(1)

    def _new(self, kind: str) -> LongSlot:
        if self._making or len(self._kinds) >= self._limit:
            return self._other
        self._making = True
        try:
            slot = self._kinds[kind] = self._make(kind)
        except (RecursionError, MemoryError):  # there will be another moment
            return self._other
        finally:
            self._making = False
        return slot

    def raised(self, code: object, offset: object, error: BaseException) -> None:
        """A callback for sys.monitoring's RAISE; an exception counts where it is raised."""
        trace = error.__traceback__
        if trace is None or trace.tb_next is None:  # the event comes once a frame
            self.count(type(error).__name__)

    def audited(self, event: str, arguments: object) -> None:
        """An audit hook; the kind is the event up to its first dot."""
        self.count(event.partition(".")[0])
