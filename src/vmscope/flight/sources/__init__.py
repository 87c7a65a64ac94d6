"""What makes events but samples: a module for each family.

A source is there while one of its events is wanted, and costs nothing before and after. What is asked for
periodically is read on a thread of vmscope's own, once a second.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from time import monotonic_ns
from typing import ClassVar, Protocol

from vmscope import log, native
from vmscope.flight.settings import EventSettings
from vmscope.flight.sources.collector import Collector
from vmscope.flight.sources.counters import Counters
from vmscope.flight.sources.exceptions import Exceptions
from vmscope.flight.sources.imports import Imports
from vmscope.flight.sources.process import READINGS, python_threads
from vmscope.flight.sources.threads import Threads
from vmscope.flight.types import FORMATS, NUMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.native import EventType, FlightRecorder

    Types = Mapping[str, EventType]

SAMPLES = ("jdk.ExecutionSample", "jdk.NativeMethodSample", "vmscope.WaitSample", "vmscope.GILWait")
# Waits that the sampler sees: how long they last is known to a period of its.
WAITS = (
    "jdk.ThreadSleep",
    "jdk.JavaMonitorEnter",
    "jdk.JavaMonitorWait",
    "jdk.SocketRead",
    "jdk.SocketWrite",
    "jdk.FileRead",
    "jdk.FileWrite",
)
ALLOCATIONS = "jdk.ObjectAllocationSample"
VISIT_PERIOD = 1_000_000_000  # ns
OFF = EventSettings()


class Source(Protocol):
    """Makes the events that it names from `begin` to `end`."""

    EVENTS: ClassVar[tuple[str, ...]]

    def begin(self, types: Types) -> None: ...
    def look(self) -> None: ...  # once a second
    def end(self) -> None: ...


SOURCES: tuple[type[Source], ...] = (Collector, Exceptions, Threads, Imports)
# All that comes into a recording; the other types are there for the views of `jfr view`.
WRITTEN = {
    *("jdk.ActiveRecording", "jdk.ActiveSetting", "jdk.DataLoss", "vmscope.SamplerStatistics", "vmscope.Counters"),
    *(*SAMPLES, *WAITS, ALLOCATIONS, *READINGS),
    *(name for source in SOURCES for name in source.EVENTS),
}


def adopted(recorder: FlightRecorder, name: str, fields: str = "") -> EventType:
    """A type of the table, for the native recorder; with other `fields` than the table's, if they are given."""
    made = native.event_type(fields or FORMATS[name])
    recorder.adopt(made, NUMBERS[name])
    return made


class Sources:
    """All that a recorder's events come from, as far as the settings want them."""

    def __init__(self, recorder: FlightRecorder) -> None:
        self._recorder = recorder
        self._sources: tuple[Source, ...] = tuple(source() for source in SOURCES)
        self._counters = Counters()
        names = [*READINGS, "vmscope.Counters"]
        for source in self._sources:
            names += source.EVENTS
        self.types = {name: adopted(recorder, name, _FORMATS.get(name, "")) for name in names}
        self._running: set[Source] = set()
        self._settings: dict[str, EventSettings] = {}
        self._due: dict[str, int] = {}  # ns of the monotonic clock
        self._chunk = -1  # for which the constant facts were written

    def apply(self, settings: Mapping[str, EventSettings]) -> None:
        """Switches sources on and off, and sets what is sampled."""
        self._settings = dict(settings)
        for name, type_ in self.types.items():
            wanted = settings.get(name, OFF)
            type_.stack, type_.threshold = wanted.stack, wanted.threshold
            type_.enabled = wanted.enabled
        for name in SAMPLES:
            wanted = settings.get(name, OFF)
            self._recorder.set_sampling(name, (wanted.period or _sample_period(settings)) if wanted.enabled else 0)
        for name in WAITS:
            wanted = settings.get(name, OFF)
            self._recorder.set_threshold(name, wanted.threshold if wanted.enabled else -1)
        self._sample_allocations()
        for source in self._sources:
            wants = any(self.types[name].enabled for name in source.EVENTS)
            if wants != (source in self._running):
                self._switch(source, wants)

    def _sample_allocations(self) -> None:
        wanted = self._settings.get(ALLOCATIONS, OFF)
        self._recorder.sample_allocations(wanted.throttle if wanted.enabled else -1, wanted.stack)

    def _switch(self, source: Source, on: bool) -> None:
        """A source that fails is left out: the program is not troubled, the others go on."""
        self._call(source, (lambda: source.begin(self.types)) if on else source.end)
        if on:
            self._running.add(source)
        else:
            self._running.discard(source)

    def _call(self, source: Source, what: Callable[[], None]) -> None:
        try:
            what()
        except Exception as error:
            log.say("warning", "the flight recorder's %s: %s", type(source).__name__.lower(), error)

    def stop(self) -> None:
        """Leaves the program as it was."""
        self._settings = {}
        self._sample_allocations()
        for type_ in self.types.values():
            type_.enabled = False
        for source in [*self._running]:
            self._switch(source, False)

    def visit(self) -> None:
        """Once a second: the recorder's to call, on a thread of vmscope's own."""
        self.describe()
        for source in [*self._running]:
            self._call(source, source.look)
        self._sample_allocations()  # again: another hook that goes may take ours with it
        now = monotonic_ns()
        for name, reading in self._readings():
            period = self._settings.get(name, OFF).period
            if period and now >= self._due.get(name, 0):
                self._due[name] = now + period - VISIT_PERIOD // 2
                self._read(name, reading)
        chunk = self._recorder.statistics["chunk"]
        if chunk != self._chunk:
            self._chunk = chunk
            self._counters.forget()
            self._read_those_of("beginChunk", "everyChunk")

    def end_chunk(self) -> None:
        """Before the current chunk is ended by a command: what it is to have at its end."""
        self.visit()
        self._read_those_of("endChunk", "everyChunk")

    def describe(self) -> None:
        """Names of threads and modules, which the recorder's own thread cannot ask for."""
        self._recorder.set_path(sys.path)
        self._recorder.name_threads({thread.ident: thread.name for thread in python_threads()})

    def _readings(self) -> list[tuple[str, Callable[[EventType], None]]]:
        return [*READINGS.items(), ("vmscope.Counters", self._counters.read)]

    def _read_those_of(self, *moments: str) -> None:
        for name, reading in self._readings():
            if self._settings.get(name, OFF).chunk in moments:
                self._read(name, reading)

    def _read(self, name: str, reading: Callable[[EventType], None]) -> None:
        type_ = self.types[name]
        if type_.enabled:
            try:
                reading(type_)
            except Exception as error:
                type_.enabled = False
                log.say("warning", "the flight recorder's %s: %s", name, error)


def _sample_period(settings: Mapping[str, EventSettings]) -> int:
    """Of what is sampled with the others and has no period of its own."""
    periods = [settings.get(name, OFF).period for name in SAMPLES]
    return min((period for period in periods if period), default=20_000_000)


# Where an event is not of the thread that writes it.
_FORMATS = {"jdk.ThreadCPULoad": "tff", "jdk.ThreadEnd": "tt", "jdk.ThreadStart": "tKtt"}
