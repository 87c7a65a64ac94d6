"""The standard counters of a started process: made from the catalogue, and what feeds them."""

from __future__ import annotations

import gc
import time

from vmscope import native
from vmscope.counters import identity
from vmscope.counters.catalogue import CATALOGUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.counters.registry import AnyCounter, Registry

_CAPABILITIES = 64  # characters, as many as HotSpot has

# Which of CPython's generations stands under which of the JDK's collectors: young, full, concurrent.
_COLLECTOR_OF_GENERATION = (0, 2, 1)


class Standard:
    """The counters of the catalogue in `registry`; `all` is in the catalogue's order."""

    __slots__ = ("_collector", "_registry", "all", "clock")

    def __init__(self, registry: Registry, constants: dict[str, int | str], limit: int) -> None:
        self._registry = registry
        self.all: list[AnyCounter] = []
        for name, kind, units, _ in CATALOGUE:
            counter: AnyCounter
            if kind == "constant":
                counter = registry.constant(name, constants[name], units=units, limit=limit)
            elif kind == "text":
                counter = registry.text(name, capacity=_CAPABILITIES)
            elif kind == "gauge":
                counter = registry.gauge(name, units=units)
            else:
                counter = registry.counter(name, units=units)
            self.all.append(counter)
        self.clock = registry.counter("sun.os.hrt.ticks", units=_units("sun.os.hrt.ticks"))
        self._collector = native.Collector(tuple(self._slots(generation) for generation in range(3)))
        registry.text("sun.rt.jvmCapabilities", capacity=_CAPABILITIES).set("0" * _CAPABILITIES)

    def _slots(self, generation: int) -> tuple[native.LongSlot, ...]:
        collector = f"sun.gc.collector.{_COLLECTOR_OF_GENERATION[generation]}"
        own = f"python.gc.generation.{generation}"
        names = (f"{collector}.invocations", f"{collector}.time", f"{own}.collected", f"{own}.uncollectable")
        return tuple(self._registry.counter(name, units=_units(name)) for name in names)

    def begin(self, *, count_past: bool) -> None:
        """Starts to feed them. `count_past`: the collections before now count too (not so in a forked child)."""
        if count_past:
            for generation, past in enumerate(gc.get_stats()[:3]):
                count, _, collected, uncollectable = self._slots(generation)
                count._restore(past["collections"])
                collected._restore(past["collected"])
                uncollectable._restore(past["uncollectable"])
        if self._collector not in gc.callbacks:
            gc.callbacks.append(self._collector)

    def end(self) -> None:
        """No longer feeds them."""
        if self._collector in gc.callbacks:
            gc.callbacks.remove(self._collector)

    def stamp(self) -> None:
        """Writes when this process started, and that it is ready now."""
        ticks = identity.start_ticks()
        now = time.time_ns() // 1_000_000
        for name, value in (
            ("sun.rt.createVmBeginTime", identity.start_time(ticks)),
            ("sun.rt.createVmEndTime", now),
            ("sun.rt.vmInitDoneTime", now),
            ("vmscope.process.startTicks", ticks),
        ):
            self._registry.gauge(name, units=_units(name)).set(value)


def _units(name: str) -> int:
    return next(row[2] for row in CATALOGUE if row[0] == name)
