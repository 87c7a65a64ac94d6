"""What CPython has over JVM TI, as JVM TI has it: extension events and extension functions.

An extension event is offered where a mechanism makes it (`Host.extension_events`); it is enabled by its callback, for
all threads, in LIVE. Its number is above those of the events, so that it has a place in the same sets.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.spec import events
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.errors import IllegalArgument


class Extension(IntEnum):
    """The extension events by number."""

    RESUME = 100
    YIELD = 101
    CALL_C = 102
    RETURN_C = 103
    RAISE_C = 104


class ExtensionEvent:
    """One event over JVM TI's: `index` is for `set_extension_event_callback`.

    `id` is its name in JVM TI's style, `description` a sentence; `parameters` name what its callback gets after the
    environment.
    """

    __slots__ = ("description", "id", "index", "parameters")

    def __init__(self, index: Extension, identifier: str, description: str, parameters: str) -> None:
        self.index = index
        self.id = identifier
        self.description = description
        self.parameters = parameters  # after the environment, as in `tool.events.EVENTS`

    def __repr__(self) -> str:
        return f"<ExtensionEvent {self.index} {self.id}>"


PLACE = "thread:thread method:method location:location"
EXTENSION_EVENTS: dict[int, ExtensionEvent] = {
    each.index: each
    for each in (
        ExtensionEvent(Extension.RESUME, "vmscope.Resume", "a generator or coroutine goes on", PLACE),
        ExtensionEvent(Extension.YIELD, "vmscope.Yield", "a generator or coroutine stops", f"{PLACE} value:object"),
        ExtensionEvent(Extension.CALL_C, "vmscope.CallC", "a C function is called", f"{PLACE} callee:object"),
        ExtensionEvent(Extension.RETURN_C, "vmscope.ReturnC", "a C function has returned", f"{PLACE} callee:object"),
        ExtensionEvent(Extension.RAISE_C, "vmscope.RaiseC", "a C function has raised", f"{PLACE} callee:object"),
    )
}  # fmt: skip


class ExtensionFunction:
    """One function over JVM TI's: `call` takes what `parameters` names.

    `id` is its name in JVM TI's style, `description` a sentence.
    """

    __slots__ = ("call", "description", "id", "parameters")

    def __init__(self, identifier: str, description: str, parameters: str, call: Callable[..., object]) -> None:
        self.id = identifier
        self.description = description
        self.parameters = parameters
        self.call = call

    def __repr__(self) -> str:
        return f"<ExtensionFunction {self.id}>"


class Extensions(Base):
    @function
    def get_extension_functions(self) -> list[ExtensionFunction]:
        """What can be called over JVM TI's functions.

        CPython: who holds a capability, and the VM's derived flags.
        """
        return [
            ExtensionFunction(
                "vmscope.GetCapabilityHolders", "the agents that hold a capability", "capability", self._holders
            ),
            ExtensionFunction(
                "vmscope.GetDerivedFlags", "what has been made possible so far, by name", "", self.host.rules.flags
            ),
        ]

    @function
    def get_extension_events(self) -> list[ExtensionEvent]:
        """Those that this VM makes.

        CPython: what becomes of generators, coroutines and C functions, from sys.monitoring.
        """
        return [event for index, event in EXTENSION_EVENTS.items() if index in self.host.extension_events]

    @function
    def set_extension_event_callback(self, event_index: int, callback: Callable[..., object] | None) -> None:
        """Sets what is called, which enables the event; None disables it. IllegalArgument for one that is not offered.

        CPython: as the callbacks of events.
        """
        if event_index not in self.host.extension_events:
            raise IllegalArgument(f"no extension event has the index {event_index}: see get_extension_events()")
        if callback is not None and not callable(callback):
            raise IllegalArgument(f"{callback!r} is not a callback: it cannot be called")
        index = Extension(event_index)
        with self.host.lock:
            callbacks = {event: known for event, known in self.callbacks.items() if event != index}
            if callback is not None:
                callbacks[index] = callback
            self.set_callbacks(callbacks)
            self.enabled = self.enabled & ~events.bit(index) | (events.bit(index) if callback is not None else 0)
            self.failures.pop(index, None)
        self.host.changed()

    def _holders(self, capability: int) -> list[str]:
        """By creation order; an agent without a name is ""."""
        bit = 1 << Capability(capability)
        return [environment.agent for environment in self.host.environments if environment.held & bit]
