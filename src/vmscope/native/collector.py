"""The Python twin of collector.c."""

from __future__ import annotations

from time import monotonic_ns

from vmscope.native.slots import LongSlot
from vmscope.native.thread import resume

__all__ = ["Collector"]


class Collector:
    """A gc callback; for each of 3 generations the slots of collections, ns, collected and uncollectable objects."""

    __slots__ = ("_generations", "_started")

    def __init__(self, generations: tuple[tuple[LongSlot, ...], ...]) -> None:
        if [len(row) for row in generations] != [4, 4, 4] or any(
            not isinstance(slot, LongSlot) for row in generations for slot in row
        ):
            raise TypeError("a collector takes a tuple of 3 tuples of 4 LongSlots")
        self._generations = generations
        self._started = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._started = monotonic_ns()
            return
        generation = info.get("generation", -1)
        if self._started and 0 <= generation < 3:
            count, time, collected, uncollectable = self._generations[generation]
            count._add(1)
            time._add(monotonic_ns() - self._started)
            collected._add(max(0, info.get("collected", 0)))
            uncollectable._add(max(0, info.get("uncollectable", 0)))
        self._started = 0
        resume()
