"""The standard counters of a started process: made from the catalogue, and what feeds them."""

from __future__ import annotations

import gc
import os
import sys
import time

from vmscope import native
from vmscope.counters import identity
from vmscope.counters.catalogue import CATALOGUE
from vmscope.counters.kinds import Alias, Constant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.counters.kinds import Counter, Gauge, Text
    from vmscope.counters.registry import AnyCounter, Registry

# Bytes of the texts; as many as HotSpot has, for tools that look at them.
_CAPACITIES = {"vmscope.problem": 200, "sun.rt.jvmCapabilities": 64, "sun.gc.cause": 80, "sun.gc.lastCause": 80}

# Which of CPython's generations stands under which of the JDK's collectors: young, full, concurrent.
_COLLECTOR_OF_GENERATION = (0, 2, 1)

_STAMPS = (
    "sun.rt.createVmBeginTime",
    "sun.rt.createVmEndTime",
    "sun.rt.vmInitDoneTime",
    "vmscope.process.startTicks",
    "vmscope.process.stackStart",
)

# What every import of a module that is not loaded yet goes through stands here, and is looked up at each.
_importlib = sys.modules["_frozen_importlib"].__dict__

_FIRST_SAMPLE = 20_000_000  # ns: a process that ends soon pays nothing
_STOP_TIMEOUT = 1_000_000_000  # ns

# Without a GIL a collection on another thread may be about to call what was just removed: it must not be freed.
_RETIRED: list[native.GcProbe] = []


class Standard:
    """The counters of the catalogue in `registry`, except those that nothing here can feed.

    `all` is in the catalogue's order.
    """

    __slots__ = (
        "_capabilities", "_find_and_load", "_fixed", "_gc_probe", "_import_timer", "_past", "_problem", "_registry",
        "_sampled", "_sampler", "_stamps", "all", "clock",
    )  # fmt: skip

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.all: list[AnyCounter] = []
        self._fixed: list[Constant | Alias] = []
        self._gc_probe: native.GcProbe | None = None
        self._import_timer: native.ImportTimer | None = None
        self._sampler: native.Sampler | None = None
        self._sampled: dict[str, native.LongSlot] = {}

    def make(self, constants: dict[str, int | str], limit: int) -> None:
        """Makes them. Texts that never change have at most `limit` bytes."""
        registry = self._registry
        numbers: dict[str, Counter | Gauge] = {}
        texts: dict[str, Text] = {}
        known: dict[str, Counter | Gauge | Text | Constant] = {}
        fields = frozenset(native.SAMPLED)
        for name, kind, units, feed, *_ in CATALOGUE:
            field = feed.partition(":")[2]
            if field and field not in fields:
                continue
            if kind == "alias":
                if feed[1:] in known:
                    self.all.append(registry.alias(name, known[feed[1:]], made=self._fixed))
                continue
            if kind == "constant":
                known[name] = registry.constant(name, constants[name], units=units, limit=limit, made=self._fixed)
            elif kind == "text":
                known[name] = texts[name] = registry.text(name, capacity=_CAPACITIES[name])
            else:
                make = registry.gauge if kind == "gauge" else registry.counter
                known[name] = numbers[name] = make(name, units=units)
                if field:
                    self._sampled[field] = numbers[name]
            self.all.append(known[name])
        self.clock = numbers["sun.os.hrt.ticks"]
        self._capabilities = texts["sun.rt.jvmCapabilities"]
        self._problem = texts["vmscope.problem"]
        rows = tuple(
            (
                numbers[f"sun.gc.collector.{collector}.invocations"],
                numbers[f"sun.gc.collector.{collector}.time"],
                numbers[f"python.gc.generation.{generation}.collected"],
                numbers[f"python.gc.generation.{generation}.uncollectable"],
            )
            for generation, collector in enumerate(_COLLECTOR_OF_GENERATION)
        )
        self._gc_probe = native.GcProbe(
            rows, numbers["python.gc.longestPause"], texts["sun.gc.cause"], texts["sun.gc.lastCause"]
        )
        self._find_and_load = _importlib["_find_and_load"]
        self._import_timer = native.ImportTimer(self._find_and_load, numbers["python.imports.time"])
        self._past = [row[field] for row in rows for field in (0, 2, 3)]
        self._stamps = [numbers[name] for name in _STAMPS]

    def begin(self) -> None:
        """Starts to feed them, except what is sampled; the collections before now count too."""
        assert self._gc_probe is not None
        assert self._import_timer is not None
        gc.callbacks.append(self._gc_probe)
        before, stats = None, gc.get_stats()
        while before != [slot.value for slot in self._past]:  # so that a collection in between counts once
            before, stats = [slot.value for slot in self._past], gc.get_stats()
        past = [row[key] for row in stats[:3] for key in ("collections", "collected", "uncollectable")]
        for slot, old, new in zip(self._past, before, past, strict=True):
            slot.add(new - old)
        _importlib["_find_and_load"] = self._import_timer

    def watch(self, interval: int) -> None:
        """Starts the sampler; the interval is in ns. OSError where no thread can be started."""
        if "tracemalloc" in sys._xoptions or "PYTHONTRACEMALLOC" in os.environ:
            __import__("_tracemalloc")  # it may be at work without having been imported
        self._sampler = native.Sampler(self._sampled)
        self._sampler.start(interval, _FIRST_SAMPLE)

    def rest(self, *, last: bool = False) -> None:
        """Ends the sampler; with a `last` sample where one is wanted."""
        if self._sampler is not None:
            self._sampler.stop(_STOP_TIMEOUT)
            if last:
                self._sampler.sample()
            self._sampler = None

    def after_fork(self) -> None:
        """In a forked child: the sampler is the parent's."""
        self._sampler = None

    def end(self) -> None:
        """No longer feeds them. A later start may have other constants. Also after an exception in any of the above."""
        if self._gc_probe is not None and self._gc_probe in gc.callbacks:
            _RETIRED.append(self._gc_probe)
            gc.callbacks.remove(self._gc_probe)
        if _importlib["_find_and_load"] is self._import_timer:  # else other code has wrapped it
            _importlib["_find_and_load"] = self._find_and_load
        self._registry.forget(self._fixed)

    def set_attachable(self, attachable: bool) -> None:
        """Whether clients find a socket of this process."""
        self._capabilities.set(f"{attachable:d}".ljust(_CAPACITIES["sun.rt.jvmCapabilities"], "0"))

    def set_problem(self, text: str) -> None:
        """What does not work in this process; "": all does."""
        self._problem.set(text.encode("ascii", "backslashreplace").decode("ascii")[: _CAPACITIES["vmscope.problem"]])

    def stamp(self) -> None:
        """Writes when this process started, and that it is ready now."""
        ticks, stack = identity.started()
        now = time.time_ns() // 1_000_000
        values = identity.start_time(ticks), now, now, ticks, stack
        for gauge, value in zip(self._stamps, values, strict=True):
            gauge._restore(value)
