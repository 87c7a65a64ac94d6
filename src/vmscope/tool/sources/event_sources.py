"""What makes events happen, for the VM that this process is."""

from __future__ import annotations

import gc
import sys

from vmscope.tool.functions.extensions import Extension
from vmscope.tool.sources.class_loading import ClassLoading
from vmscope.tool.sources.data_dump_signal import DataDumpSignal
from vmscope.tool.sources.thread_events import ThreadEvents
from vmscope.tool.spec import available_capabilities
from vmscope.tool.spec.events import Event, bit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.host import Host


def install(host: Host) -> None:
    """All of them. None costs anything before one of its events is wanted."""
    if hasattr(sys, "monitoring"):
        from vmscope.tool.sources.monitoring import Monitoring

        host.add_event_source(Monitoring())
        host.extension_events.update(Extension)
    host.add_event_source(Collections())
    host.add_event_source(ThreadEvents())
    host.add_event_source(host.locks)
    host.add_event_source(ClassLoading())
    host.add_event_source(host.watched_fields)
    host.add_event_source(DataDumpSignal())
    if available_capabilities.TRACER in available_capabilities.features():
        from vmscope.tool.sources.allocations import Allocations

        host.add_event_source(Allocations())


class Collections:
    """GarbageCollectionStart and GarbageCollectionFinish, by a callback of gc."""

    WANTED = bit(Event.GARBAGE_COLLECTION_START) | bit(Event.GARBAGE_COLLECTION_FINISH)

    def __init__(self) -> None:
        self._host: Host | None = None

    def update(self, host: Host) -> None:
        wanted = bool(host.wanted() & self.WANTED)
        if wanted and self._host is None:
            self._host = host
            gc.callbacks.append(self.collected)
        elif not wanted and self._host is not None:
            self._host = None
            gc.callbacks.remove(self.collected)

    def collected(self, phase: str, info: dict[str, int]) -> None:
        """gc calls it before and after each collection."""
        if self._host is not None:
            start = phase == "start"
            self._host.post(Event.GARBAGE_COLLECTION_START if start else Event.GARBAGE_COLLECTION_FINISH)
