"""The functions about events: callbacks and notification modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model.introspection import is_a
from vmscope.tool.model.threads import Thread
from vmscope.tool.spec import events
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.errors import (
    IllegalArgument,
    InvalidEventType,
    InvalidThread,
    MustPossessCapability,
    ThreadNotAlive,
    shown,
)
from vmscope.tool.spec.events import KINDS, Event

RETRANSFORM = 1 << Capability.CAN_RETRANSFORM_CLASSES


class Notification(Base):
    @function
    def set_event_callbacks(self, callbacks: Mapping[Event, Callable[..., object] | None] | None) -> None:
        """Replaces all but those of extension events; None, or no entry, is none.

        Each is called with the environment, then what its event tells (`tool.events.EVENTS`). InvalidEventType,
        IllegalArgument for what cannot be called.

        CPython: a dictionary of callables by event.
        """
        new: dict[int, Callable[..., object]] = {}
        for event, callback in (callbacks or {}).items():
            if event not in KINDS:
                raise InvalidEventType(f"{shown(event)} is not an event")
            if callback is None:
                continue
            if not callable(callback):
                raise IllegalArgument(f"{shown(callback)} is not a callback: it cannot be called")
            new[Event(event)] = callback
        replaced = self.callbacks  # which go when the lock has been let go of
        with self.host.lock:
            kept = {event: known for event, known in self.callbacks.items() if event >= events.FIRST_EXTENSION}
            self.set_callbacks({**new, **kept})
        self.host.changed()
        del replaced

    @function
    def set_event_notification_mode(
        self, mode: bool | int, event_type: Event, event_thread: Thread | None = None
    ) -> None:
        """Enables (True) or disables an event, for all threads or for one.

        In this order: InvalidEventType; MustPossessCapability, when enabling; InvalidThread, ThreadNotAlive;
        IllegalArgument for a thread where the event is for all threads only.

        CPython: a set of events for all threads, and one for each thread that was named.
        Differs: the order is that of JDK 25 (17 looks at the thread first); the numbers between the events are not
        events, where HotSpot takes all from 47 to 88.
        """
        kind = KINDS[event_type]
        with self.host.lock:
            if mode:
                self._may_enable(kind)
            if event_thread is None:
                self.enabled = self._switched(self.enabled, kind.event, mode)
            else:
                self._check_thread(kind, event_thread)
                of_thread = self._switched(self.enabled_by_thread.get(event_thread, 0), kind.event, mode)
                self.enabled_by_thread = {
                    thread: enabled
                    for thread, enabled in {**self.enabled_by_thread, event_thread: of_thread}.items()
                    if enabled and thread.alive
                }
            self.failures.pop(kind.event, None)
        self.host.changed()

    @function
    def generate_events(self, event_type: Event) -> None:
        """Sends again what happened before. IllegalArgument for any event but those two that a JVM can send again.

        CPython: it has neither of the two, so that nothing is sent.
        """
        if event_type == Event.COMPILED_METHOD_LOAD:
            raise MustPossessCapability("no environment can hold CAN_GENERATE_COMPILED_METHOD_LOAD_EVENTS here")
        if event_type != Event.DYNAMIC_CODE_GENERATED:
            raise IllegalArgument(f"{shown(event_type)} cannot be generated")

    def _may_enable(self, kind: events.EventKind) -> None:
        if kind.capability is not None and not self.held >> kind.capability & 1:
            name = Capability(kind.capability).name
            raise MustPossessCapability(
                f"enabling {kind.event.name} needs {name}", hint=f"add_capabilities({{Capability.{name}}}) first"
            )
        if kind.event == Event.CLASS_FILE_LOAD_HOOK and self.retransformable is None:
            # For good: an environment that has seen classes without being able to retransform never will be.
            self.retransformable = bool(self.held & RETRANSFORM)
            if not self.retransformable:
                self.prohibited |= RETRANSFORM

    @staticmethod
    def _check_thread(kind: events.EventKind, thread: Thread) -> None:
        if not is_a(thread, Thread):
            raise InvalidThread(f"{shown(thread)} is not a Thread")
        if not thread.alive:
            raise ThreadNotAlive(f"{thread!r} has ended")
        if not kind.per_thread:
            raise IllegalArgument(f"{kind.event.name} is enabled for all threads or for none")

    @staticmethod
    def _switched(enabled: int, event: Event, mode: bool | int) -> int:
        return enabled | events.bit(event) if mode else enabled & ~events.bit(event)
