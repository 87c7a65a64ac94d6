"""Events of the program's own: `vmscope.event("shop.Order", number=int, amount=float)`.

What makes them must cost nothing while nothing is recorded, so this imports nothing of the recorder, which takes the
events that there are when it begins.
"""

from __future__ import annotations

import re
from time import monotonic_ns

from vmscope import native
from vmscope.errors import EventExistsError, EventNameError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

# The kinds of a field: as the table of event types has them, and the encoder's letter.
KINDS: dict[type, tuple[str, str]] = {
    int: ("long", "l"),
    float: ("double", "d"),
    bool: ("flag", "b"),
    str: ("text", "s"),
}
COMMON = ("duration", "eventThread", "stackTrace")
RESERVED = ("startTime", *COMMON)
MOST_FIELDS = 32 - len(COMMON)
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+", re.ASCII)
_FIELD = re.compile(r"[A-Za-z_]\w*", re.ASCII)

EVENTS: dict[str, Event] = {}
on_new: Callable[[Event], object] | None = None  # the recorder's, once there is one


class Event:
    """A type of events.

    `commit(*values)`, in the order of the fields, writes one that happens now; with `start`, in ns of
    time.monotonic_ns(), one that began then. It answers whether it was recorded: False while no recording wants it.
    Raises TypeError, and records nothing, for values that do not fit, but only while they are recorded.
    """

    __slots__ = ("commit", "fields", "name", "native")

    commit: Callable[..., bool]

    def __init__(self, name: str, fields: dict[str, type]) -> None:
        self.name = name
        self.fields = fields
        make = getattr(native, "event_type", None)
        self.native = None if make is None else make("DTK" + "".join(KINDS[kind][1] for kind in fields.values()))
        self.commit = _nothing if self.native is None else self.native.commit_now

    def __repr__(self) -> str:
        return f"<Event {self.name}({', '.join(f'{name}: {kind.__name__}' for name, kind in self.fields.items())})>"

    @property
    def enabled(self) -> bool:
        """Whether a recording wants it: for values that take time to find."""
        return self.native is not None and self.native.enabled

    def timing(self, *values: object) -> Timing:
        """`with order.timing(7, 19.9):` one event, from the block's beginning to its end, however it ends."""
        return Timing(self, values)


class Timing:
    """A block that is an event. `values` may be set anew within it."""

    __slots__ = ("_event", "_start", "values")

    def __init__(self, event: Event, values: tuple[object, ...]) -> None:
        self._event = event
        self.values = values

    def __enter__(self) -> Timing:
        self._start = monotonic_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._event.commit(*self.values, start=self._start)


def event(name: str, /, **fields: type) -> Event:
    """The type of events with this name, as `shop.Order`, and these fields: int, float, bool or str.

    The same name with the same fields gives the same object; EventExistsError where it has others. Raises
    EventNameError for a name that has no dot or is vmscope's or a JVM's, for a field that each event has, and for a
    field of another kind.
    """
    found = EVENTS.get(name)
    if found is not None:
        if [*found.fields.items()] != [*fields.items()]:
            raise EventExistsError(f"there is an event {found!r}", hint="give the new one another name")
        return found
    _check(name, fields)
    made = EVENTS.setdefault(name, Event(name, fields))
    if on_new is not None:
        on_new(made)
    return made


def words(event: Event) -> tuple[str, ...]:
    """Its fields as the table of event types has them."""
    return (*COMMON, *(f"{name}:{KINDS[kind][0]}" for name, kind in event.fields.items()))


def _check(name: str, fields: dict[str, Any]) -> None:
    if not _NAME.fullmatch(name) or name.startswith(("jdk.", "java.", "vmscope.")):
        raise EventNameError(f"an event cannot be called {name!r}", hint="use names such as shop.Order")
    for field, kind in fields.items():
        if not _FIELD.fullmatch(field) or field in RESERVED:
            raise EventNameError(f"a field of {name} cannot be called {field!r}", hint="each event has that")
        if kind not in KINDS:
            raise EventNameError(f"{field} of {name} cannot be {kind!r}", hint="int, float, bool and str can be")
    if len(fields) > MOST_FIELDS:
        raise EventNameError(f"{name} has {len(fields)} fields", hint=f"an event has {MOST_FIELDS} at most")


def _nothing(*values: object, start: int = 0) -> bool:
    """Where nothing can be recorded."""
    return False
