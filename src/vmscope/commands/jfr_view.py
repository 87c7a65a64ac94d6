"""JFR.view: tables of what has been recorded, made in this process."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from vmscope.commands import _jfr
from vmscope.commands._view_table import Column, Shape, form, table
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import CommandError
from vmscope.flight import recordings
from vmscope.flight.convert.chunk import HEADER, Chunk, Event, Header, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output

DEFAULT_AGE, DEFAULT_SIZE = 600 * _jfr.S, 32 << 20  # ns, bytes
MOST = 25  # rows
S, MS = 1_000_000_000, 1_000_000  # ns

_DURATIONS = ((S, MS, "ms"), (60 * S, S, "s"), (3_600 * S, 60 * S, "m"))  # below, unit, its name

ARGUMENTS = (
    Argument("cell-height", "The most lines of a cell: how deep stacks are shown.", "INT", option=True),
    Argument("maxage", "How much of the end is looked at; else 10m.", "NANOTIME", option=True),
    Argument("maxsize", "How many bytes of chunks are looked at; else 32m.", "MEMORY SIZE", option=True),
    Argument("truncate", "What of a long cell is left out: its end, or its beginning.", default="end", option=True),
    Argument("verbose", "With the fields that a view is made of.", "BOOLEAN", default="false", option=True),
    Argument("width", "Columns of text.", "INT", option=True),
    Argument("view", "A view, or all-views."),
)


class View(NamedTuple):
    """`make(title, events, shape)`: the text; "" where there are no events of these types."""

    title: str
    source: str  # the fields, for `verbose`
    events: tuple[str, ...]
    make: Callable[[str, Sequence[Event], Shape], str]


def _top(event: Event) -> str:
    return _frames(event, 1)


def _frames(event: Event, depth: int) -> str:
    """The innermost frames, one a line."""
    trace = event.value("stackTrace")
    frames = trace.values("frames")[:depth] if trace is not None else []
    return "\n".join(_method(frame.value("method")) for frame in frames) or "N/A"


def _method(method: Value | None) -> str:
    if method is None:
        return "N/A"
    owner = _class(method.value("type"))
    return f"{owner}.{method.text('name')}()" if owner else f"{method.text('name')}()"


def _class(value: Value | None) -> str:
    return value.text("name").replace("/", ".") if value is not None else ""


def _thread(event: Event) -> str:
    value = event.value("eventThread")
    return (value.text("javaName") or value.text("osName")) if value is not None else "N/A"


def _percent(part: float) -> str:
    return f"{part * 100:.2f}%"


def _duration(nanoseconds: float) -> str:
    """Three digits, as the JDK shows times: 25.0 ms, 0.910 ms, 3.09 s."""
    factor, unit = next(((factor, unit) for limit, factor, unit in _DURATIONS if nanoseconds < limit), (3_600 * S, "h"))
    value = nanoseconds / factor
    if not value:
        return f"0 {unit}"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f} {unit}"


def _counted(
    rows: dict[str, float], whole: float, labels: Sequence[str], with_count: bool
) -> tuple[list[Column], list[list[str]]]:
    """The largest first, with the share that each has in all."""
    columns = [Column(labels[0]), *(Column(label, number=True) for label in labels[1:])]
    found = sorted(rows.items(), key=lambda row: -row[1])[:MOST]
    return columns, [
        [name, *([str(int(count))] if with_count else []), _percent(count / whole if whole else 0)]
        for name, count in found
    ]


def hot_methods(title: str, events: Sequence[Event], shape: Shape) -> str:
    rows: dict[str, float] = defaultdict(float)
    for event in events:
        rows[_top(event)] += 1
    return table(title, *_counted(rows, len(events), ("Method", "Samples", "Percent"), True), shape)


def gc_pauses(title: str, events: Sequence[Event], _: Shape) -> str:
    pauses = sorted(each.duration for each in events)

    def at(share: float) -> str:
        return _duration(pauses[min(int(len(pauses) * share), len(pauses) - 1)])

    shares = ("P90", 0.9), ("P95", 0.95), ("P99", 0.99), ("P99.9%", 0.999)
    return form(
        title,
        [
            ("Total Pause Time", _duration(sum(pauses))),
            ("Number of Pauses", str(len(pauses))),
            ("Minimum Pause Time", _duration(pauses[0])),
            ("Median Pause Time", at(0.5)),
            ("Average Pause Time", _duration(sum(pauses) / len(pauses))),
            *((f"{name} Pause Time", at(share)) for name, share in shares),
            ("Maximum Pause Time", _duration(pauses[-1])),
        ],
    )


def allocation_by_class(title: str, events: Sequence[Event], shape: Shape) -> str:
    rows: dict[str, float] = defaultdict(float)
    for event in events:
        rows[_class(event.value("objectClass"))] += event.number("weight")
    return table(title, *_counted(rows, sum(rows.values()), ("Object Type", "Allocation Pressure"), False), shape)


def exception_by_type(title: str, events: Sequence[Event], shape: Shape) -> str:
    rows: dict[str, int] = defaultdict(int)
    for event in events:
        rows[_class(event.value("thrownClass"))] += 1
    found = sorted(rows.items(), key=lambda row: -row[1])
    return table(
        title, [Column("Class"), Column("Count", number=True)], [[name, str(count)] for name, count in found], shape
    )


def contention_by_site(title: str, events: Sequence[Event], shape: Shape) -> str:
    rows: dict[str, list[int]] = defaultdict(list)
    for event in events:
        rows[_frames(event, shape.height or 1)].append(event.duration)
    found = sorted(rows.items(), key=lambda row: max(row[1]))
    labels = [Column("StackTrace"), *(Column(label, number=True) for label in ("Count", "Avg.", "Max."))]
    return table(
        title,
        labels,
        [[name, str(len(all_)), _duration(sum(all_) / len(all_)), _duration(max(all_))] for name, all_ in found],
        shape,
    )


def thread_cpu_load(title: str, events: Sequence[Event], shape: Shape) -> str:
    last = {_thread(event): (_share(event, "user"), _share(event, "system")) for event in events}
    found = sorted(last.items(), key=lambda row: -row[1][0])
    labels = [Column("Thread"), Column("System", number=True), Column("User", number=True)]
    return table(title, labels, [[name, _percent(system), _percent(user)] for name, (user, system) in found], shape)


def _share(event: Event, name: str) -> float:
    value = event.get(name)
    return value if isinstance(value, float) else 0.0


VIEWS: dict[str, View] = {
    "allocation-by-class": View(
        "Allocation by Class", "objectClass, weight", ("jdk.ObjectAllocationSample",), allocation_by_class
    ),
    "contention-by-site": View(
        "Contention by Site", "stackTrace, duration", ("jdk.JavaMonitorEnter",), contention_by_site
    ),
    "exception-by-type": View(
        "Exceptions by Type", "thrownClass", ("jdk.JavaErrorThrow", "jdk.JavaExceptionThrow"), exception_by_type
    ),
    "gc-pauses": View("GC Pauses", "duration", ("jdk.GCPhasePause",), gc_pauses),
    "hot-methods": View("Methods that Execute the Most", "stackTrace", ("jdk.ExecutionSample",), hot_methods),
    "thread-cpu-load": View("Thread CPU Load", "eventThread, system, user", ("jdk.ThreadCPULoad",), thread_cpu_load),
}


@_jfr.answering
def run(out: Output, text: str) -> None:
    given = _jfr.Arguments(text, ARGUMENTS)
    name = given.text("view")
    if not given.has("view"):
        raise CommandError(f"The argument 'view' is mandatory\n\n{_available()}")
    if name != "all-views" and name not in VIEWS:
        raise CommandError(f"Could not find a view or an event type named {name}\n\n{_available()}")
    shape = _shape(given)
    recorder = recordings.RECORDER
    if not recorder.running():
        raise CommandError("No recording data available. Start a recording with JFR.start.")
    age = given.number("maxage")
    begin = time.time_ns() - (DEFAULT_AGE if age is None else age)
    shown = list(VIEWS) if name == "all-views" else [name]
    wanted = frozenset(event for each in shown for event in VIEWS[each].events)
    events = [
        each
        for each in _events(begin, given.number("maxsize") or DEFAULT_SIZE, wanted.__contains__)
        if each.start >= begin
    ]
    parts = []
    for each in shown:
        view = VIEWS[each]
        own = [event for event in events if event.type.name in view.events]
        parts.append(view.make(view.title, own, shape) if own else f"\nNo events found for '{view.title}'.")
        if given.on("verbose"):
            parts.append(f"\n{each}: {view.source} of {', '.join(view.events)}")
    clock = [time.strftime("%H:%M:%S", time.localtime(moment)) for moment in (begin / S, time.time())]
    out.write("\n".join(parts) + f"\n\nTimespan: {clock[0]} - {clock[1]}\n")


def _events(begin: int, most: int, wanted: Callable[[str], bool]) -> Iterable[Event]:
    """Those of the newest chunks, oldest first."""
    recorder = recordings.RECORDER
    with recorder.lock:
        chunks = recordings.limited([each for each in recorder.chunks() if each.end >= begin], 0, most)
        data = [recorder.data(each) for each in chunks]
    for each in data:
        yield from Chunk("the recording", 0, Header(each[: HEADER.size]), each).events(wanted)


def _shape(given: _jfr.Arguments) -> Shape:
    width, height, truncate = given.number("width"), given.number("cell_height"), given.text("truncate")
    if truncate not in ("end", "beginning"):
        raise CommandError("Truncate must be 'end' or 'beginning'")
    if height is not None and height < 1:
        raise CommandError("Height must be at least 1")
    if width is not None and width < 1:
        raise CommandError("Width must be at least 1")
    return Shape(width or 0, height or 0, truncate == "beginning")


def _available() -> str:
    return "\n".join(["Views:", *(f" {name}" for name in VIEWS), "", "all-views shows each of them."])


COMMANDS = (
    Command(
        "JFR.view",
        "Tables of what has been recorded: hot methods, pauses, contention and others.",
        run,
        impact="Medium: the chunks of the last minutes are read with the GIL.",
        arguments=ARGUMENTS,
        raw=True,
    ),
)
