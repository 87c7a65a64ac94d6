"""Imports, as a JVM's loads of classes: a module with the time that it took."""

from __future__ import annotations

import sys
from time import monotonic_ns
from typing import ClassVar

from vmscope.patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from vmscope.native import EventType


class Imports:
    """By what the finders' loaders execute: `importlib._bootstrap._load_unlocked`, which each import comes to."""

    EVENTS: ClassVar[tuple[str, ...]] = ("jdk.ClassLoad",)

    def __init__(self) -> None:
        self._patches = Patches()

    def begin(self, types: Mapping[str, EventType]) -> None:
        bootstrap: Any = sys.modules["_frozen_importlib"]
        theirs = bootstrap._load_unlocked
        loads = types["jdk.ClassLoad"]

        def load_unlocked(spec: Any) -> Any:
            started = monotonic_ns()
            try:
                return theirs(spec)
            finally:
                if loads.enabled:
                    loads.commit(started, monotonic_ns(), str(spec.name), 0, 0)

        self._patches.replace(bootstrap, "_load_unlocked", load_unlocked)

    def look(self) -> None:
        """Nothing that has come since has to be looked for."""

    def end(self) -> None:
        self._patches.undo()
