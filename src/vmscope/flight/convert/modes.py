"""Which events of a recording make a profile, and how much each of them weighs."""

from __future__ import annotations

import re

from vmscope.errors import RecordingFormatError
from vmscope.flight.convert import recording
from vmscope.flight.convert.profile import (
    BYTES,
    CODE,
    EXCEPTIONS,
    NANOSECONDS,
    NATIVE,
    SAMPLES,
    STATE,
    TYPE,
    Profile,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vmscope.flight.convert.chunk import Chunk, Event, Value
    from vmscope.flight.convert.profile import Stack

EXECUTION, NATIVE_METHOD, CPU_TIME = "jdk.ExecutionSample", "jdk.NativeMethodSample", "jdk.CPUTimeSample"
WAIT, GIL_WAIT = "vmscope.WaitSample", "vmscope.GILWait"
ALLOCATION = "jdk.ObjectAllocationSample"
IN_NEW_TLAB, OUTSIDE_TLAB = "jdk.ObjectAllocationInNewTLAB", "jdk.ObjectAllocationOutsideTLAB"
MONITOR_ENTER, PARK = "jdk.JavaMonitorEnter", "jdk.ThreadPark"
EXCEPTION = "jdk.JavaExceptionThrow"
SETTING = "jdk.ActiveSetting"

HOLDS, WAITS, GIL = "[holds the GIL]", "[waits for the GIL]", "GIL"
NO_STACK = "[no stack]"
_MILLISECOND = 10**6
_PERIOD = 20 * _MILLISECOND  # of samples, where a recording does not say


class Mode:
    """A way to look at a recording: its events, each with the field that weighs it, and the unit.

    A weight of "" is 1. `leaf`: the field with the class that the event is about, which stands on top of the stack.
    """

    __slots__ = ("about", "events", "leaf", "unit")

    def __init__(self, about: str, unit: str, leaf: str, events: dict[str, str]) -> None:
        self.about = about
        self.unit = unit
        self.leaf = leaf
        self.events = events


MODES = {
    "cpu": Mode("where threads run", SAMPLES, "", {EXECUTION: "", NATIVE_METHOD: "", CPU_TIME: ""}),
    "wall": Mode(
        "where threads are, running or not", SAMPLES, "",
        {EXECUTION: "", NATIVE_METHOD: "", CPU_TIME: "", WAIT: "samples"},
    ),
    "gil": Mode("which code holds the GIL, and which waits for it", NANOSECONDS, "", {EXECUTION: "", GIL_WAIT: ""}),
    "alloc": Mode(
        "what allocates", BYTES, "objectClass",
        {ALLOCATION: "weight", IN_NEW_TLAB: "tlabSize", OUTSIDE_TLAB: "allocationSize"},
    ),
    "lock": Mode(
        "where threads wait for locks", NANOSECONDS, "",
        {MONITOR_ENTER: "duration", PARK: "duration", GIL_WAIT: "duration"},
    ),
    "exception": Mode("where exceptions are thrown", EXCEPTIONS, "thrownClass", {EXCEPTION: ""}),
}  # fmt: skip

# Of events that tell the same thing, the one that tells it better.
_BETTER = {EXECUTION: CPU_TIME, IN_NEW_TLAB: ALLOCATION, OUTSIDE_TLAB: ALLOCATION}
_LEAVES = {MONITOR_ENTER: "monitorClass", PARK: "parkedClass"}


class Window:
    """Which part of a recording is wanted: threads by name, and times in nanoseconds.

    A time is since 1970, or, where it is small, since the recording's beginning. None: without an end.
    """

    __slots__ = ("begin", "end", "is_wanted")

    def __init__(
        self, begin: int | None = None, end: int | None = None, is_wanted: Callable[[str], bool] = lambda name: True
    ) -> None:
        self.begin = begin
        self.end = end
        self.is_wanted = is_wanted

    def since_1970(self, start: int) -> tuple[int, int]:
        """The times, for a recording that begins then."""
        begin, end = ((each + start if each is not None and each < _YEAR else each) for each in (self.begin, self.end))
        return start if begin is None else begin, _FOREVER if end is None else end


_YEAR = 365 * 86400 * 10**9
_FOREVER = 1 << 63


def profile(paths: Iterable[str], mode: str, window: Window | None = None) -> Profile:
    """The profile of recordings, added up. Raises RecordingFormatError, OSError."""
    made = Profile(mode, MODES[mode].unit)
    for path in paths:
        _Maker(made, mode, window or Window()).add(path)
    return made


class _Maker:
    """Adds recordings to a profile."""

    __slots__ = ("_leaves", "_mode", "_name", "_period", "_profile", "_stacks", "_window")

    def __init__(self, profile: Profile, mode: str, window: Window) -> None:
        self._profile = profile
        self._name = mode
        self._mode = MODES[mode]
        self._window = window
        self._period = _PERIOD
        self._stacks: dict[tuple[int, bool], Stack] = {}  # of this chunk, by their keys
        self._leaves: dict[tuple[str, int], Stack] = {}

    def add(self, path: str) -> None:
        """A file's events, chunk by chunk."""
        times: tuple[int, int] | None = None
        passed = self._passed(path)
        for chunk in recording.chunks(path):
            times = times or self._window.since_1970(chunk.header.start)
            if self._name == "gil":
                self._period = _period(chunk) or self._period
            self._stacks.clear()
            self._leaves.clear()
            ours = WAIT in chunk.types.by_name
            if self._name == "gil" and not ours:
                continue  # a JVM has none
            skipped = passed | ({NATIVE_METHOD} if self._name == "cpu" and not ours else set())
            for event in chunk.events((self._mode.events.keys() - skipped).__contains__):
                self._add(event, times)

    def _passed(self, path: str) -> set[str]:
        """Events that others of this file tell better."""
        better = {new for old, new in _BETTER.items() if old in self._mode.events}
        there = {event.type.name for event in recording.events(path, *better)} if better else set()
        return {old for old, new in _BETTER.items() if new in there}

    def _add(self, event: Event, times: tuple[int, int]) -> None:
        at = event.start
        if not times[0] <= at < times[1]:
            return
        name = event.type.name
        thread = _thread(event.value("sampledThread" if "sampledThread" in event else "eventThread"))
        if not self._window.is_wanted(thread):
            return
        weight = self._weight(event)
        if weight > 0:
            self._profile.add(thread, self._stack(event, native=name == NATIVE_METHOD), weight, at)

    def _weight(self, event: Event) -> int:
        if self._name == "gil":
            return event.duration if event.type.name == GIL_WAIT else self._period
        field = self._mode.events[event.type.name]
        if field == "duration":
            return event.duration
        return event.number(field) if field else 1

    def _stack(self, event: Event, native: bool) -> Stack:
        key = event.key("stackTrace"), native
        stack = self._stacks.get(key)
        if stack is None:
            stack = self._stacks[key] = self._frames(event.value("stackTrace"))
        if self._name == "gil":
            root = self._profile.frame(WAITS if event.type.name == GIL_WAIT else HOLDS, STATE)
            return (root, *stack)
        leaf = self._leaf(event)
        return self._thrown_at(stack, leaf) + leaf if self._name == "exception" and leaf else stack + leaf

    def _thrown_at(self, stack: Stack, leaf: Stack) -> Stack:
        """Without the constructors of the exception, where a JVM sees it."""
        frames, end = self._profile.frames, len(stack)
        made = f"{frames[leaf[0]][0]}.<init>"
        for at in range(len(stack) - 1, 0, -1):
            name = frames[stack[at]][0]
            if not name.endswith(".<init>"):
                break
            if name == made:
                end = at
        return stack[:end]

    def _frames(self, trace: Value | None) -> Stack:
        frames = trace.values("frames") if trace is not None else []
        if not frames:
            return (self._profile.frame(NO_STACK, STATE),)
        found = []
        for frame in reversed(frames):
            method = frame.value("method")
            kind = NATIVE if frame.get("type") == "Native" else CODE
            found.append(self._profile.frame(NO_STACK if method is None else _function(method), kind))
        return tuple(found)

    def _leaf(self, event: Event) -> Stack:
        """The class that is allocated, waited for or thrown."""
        if self._name == "lock" and event.type.name == GIL_WAIT:
            return (self._profile.frame(GIL, TYPE),)
        field = _LEAVES.get(event.type.name, "") or self._mode.leaf
        if not field:
            return ()
        key = field, event.key(field)
        leaf = self._leaves.get(key)
        if leaf is None:
            type = event.value(field)
            leaf = (self._profile.frame(class_name(type.text("name")), TYPE),) if type is not None else ()
            self._leaves[key] = leaf
        return leaf


# -- names ----------------------------------------------------------------------------------------

_HIDDEN = re.compile(r"(\$\$Lambda)?(?:\$\d+)?[/+]0x[0-9a-f]+(?:/\d+)?$")  # a class without a name of its own
_ELEMENTS = {"B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short",
             "Z": "boolean"}  # fmt: skip


def class_name(name: str) -> str:
    """As people write it: `java.lang.String[]`, `shop.Orders`."""
    dimensions = len(name) - len(name.lstrip("["))
    if dimensions:
        name = name[dimensions:]
        name = name[1:-1] if name.startswith("L") and name.endswith(";") else _ELEMENTS.get(name, name)
    return _HIDDEN.sub(r"\1", name).replace("/", ".") + "[]" * dimensions


def _function(method: Value) -> str:
    type = method.value("type")
    owner = class_name(type.text("name")) if type is not None else ""
    name = method.text("name")
    return f"{owner}.{name}" if owner else name


def _thread(thread: Value | None) -> str:
    if thread is None:
        return "[no thread]"
    return thread.text("javaName") or thread.text("osName") or f"thread {thread.number('javaThreadId')}"


_UNITS = {"ns": 1, "us": 1000, "ms": _MILLISECOND, "s": 10**9, "m": 60 * 10**9}


def _period(chunk: Chunk) -> int:
    """Of the samples of a chunk, in nanoseconds; 0 where it does not say."""
    type = chunk.types.by_name.get(EXECUTION)
    period = 0
    for setting in chunk.events({SETTING}.__contains__):
        if type is not None and setting.number("id") == type.id and setting.text("name") == "period":
            number, _, unit = setting.text("value").partition(" ")
            if number.isdecimal() and len(number) < 10 and unit in _UNITS:
                period = int(number) * _UNITS[unit]
    return period


def nothing(paths: Iterable[str], mode: str) -> RecordingFormatError:
    """What is said of recordings without any such event."""
    path = next(iter(paths), "")
    names = ", ".join(MODES[mode].events)
    return RecordingFormatError(
        f"{path} has no events for a profile of the mode {mode}: it takes {names}",
        path=path,
        hint="--mode takes another one; settings=profile records more of them",
    )
