"""What is recorded: the settings of each event, by name or from files, and what those of several recordings come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import reduce
from typing import NamedTuple

from vmscope.errors import OptionError
from vmscope.flight import jfc
from vmscope.flight.jfc import Values
from vmscope.flight.types import EVENT_TYPES

NAMES = ("enabled", "stackTrace", "threshold", "period", "throttle", "cutoff", "filter")
CHUNK_PERIODS = ("everyChunk", "beginChunk", "endChunk")
_WORDS: dict[str, tuple[str, ...]] = {
    "threshold": (),
    "period": CHUNK_PERIODS,
    "cutoff": ("infinity",),
}  # or a timespan
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_TIMESPAN = re.compile(r"(\d{1,18}) *(ns|us|ms|s|m|h|d)")
_RATE = re.compile(r"(\d{1,9})/(ns|us|ms|s|m|h|d)")

# The same in `default` and `profile`. An event that is named is on, unless its row says otherwise.
_BASE = """
    jdk.ActiveRecording
    jdk.ActiveSetting
    jdk.DataLoss
    jdk.JVMInformation period=beginChunk
    jdk.OSInformation period=beginChunk
    jdk.CPUInformation period=beginChunk
    jdk.VirtualizationInformation period=beginChunk
    jdk.InitialSystemProperty period=beginChunk
    jdk.InitialEnvironmentVariable period=beginChunk
    jdk.SystemProcess period=endChunk
    jdk.NativeLibrary period=everyChunk
    jdk.BooleanFlag period=beginChunk
    jdk.IntFlag period=beginChunk
    jdk.StringFlag period=beginChunk
    jdk.BooleanFlagChanged
    jdk.IntFlagChanged
    jdk.StringFlagChanged
    jdk.JavaAgent period=endChunk
    jdk.NativeAgent period=endChunk
    jdk.ContainerConfiguration period=beginChunk
    jdk.ContainerCPUUsage period=30s
    jdk.ContainerCPUThrottling period=30s
    jdk.ContainerMemoryUsage period=30s
    jdk.ContainerIOUsage period=30s
    jdk.CPULoad period=1s
    jdk.ThreadCPULoad period=10s
    jdk.ThreadContextSwitchRate period=10s
    jdk.NetworkUtilization period=5s
    jdk.PhysicalMemory period=everyChunk
    jdk.ResidentSetSize period=1s
    jdk.JavaThreadStatistics period=1s
    jdk.ClassLoadingStatistics period=1s
    jdk.ExceptionStatistics period=1s
    jdk.ThreadStart stackTrace=true
    jdk.ThreadEnd
    jdk.ThreadSleep stackTrace=true
    jdk.ThreadPark stackTrace=true
    jdk.JavaMonitorEnter stackTrace=true
    jdk.JavaMonitorWait stackTrace=true
    jdk.FileRead stackTrace=true
    jdk.FileWrite stackTrace=true
    jdk.FileForce stackTrace=true
    jdk.SocketRead stackTrace=true
    jdk.SocketWrite stackTrace=true
    jdk.ProcessStart stackTrace=true
    jdk.HeapDump stackTrace=true threshold=0ns
    jdk.Shutdown stackTrace=true
    vmscope.Counters period=1s
    vmscope.SamplerStatistics period=endChunk
    vmscope.GILWait stackTrace=true threshold=1ms
    vmscope.AsyncioTask enabled=false stackTrace=true threshold=10ms
