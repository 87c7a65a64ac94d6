"""VMObjectAlloc and SampledObjectAlloc: new objects, by CPython's reference tracer, of which there is one."""

from __future__ import annotations

from vmscope import log, native
from vmscope.tool.model import threads
from vmscope.tool.model.frames import OWN
from vmscope.tool.spec.events import Event, bit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.host import Host

EVERY, SAMPLED = 1, 2  # why it is reported
REASONS = ((EVERY, Event.VM_OBJECT_ALLOC), (SAMPLED, Event.SAMPLED_OBJECT_ALLOC))
NEVER = -1


class Allocations:
    """The mechanism: the tracer is set while one of the two events is wanted."""

    def __init__(self) -> None:
        self._host: Host | None = None
        self._set = False, NEVER  # every object; bytes between samples
        self._reported = False

    def update(self, host: Host) -> None:
        wanted = host.wanted()
        sampled = bool(wanted & bit(Event.SAMPLED_OBJECT_ALLOC))
        every = bool(wanted & bit(Event.VM_OBJECT_ALLOC))
        now = every, host.sampling_interval if sampled else NEVER
        if now == self._set:
            return
        if now == (False, NEVER):
            native.stop_tracing()
            self._set = now
        elif not holder():
            self._host = host
            native.trace_allocations(self.allocated, OWN, every, now[1])
            self._set, self._reported = now, False
        elif not self._reported:
            self._reported = True
            log.say("error", "allocation events cannot be sent: %s traces them", holder(), name=log.TOOL)

    def allocated(self, thing: object, size: int, reason: int, state: int) -> None:
        """A new object is whole. The thread that made it need not be the calling one."""
        host = self._host
        thread = threads.of(state)
        if host is not None and thread is not None:
            for each, event in REASONS:
                if reason & each:
                    host.post(event, thread, thing, type(thing), size, thread=thread)


def holder() -> str:
    """Who has the tracer, if it is not vmscope; "" where it is free.

    3.13.0 leaves tracemalloc's in its place when it stops.
    """
    name = native.tracer_holder()
    if name != "tracemalloc":
        return name
    import _tracemalloc

    return name if _tracemalloc.is_tracing() else ""
