"""The region's counters, each second: those that have changed since."""

from __future__ import annotations

from time import monotonic_ns

from vmscope.counters.registry import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.native import EventType


class Counters:
    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def forget(self) -> None:
        """Each chunk has all of them once."""
        self._last.clear()

    def read(self, type_: EventType) -> None:
        now, last = monotonic_ns(), self._last
        for name, value, _, _ in REGISTRY.numbers():
            if last.get(name) != value:
                last[name] = value
                type_.commit(now, None, name, value)
