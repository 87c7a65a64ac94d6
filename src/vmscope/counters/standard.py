"""The standard counters of a started process: made from the catalogue, and what feeds them."""

from __future__ import annotations

import gc
import time

from vmscope import native
from vmscope.counters import identity
from vmscope.counters.catalogue import CATALOGUE
from vmscope.counters.kinds import Constant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.counters.kinds import Counter
    from vmscope.counters.registry import AnyCounter, Registry

_CAPABILITIES = 64  # characters, as many as HotSpot has

# Which of CPython's generations stands under which of the JDK's collectors: young, full, concurrent.
_COLLECTOR_OF_GENERATION = (0, 2, 1)


class Standard:
    """The counters of the catalogue in `registry`; `all` is in the catalogue's order."""

    __slots__ = ("_collector", "_past", "_registry", "all", "clock")

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
        rows = tuple(self._slots(generation) for generation in range(3))
        self._collector = native.Collector(rows)
        self._past = [row[field] for row in rows for field in (0, 2, 3)]
        registry.text("sun.rt.jvmCapabilities", capacity=_CAPABILITIES).set("0" * _CAPABILITIES)

    def _slots(self, generation: int) -> tuple[Counter, ...]:
        collector = f"sun.gc.collector.{_COLLECTOR_OF_GENERATION[generation]}"
        own = f"python.gc.generation.{generation}"
        names = (f"{collector}.invocations", f"{collector}.time", f"{own}.collected", f"{own}.uncollectable")
        return tuple(self._registry.counter(name, units=_units(name)) for name in names)

    def begin(self) -> None:
        """Starts to feed them; the collections before now count too."""
        gc.callbacks.append(self._collector)
        before, stats = None, gc.get_stats()
        while before != [slot.value for slot in self._past]:  # so that a collection in between counts once
            before, stats = [slot.value for slot in self._past], gc.get_stats()
        past = [row[key] for row in stats[:3] for key in ("collections", "collected", "uncollectable")]
        for slot, old, new in zip(self._past, before, past, strict=True):
            slot.add(new - old)

    def end(self) -> None:
        """No longer feeds them. A later start may have other constants."""
        if self._collector in gc.callbacks:
            gc.callbacks.remove(self._collector)
        self._registry.forget(counter for counter in self.all if isinstance(counter, Constant))

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
