"""The Python twin of gc_probe.c."""

from __future__ import annotations

from time import monotonic_ns

from vmscope.native.counters.slots import LongSlot, TextSlot
from vmscope.native.threads.thread import resume

__all__ = ["GcProbe"]


_NOTHING = "No GC"


class GcProbe:
    """A gc callback; for each of 3 generations the slots of collections, ns, collected and uncollectable objects.

    Then those of the longest pause in ns, of what is being collected and of what was last.
    """

    __slots__ = ("_cause", "_generations", "_last_cause", "_longest", "_started")

    def __init__(
        self,
        generations: tuple[tuple[LongSlot, ...], ...],
        longest: LongSlot,
        cause: TextSlot,
        last_cause: TextSlot,
    ) -> None:
        if [len(row) for row in generations] != [4, 4, 4] or any(
            not isinstance(slot, LongSlot) for row in generations for slot in row
        ):
            raise TypeError("a collector takes a tuple of 3 tuples of 4 LongSlots")
        for slot, kind in ((longest, LongSlot), (cause, TextSlot), (last_cause, TextSlot)):
            if not isinstance(slot, kind):
                raise TypeError("a collector takes a LongSlot for the longest pause, and two TextSlots")
        self._generations = generations
        self._longest, self._cause, self._last_cause = longest, cause, last_cause
        self._started = 0
        cause.set(_NOTHING)
        last_cause.set(_NOTHING)

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        generation = info.get("generation", -1)
        if phase == "start":
            self._cause.set(f"generation {generation}" if 0 <= generation < 3 else _NOTHING)
            self._started = monotonic_ns()
            return
        pause = monotonic_ns() - self._started
        if self._started and 0 <= generation < 3:
            count, time, collected, uncollectable = self._generations[generation]
            count._add(1)
            time._add(pause)
            collected._add(max(0, info.get("collected", 0)))
            uncollectable._add(max(0, info.get("uncollectable", 0)))
            if pause > self._longest.value:
                self._longest._restore(pause)
            self._last_cause.set(f"generation {generation}")
        self._cause.set(_NOTHING)
        self._started = 0
        resume()
