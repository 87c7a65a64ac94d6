"""Garbage collections: how long each took, which generation, and, at full ones, what memory there was."""

from __future__ import annotations

import gc
import os
from time import monotonic_ns
from typing import ClassVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from vmscope.native import EventType

FULL = 2
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
# A collection stops all that wants the GIL, so it is one pause.
NAMES = ("Generation 0", "Generation 1", "Generation 2")


class Collector:
    """By gc.callbacks."""

    EVENTS: ClassVar[tuple[str, ...]] = ("jdk.GarbageCollection", "jdk.GCPhasePause", "jdk.GCHeapSummary")

    def __init__(self) -> None:
        self._types: Mapping[str, EventType] = {}
        self._started = 0
        self._number = 0

    def begin(self, types: Mapping[str, EventType]) -> None:
        self._types = types
        gc.callbacks.append(self._collected)

    def look(self) -> None:
        """Nothing that has come since has to be looked for."""

    def end(self) -> None:
        gc.callbacks.remove(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        generation = info["generation"]
        if phase == "start":
            self._number += 1
            if generation == FULL:
                self._summarize("Before GC")
            self._started = monotonic_ns()
            return
        ended, started = monotonic_ns(), self._started
        if not started:  # it began before the source did
            return
        self._started = 0
        pause, number, name = ended - started, self._number, NAMES[generation]
        self._types["jdk.GarbageCollection"].commit(started, ended, number, name, "Threshold", pause, pause)
        self._types["jdk.GCPhasePause"].commit(started, ended, number, name)
        if generation == FULL:
            self._summarize("After GC")

    def _summarize(self, when: str) -> None:
        type_ = self._types["jdk.GCHeapSummary"]
        if type_.enabled:
            size, resident = _memory()
            type_.commit(monotonic_ns(), None, self._number, when, 0, size, size, size, size, resident)


def _memory() -> tuple[int, int]:
    """Bytes of the process, and those of them that are resident."""
    with open("/proc/self/statm", "rb") as file:
        size, resident = file.read().split()[:2]
    return int(size) * PAGE, int(resident) * PAGE
