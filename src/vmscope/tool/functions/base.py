"""What every group of the interface's functions builds on: the state of one environment."""

from __future__ import annotations

from vmscope.native import without_allocation_events
from vmscope.tool import agent_errors
from vmscope.tool.model import handler_exceptions
from vmscope.tool.spec import events
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.codes import Phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.tool.functions.extensions import Extension
    from vmscope.tool.host import Host
    from vmscope.tool.model.threads import Thread
    from vmscope.tool.spec.events import Event

FAILURES = 10  # in a row, after which an event is disabled
EARLY_VMSTART = 1 << Capability.CAN_GENERATE_EARLY_VMSTART
EARLY_CLASS_HOOK = 1 << Capability.CAN_GENERATE_EARLY_CLASS_HOOK_EVENTS


class Base:
    """One environment's state. Sets are ints: of capabilities by their bit, of events by `events.bit`.

    What decides over its events, for whoever dispatches them: `callbacks`, `enabled`, `enabled_by_thread`,
    `ready()`; each change of these is followed by `host.changed()`.
    """

    def __init__(self, host: Host, version: int, agent: str) -> None:
        self.host = host
        self.version = version
        self.agent = agent  # whose it is, for messages
        self.disposed = False
        self.held = 0
        self.prohibited = 0
        self.callbacks: dict[int, Callable[..., object]] = {}  # by event
        self._called = 0  # events that have a callback
        self.enabled = 0  # events enabled for all threads
        self.enabled_by_thread: dict[Thread, int] = {}  # events enabled for one thread
        self.retransformable: bool | None = None  # None until the class file load hook was first enabled
        self.storage: object = None
        self.saw_start = False  # VMStart was sent early
        self.closers: list[Callable[[], None]] = []  # called when it is disposed of
        self.failures: dict[int, int] = {}  # by event: how often its callback raised, since it last did not

    def phase(self) -> int:
        """The VM's, as this environment sees it: with early VMStart, START begins earlier."""
        phase = self.host.phase
        if phase == Phase.PRIMORDIAL and self.host.started_early and self.held & EARLY_VMSTART:
            return Phase.START
        return phase

    def ready(self) -> int:
        """The events that are sent to it now where they are enabled: those of the phase that have a callback."""
        if self.disposed:
            return 0
        phase = self.phase()
        ready = events.SENT_IN[phase] & self._called
        if phase == Phase.PRIMORDIAL and not self.held & EARLY_CLASS_HOOK:
            ready &= ~events.bit(events.Event.CLASS_FILE_LOAD_HOOK)
        return ready

    def set_callbacks(self, callbacks: dict[int, Callable[..., object]]) -> None:
        """Replaces those there were."""
        self.callbacks = callbacks
        self._called = sum(map(events.bit, callbacks))

    def wanted(self) -> int:
        """The events that are sent to it now on at least one thread."""
        enabled = self.enabled
        for of_thread in self.enabled_by_thread.values():
            enabled |= of_thread
        return enabled and enabled & self.ready()

    def wants(self, event: int, thread: Thread) -> bool:
        """Whether this event, on this thread, is sent to it now."""
        enabled = self.enabled | self.enabled_by_thread.get(thread, 0)
        return bool(enabled & events.bit(event) and self.ready() & events.bit(event))

    def deliver(self, event: Event | Extension, arguments: tuple[object, ...]) -> object:
        """Calls the callback; what it gives back. What it raises is logged, and after ten in a row its event disabled
        here.

        A KeyboardInterrupt is the user's and meant for the program: it goes on to there.
        """
        callback = self.callbacks.get(event)
        if callback is None:
            return None
        try:
            result = without_allocation_events(callback, self, *arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.failed(event, error)
            return None
        self.failures.pop(event, None)
        return result

    def failed(self, event: Event | Extension, error: BaseException) -> None:
        """Counts and logs what a callback raised; the tenth time in a row disables its event for this environment.
        Where logging fails too, the error is discarded.

        Raises it again, when it is not the callback's: a signal came meanwhile, and its handler raised it.
        """
        if handler_exceptions.from_handler(error):
            raise error
        with self.host.lock:
            count = self.failures[event] = self.failures.get(event, 0) + 1
            over = count == FAILURES
            if over:
                self.enabled &= ~events.bit(event)
                self.enabled_by_thread = {
                    thread: enabled & ~events.bit(event) for thread, enabled in self.enabled_by_thread.items()
                }
                del self.failures[event]
        if over:
            self.host.changed()
        try:
            if over:
                agent_errors.count(self.agent, event.name, agent_errors.DISABLED)
            times = f", {FAILURES} times in a row: the event is now disabled for it" if over else ""
            agent_errors.report(self.agent, event.name, f"its callback for %s raised{times}", event.name, error=error)
        except BaseException as wrong:  # the program's own logging may fail, or be in the middle of its import
            if isinstance(wrong, KeyboardInterrupt) or handler_exceptions.from_handler(wrong):
                raise
