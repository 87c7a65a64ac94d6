"""FieldAccess and FieldModification: watched attributes of instances, by the class's own way of reaching them.

While a watch is set and its event wanted, `__getattribute__` or `__setattr__` of vmscope's stands in front of the
one that the class had or inherited; afterwards the class has that again. Only classes that can be changed may be
watched.
Attributes of the class itself, and what C code does to an object, are not seen. A callback sets off no other.
"""

from __future__ import annotations

import _thread
import sys

from vmscope.native import After
from vmscope.patches import Patches
from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.functions.fields import declaring
from vmscope.tool.model import threads
from vmscope.tool.model.introspection import HEAP, IMMUTABLE
from vmscope.tool.spec.errors import Duplicate, NotFound, UnmodifiableClass
from vmscope.tool.spec.events import Event, bit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vmscope.tool.host import Host

METHODS = {Event.FIELD_ACCESS: "__getattribute__", Event.FIELD_MODIFICATION: "__setattr__"}
_local = _thread._local()


class WatchedFields:
    """The watched fields of one VM, by event, and the mechanism that sends the events."""

    def __init__(self) -> None:
        self.fields: dict[Event, dict[type, frozenset[str]]] = {event: {} for event in METHODS}
        self.holders: dict[Event, object] = {}  # the environment that set a watch last: one at a time may
        self._host: Host | None = None
        self._patches: dict[tuple[Event, type], Patches] = {}

    def update(self, host: Host) -> None:
        self._host = host
        wanted = host.wanted()
        for event, watched in self.fields.items():
            on = watched if wanted & bit(event) else {}
            for klass in [klass for known, klass in self._patches if known == event and klass not in on]:
                self._patches.pop((event, klass)).undo()
            for klass in on:
                if (event, klass) not in self._patches:
                    self._replace(event, klass)

    def _replace(self, event: Event, klass: type) -> None:
        name = METHODS[event]
        theirs = next(vars(base)[name] for base in klass.__mro__ if name in vars(base))
        first: Callable[..., None] = self.accessed(klass) if event == Event.FIELD_ACCESS else self.modified(klass)
        patches = self._patches[event, klass] = Patches()
        patches.replace(klass, name, After(theirs, None, first))

    def accessed(self, klass: type) -> Callable[..., None]:
        def accessed(instance: object, name: str) -> None:
            if name in self.fields[Event.FIELD_ACCESS].get(klass, ()):
                self.send(Event.FIELD_ACCESS, klass, instance, name)

        return accessed

    def modified(self, klass: type) -> Callable[..., None]:
        def modified(instance: object, name: str, value: object) -> None:
            if name in self.fields[Event.FIELD_MODIFICATION].get(klass, ()):
                self.send(Event.FIELD_MODIFICATION, klass, instance, name, value)

        return modified

    def send(self, event: Event, *arguments: Any) -> None:
        if self._host is None or getattr(_local, "sending", False):
            return
        frame = sys._getframe(2)  # that of the program: what is between is C's
        _local.sending = True
        try:
            self._host.post(event, threads.current(), frame.f_code, frame.f_lasti, *arguments)
        finally:
            _local.sending = False


class FieldWatches(Base):
    @function
    def set_field_access_watch(self, klass: type, field: str) -> None:
        """Sends FieldAccess before an instance's attribute is read. InvalidFieldID, UnmodifiableClass, Duplicate.

        CPython: `__getattribute__` of the class, replaced while an environment wants the event.
        Differs: attributes of instances only.
        """
        self._watch(Event.FIELD_ACCESS, klass, field)

    @function
    def clear_field_access_watch(self, klass: type, field: str) -> None:
        """Ends it. InvalidFieldID, NotFound.

        CPython: as it was set.
        """
        self._unwatch(Event.FIELD_ACCESS, klass, field)

    @function
    def set_field_modification_watch(self, klass: type, field: str) -> None:
        """Sends FieldModification before an instance's attribute is set. InvalidFieldID, UnmodifiableClass, Duplicate.

        CPython: `__setattr__` of the class, replaced while an environment wants the event.
        Differs: attributes of instances only; deleting one is not a modification.
        """
        self._watch(Event.FIELD_MODIFICATION, klass, field)

    @function
    def clear_field_modification_watch(self, klass: type, field: str) -> None:
        """Ends it. InvalidFieldID, NotFound.

        CPython: as it was set.
        """
        self._unwatch(Event.FIELD_MODIFICATION, klass, field)

    def _watch(self, event: Event, klass: type, field: str) -> None:
        owner = declaring(klass, field)
        flags = type.__dict__["__flags__"].__get__(owner)
        if flags & IMMUTABLE or not flags & HEAP:
            raise UnmodifiableClass(f"the attributes of {owner!r} cannot be watched: it is not Python's")
        watched_fields = self.host.watched_fields
        with self.host.lock:
            known = watched_fields.fields[event].get(owner, frozenset())
            if field in known:
                raise Duplicate(f"{field} of {owner!r} is watched already")
            watched_fields.fields[event][owner] = known | {field}
            watched_fields.holders[event] = self
            if self._drop_watches not in self.closers:
                self.closers.append(self._drop_watches)
        self.host.changed()

    def _unwatch(self, event: Event, klass: type, field: str) -> None:
        owner = declaring(klass, field)
        fields = self.host.watched_fields.fields[event]
        with self.host.lock:
            left = fields.get(owner, frozenset()) - {field}
            if left == fields.get(owner, frozenset()):
                raise NotFound(f"{field} of {owner!r} is not watched")
            if left:
                fields[owner] = left
            else:
                del fields[owner]
        self.host.changed()

    def _drop_watches(self) -> None:
        """It is disposed of."""
        watched_fields = self.host.watched_fields
        with self.host.lock:
            for event, holder in list(watched_fields.holders.items()):
                if holder is self:
                    del watched_fields.holders[event]
                    watched_fields.fields[event].clear()
        self.host.changed()