"""


class Option(NamedTuple):
    """What `JFR.start NAME=CHOICE` sets. Without choices the value itself goes to the `targets`."""

    default: str
    profile: str
    choices: dict[str, str] = {}  # "EVENT#SETTING=VALUE ..."
    targets: tuple[str, ...] = ()


_GC = "jdk.GarbageCollection jdk.GCPhasePause jdk.GCHeapSummary jdk.SystemGC#stackTrace=true jdk.SystemGC "
_GC += "jdk.GCConfiguration jdk.GCConfiguration#period=everyChunk "
_GC += "jdk.GCHeapConfiguration jdk.GCHeapConfiguration#period=beginChunk"
_GC_DETAILED = f"{_GC} jdk.GCPhasePauseLevel1 jdk.GCReferenceStatistics jdk.GCCPUTime"
_SAMPLES = "jdk.ExecutionSample jdk.NativeMethodSample vmscope.WaitSample"


def _sampling(python: str, native: str) -> str:
    periods = ("jdk.ExecutionSample", python), ("jdk.NativeMethodSample", native), ("vmscope.WaitSample", native)
    return " ".join([_SAMPLES, *(f"{event}#period={period}" for event, period in periods)])


def _allocation(rate: str) -> str:
    event = "jdk.ObjectAllocationSample"
    return f"{event} {event}#stackTrace=true {event}#throttle={rate}"


def _thread_dump(period: str) -> str:
    return f"jdk.ThreadDump jdk.ThreadDump#period={period}"


_LEAKS = "jdk.OldObjectSample jdk.OldObjectSample#cutoff"
_ERRORS = "jdk.JavaErrorThrow jdk.JavaErrorThrow#stackTrace=true"

# The names and choices that users of a JVM's recorder know. There is nothing that compiles here.
OPTIONS: dict[str, Option] = {
    "gc": Option(
        "normal",
        "detailed",
        {
            "off": "",
            "normal": _GC,
            "detailed": _GC_DETAILED,
            "high": _GC_DETAILED,
            "all": f"{_GC_DETAILED} jdk.ObjectCount jdk.ObjectCount#period=everyChunk",
        },
    ),
    "allocation-profiling": Option(
        "off",
        "medium",
        {
            "off": "",
            "low": _allocation("150/s"),
            "medium": _allocation("300/s"),
            "high": _allocation("1000/s"),
            "maximum": _allocation("off"),
        },
    ),
    "compiler": Option("normal", "detailed", {"off": "", "normal": "", "detailed": "", "all": ""}),
    "method-profiling": Option(
        "normal",
        "high",
        {
            "off": "",
            "normal": _sampling("20ms", "20ms"),
            "high": _sampling("10ms", "10ms"),
            "max": _sampling("1ms", "1ms"),
        },
    ),
    "thread-dump": Option(
        "once",
        "once",
        {
            "off": "",
            "once": _thread_dump("everyChunk"),
            "60s": _thread_dump("60s"),
            "10s": _thread_dump("10s"),
            "1s": _thread_dump("1s"),
        },
    ),
    "exceptions": Option(
        "errors",
        "errors",
        {
            "off": "",
            "errors": _ERRORS,
            "throttled": f"{_ERRORS} jdk.JavaExceptionThrow jdk.JavaExceptionThrow#stackTrace=true "
            "jdk.JavaExceptionThrow#throttle=100/s",
            "all": f"{_ERRORS} jdk.JavaExceptionThrow jdk.JavaExceptionThrow#stackTrace=true",
        },
    ),
    "memory-leaks": Option(
        "types",
        "stack-traces",
        {
            "off": "",
            "types": f"{_LEAKS}=0ns jdk.OldObjectSample#stackTrace=false",
            "stack-traces": f"{_LEAKS}=0ns jdk.OldObjectSample#stackTrace=true",
            "gc-roots": f"{_LEAKS}=infinity jdk.OldObjectSample#stackTrace=true",
        },
    ),
    "locking-threshold": Option(
        "20ms",
        "10ms",
        targets=("jdk.ThreadSleep", "jdk.ThreadPark", "jdk.JavaMonitorEnter", "jdk.JavaMonitorWait"),
    ),
    "file-threshold": Option("20ms", "10ms", targets=("jdk.FileRead", "jdk.FileWrite", "jdk.FileForce")),
    "socket-threshold": Option("20ms", "10ms", targets=("jdk.SocketRead", "jdk.SocketWrite")),
    "class-loading": Option("false", "false", {"true": "jdk.ClassLoad jdk.ClassLoad#stackTrace=true", "false": ""}),
}


class EventSettings(NamedTuple):
    """What an event's values come to. `period` in ns, 0 for none; `chunk`: one of CHUNK_PERIODS, or ""."""

    enabled: bool = False
    stack: bool = False
    threshold: int = 0  # ns
    period: int = 0
    chunk: str = ""
    throttle: int = 0  # events a second; 0: as many as come


def timespan(text: str) -> int:
    """ns. OptionError for what is not a number with a unit."""
    found = _TIMESPAN.fullmatch(text.strip())
    if found is None:
        raise OptionError(
            f"'{text}' is not a valid timespan. Should be numeric value followed by a unit, i.e. 20 ms. "
            "Valid units are ns, us, s, m, h and d."
        )
    return int(found[1]) * _UNITS[found[2]]


def rate(text: str) -> int:
    """Events a second, of `100/s` or of `10 ms`, the time from one to the next; 0 for `off`, which limits nothing."""
    if text.strip() == "off":
        return 0
    if _TIMESPAN.fullmatch(text.strip()):
        return max(_UNITS["s"] // max(timespan(text), 1), 1)
    found = _RATE.fullmatch(text.replace(" ", ""))
    if found is None:
        raise OptionError(f"'{text}' is not a valid rate. Should be numeric value followed by a unit, i.e. 100/s.")
    return max(int(found[1]) * _UNITS["s"] // _UNITS[found[2]], 1)


def check(setting: str, text: str) -> None:
    """OptionError for a value that this setting cannot have."""
    if setting in ("enabled", "stackTrace"):
        if text.lower() not in ("true", "false"):
            raise OptionError(f"'{text}' is not a valid boolean value. Valid values are true and false.")
    elif text not in _WORDS.get(setting, (text,)):
        timespan(text)
    elif setting == "throttle":
        rate(text)


class Settings:
    """Those of one recording: what is named is read, what a client chooses laid over it."""

    def __init__(self, names: Iterable[str] = ("default",), choices: Iterable[tuple[str, str]] = ()) -> None:
        """`names`: default, profile, none, or files; of two that set the same the later one counts. `choices`: options
        and `EVENT#SETTING`s with their values. OptionError for what is not valid."""
        self.values: Values = {}
        self.warnings: list[str] = []
        events: list[tuple[str, str]] = []
        chosen: list[tuple[str, str]] = []
        for name, value in choices:
            (events if "#" in name else chosen).append((name, value))
        known = [self._read(name, chosen) for name in names if name != "none"]
        for name, _ in chosen:
            if not any(has(name) for has in known):
                self._warn(name)
        for name, value in events:
            self._choose(name, value)

    def _read(self, name: str, chosen: list[tuple[str, str]]) -> Callable[[str], bool]:
        if name.removesuffix(".jfc") in ("default", "profile"):
            self._read_own(name.startswith("profile"), dict(chosen))
            return OPTIONS.__contains__
        try:
            configuration = jfc.read(name)
        except OSError as error:
            raise OptionError(f"Could not find file '{name}'", path=name) from error
        for option, value in chosen:
            if configuration.has(option):
                configuration.choose(option, value)
        found = configuration.values()
        for event, values in found.items():
            for setting, value in values.items():
                if event in EVENT_TYPES:
                    check(setting, value)
        if not self.values:  # a JVM's file does not know these
            own = Settings(("default",)).values
            self.values = {event: values for event, values in own.items() if event.startswith("vmscope.")}
        self._merge(found)
        return configuration.has

    def _read_own(self, profile: bool, chosen: dict[str, str]) -> None:
        self._merge(_parse(_BASE.split("\n")))
        for name, option in OPTIONS.items():
            value = chosen.get(name, option.profile if profile else option.default)
            if option.targets:
                timespan(value)
                self._merge({event: {"threshold": value} for event in option.targets})
            else:
                self._merge(_parse(jfc.chosen(value, option.choices)[1].split()))

    def _choose(self, name: str, value: str) -> None:
        """`EVENT#SETTING`; with + in front it need not be known."""
        event, _, setting = name.removeprefix("+").partition("#")
        if name.startswith("+") or (event in EVENT_TYPES and setting in NAMES) or event in self.values:
            check(setting, value)
            self._merge({event: {setting: value}})
        else:
            self._warn(name)

    def _warn(self, name: str) -> None:
        self.warnings.append(f"The .jfc option/setting '{name}' doesn't exist.")

    def _merge(self, values: Values) -> None:
        for event, settings in values.items():
            self.values.setdefault(event, {}).update(settings)

    def of(self, event: str) -> EventSettings:
        return _effective(self.values.get(event, {}))

    def of_program(self, event: str) -> EventSettings:
        """Of an event of the program's own, which is on, with its stack, unless something else is said."""
        return _effective({"enabled": "true", "stackTrace": "true", **self.values.get(event, {})})


def _parse(rows: Iterable[str]) -> Values:
    """Rows `EVENT SETTING=VALUE ...`, and words `EVENT#SETTING=VALUE`. An event that is named alone is on."""
    found: Values = {}
    for row in rows:
        event, *settings = row.split() or [""]
        event, marked, setting = event.partition("#")
        if event:
            values = found.setdefault(event, {})
            if not marked:
                values["enabled"] = "true"
            for each in (*settings, *([setting] if marked else ())):
                name, _, value = each.partition("=")
                values[name] = value
    return found


def _effective(values: dict[str, str]) -> EventSettings:
    period = values.get("period", "")
    in_chunk = period in CHUNK_PERIODS
    return EventSettings(
        values.get("enabled", "").lower() == "true",
        values.get("stackTrace", "").lower() == "true",
        timespan(values.get("threshold", "0ns")),
        0 if in_chunk or not period else timespan(period),
        period if in_chunk else "",
        rate(values.get("throttle", "off")),
    )


def combined(several: Iterable[Settings]) -> dict[str, EventSettings]:
    """What has to be recorded so that each gets all that it asks for. Events that are off are left out."""
    found: dict[str, EventSettings] = {}
    for settings in several:
        for event in settings.values:
            asked = settings.of(event)
            if asked.enabled:
                known = found.get(event)
                found[event] = asked if known is None else _both(known, asked)
    return found


def combined_for(event: str, several: Iterable[Settings]) -> EventSettings:
    """The same for an event of the program's own."""
    asked = [each for settings in several if (each := settings.of_program(event)).enabled]
    return reduce(_both, asked) if asked else EventSettings()


def _both(one: EventSettings, other: EventSettings) -> EventSettings:
    periods = [each for each in (one.period, other.period) if each]
    throttles = one.throttle, other.throttle
    chunks = {one.chunk, other.chunk} - {""}
    return EventSettings(
        True,
        one.stack or other.stack,
        min(one.threshold, other.threshold),
        min(periods, default=0),
        "" if periods or not chunks else chunks.pop() if len(chunks) == 1 else "everyChunk",
        max(throttles) if all(throttles) else 0,
    )
