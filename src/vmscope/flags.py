"""The VM options: one table, one parser, in the JVM's spelling.

`-XX:+Name`, `-XX:-Name`, `-XX:Name=value` (sizes take k, m, g), `-Dkey=value`, agents (`-pyagent:`, `-agentlib:`,
`-agentpath:`) and `@file`, which stands for the options that the file holds.
"""

from __future__ import annotations

from vmscope import environ
from vmscope.errors import OptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Value = bool | int | str

AGENTS = {"-pyagent:": "MODULE", "-agentlib:": "NAME", "-agentpath:": "FILE"}  # then nothing, or =OPTIONS

_LONGEST = 1 << 20  # characters of an argument file
_SUFFIXES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

# name, default, lowest, highest (ints only), what it does
FLAGS: tuple[tuple[str, Value, int, int, str], ...] = (
    ("UsePerfData", True, 0, 0, "Publish counters in a region. Without it they still count, but no tool sees them."),
    ("PerfDataMemorySize", 65536, 1 << 10, 1 << 30, "Bytes for the region, rounded up to whole pages."),
    ("PerfDataMemoryLimit", 16 << 20, 1 << 10, 1 << 30, "Bytes up to which the region grows when it is full."),
    ("PerfDisableSharedMem", False, 0, 0, "Keep the region in private memory: no file, and no tool sees it."),
    (
        "PerfBypassFileSystemCheck",
        False,
        0,
        0,
        "Windows: make the region's file on a volume too that keeps no access rights, or compresses.",
    ),
    (
        "PerfDataMirror",
        True,
        0,
        0,
        "Write to the file from private memory. Without it the file itself is mapped, as in HotSpot.",
    ),
    (
        "FollowChildren",
        True,
        0,
        0,
        "Under vmscope run: every Python that the program starts is a VM with the same options.",
    ),
    ("PerfDataSaveToFile", False, 0, 0, "Save the region to a file at exit."),
    (
        "PerfDataSaveFile",
        "",
        0,
        0,
        "Where to save it; %p is the pid, %% is %. Naming a file asks for the save. A relative path is that of the "
        "folder at the start; in a folder where others may write it must be a new file, or one of this user's.",
    ),
    (
        "PerfDataSamplingInterval",
        50,
        0,
        60_000,
        "Milliseconds between two samples while the program works; 0: none are taken.",
    ),
    ("PerfMaxStringConstLength", 1024, 32, 32_768, "Bytes that a constant string keeps."),
    ("ReduceSignalUsage", False, 0, 0, "Leave SIGTERM and SIGHUP to the program; -Xrs says the same."),
    ("CheckJNICalls", False, 0, 0, "Log what native agents do wrong with JNI; -Xcheck:jni says the same."),
    (
        "EnableDynamicAgentLoading",
        True,
        0,
        0,
        "Let clients load agents while the program runs. Written out it also spares the program the warning.",
    ),
    ("DisableAttachMechanism", False, 0, 0, "Open no socket for jcmd, jstack, jattach and other clients."),
    (
        "Export",
        "",
        0,
        0,
        "Serve the metrics of this process's service for Prometheus, at :PORT of the loopback or at ADDRESS:PORT.",
    ),
    (
        "StartFlightRecording",
        "",
        0,
        0,
        "Begin a flight recording at the start, with what JFR.start takes, and commas in between; may be given several "
        "times.",
    ),
    ("FlightRecorderOptions", "", 0, 0, "What JFR.configure sets, at the start, with commas in between."),
    ("Instrument", "", 0, 0, "Instruments to switch on, separated by commas, such as asyncio,gunicorn."),
)


_VALUES = {
    "Instrument": "NAME,...",
    "Export": "[ADDRESS]:PORT",
    "StartFlightRecording": "NAME=VALUE,...",
    "FlightRecorderOptions": "NAME=VALUE,...",
}
_RECORDING = "StartFlightRecording"  # with a colon too, or alone

# Those that can be given another value while the VM runs.
WRITEABLE = frozenset(("PerfDataSaveToFile", "PerfDataSaveFile", "PerfDataSamplingInterval", "Instrument"))


class Flags:
    """The options of one VM: every flag by its name, the properties, the agents, and the options as they were given."""

    __slots__ = ("_values", "agents", "arguments", "inherited", "origins", "own", "properties", "recordings")

    def __init__(self) -> None:
        self._values: dict[str, Value] = {row[0]: row[1] for row in FLAGS}
        self.origins: dict[str, str] = {}  # of the flags that were given a value: who gave it
        self.properties: dict[str, str] = {}
        self.arguments: list[str] = []
        self.agents: list[str] = []  # the options that name one
        self.recordings: list[str] = []  # what each -XX:StartFlightRecording says
        self.own = 0  # where in `arguments` those begin that the environment does not give
        self.inherited = 0  # how many of these the environment names; they come first

    def __repr__(self) -> str:
        return f"<vmscope.flags.Flags {' '.join(self.arguments) or 'without options'}>"

    def values(self) -> dict[str, Value]:
        """Every flag's value by its name."""
        return dict(self._values)

    def on(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool), name
        return value

    def number(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int), name
        return value

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), name
        return value

    def forget(self, name: str) -> None:
        """Puts a flag back to its default."""
        self._values[name] = next(row[1] for row in FLAGS if row[0] == name)
        self.origins.pop(name, None)

    def set(self, name: str, text: str) -> None:
        """Gives a flag another value while the VM runs: a switch takes true, false, 1 or 0.

        OptionError for one that there is not, that is not WRITEABLE, or that cannot have this value.
        """
        row = _row(name)
        if row is None:
            raise OptionError(f"flag {name} does not exist", hint="VM.flags -all lists them")
        if name not in WRITEABLE:
            raise OptionError(f"flag {name} cannot be changed while the VM runs", hint="VM.flags -all says which can")
        if isinstance(row[1], bool):
            word = text.lower()
            if word not in ("true", "false", "1", "0"):
                raise OptionError(f"flag {name}: {text!r} is neither true, false, 1 nor 0")
            option = f"-XX:{'+' if word in ('true', '1') else '-'}{name}"
        elif isinstance(row[1], str) and not text:
            self.forget(name)
            return
        else:
            option = f"-XX:{name}={text}"
        self._add_flag(option, "management")

    def add(self, option: str, origin: str = "command line") -> None:
        """Takes one option. Raises OptionError for one that is unknown, malformed or out of its range."""
        if option.startswith("-XX:") and len(option) > 4:
            self._add_flag(option, origin)
        elif option.startswith("-D") and len(option) > 2:
            key, _, value = option[2:].partition("=")
            self.properties[key] = value
        elif option.startswith(tuple(AGENTS)):
            kind, _, text = option.partition(":")
            if text[:1] in ("", "="):
                name = AGENTS[f"{kind}:"]
                raise OptionError(f"{option} names no agent", hint=f"write {kind}:{name} or {kind}:{name}=OPTIONS")
            self.agents.append(option)
        elif option == "-Xrs":
            self._values["ReduceSignalUsage"] = True
            self.origins["ReduceSignalUsage"] = origin
        elif option == "-Xcheck:jni":
            self._values["CheckJNICalls"] = True
            self.origins["CheckJNICalls"] = origin
        else:
            raise OptionError(f"{option} is not a VM option", hint="vmscope run --help lists them")
        self.arguments.append(option)

    def add_all(self, options: Iterable[str], origin: str = "command line") -> None:
        """Takes each, and of an argument file each that it holds."""
        for option in options:
            for inner in read_argument_file(option[1:]) if option.startswith("@") else (option,):
                self.add(inner, origin)

    def _add_flag(self, option: str, origin: str) -> None:
        body = option[4:]
        if body.startswith(_RECORDING) and body[len(_RECORDING) :][:1] in ("", ":", "="):
            if body[len(_RECORDING) :] == "=":
                raise OptionError(f"{option} names nothing")
            self.recordings.append(body[len(_RECORDING) + 1 :])
            self._values[_RECORDING] = self.recordings[-1]
            self.origins[_RECORDING] = origin
            return
        if body[0] in "+-":
            name, text = body[1:], None
        else:
            name, equals, text = body.partition("=")
            if not equals:
                raise OptionError(f"{option} needs a sign or a value: -XX:+{name}, -XX:-{name} or -XX:{name}=VALUE")
        row = _row(name)
        if row is None:
            raise OptionError(f"{option}: no flag is called {name}", hint="vmscope run --help lists them")
        _, default, low, high, _ = row
        if isinstance(default, bool) != (text is None):
            right = f"-XX:+{name} or -XX:-{name}" if text is not None else f"-XX:{name}=VALUE"
            raise OptionError(f"{option}: write {right}")
        if text is None:
            self._values[name] = body[0] == "+"
        elif isinstance(default, int):
            self._values[name] = _size(option, text, low, high)
        else:
            if not text:
                raise OptionError(f"{option} names nothing")
            self._values[name] = text
        self.origins[name] = origin


def _row(name: str) -> tuple[str, Value, int, int, str] | None:
    return next((row for row in FLAGS if row[0] == name), None)


def _size(option: str, text: str, low: int, high: int) -> int:
    factor = _SUFFIXES.get(text[-1:].lower(), 1)
    digits = text[:-1] if factor > 1 else text
    if not (digits.isascii() and digits.isdigit()):
        raise OptionError(f"{option}: {text!r} is not a whole number (k, m and g may follow it)")
    value = int(digits) * factor
    if not low <= value <= high:
        raise OptionError(f"{option} is out of its range, {low} to {high}")
    return value


def split(text: str) -> list[str]:
    """Words between blanks; quotes of either kind hold blanks, `#` starts a comment where a word could start."""
    words: list[str] = []
    word, quote, started, comment = "", "", False, False
    for character in text:
        if comment:
            comment = character != "\n"
        elif quote:
            if character == quote:
                quote = ""
            else:
                word += character
        elif character in "\"'":
            quote, started = character, True
        elif character.isspace():
            if started:
                words.append(word)
            word, started = "", False
        elif character == "#" and not started:
            comment = True
        else:
            word += character
            started = True
    if quote:
        raise OptionError(f"a quote ({quote}) is not closed in: {text.strip()[:60]}")
    if started:
        words.append(word)
    return words


def join(words: Iterable[str]) -> str:
    """A text that `split` makes these words of."""
    return " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words)


def read_argument_file(path: str) -> list[str]:
    """The options that the file of `@path` holds. Raises OptionError when it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise OptionError(f"@{path}: {reason}", path=path) from error
    if len(text) > _LONGEST:
        raise OptionError(f"@{path}: more than 1 MiB can be no options", path=path)
    return split(text)


in_force = Flags()  # this process's

on_change: Callable[[str], object] | None = None  # the VM's: gets the name of a flag that has another value


def change(name: str, text: str) -> None:
    """Gives one of this process's flags another value, with what follows from it. VMScopeError, and nothing changed."""
    flags = in_force
    before = flags.values(), dict(flags.origins)
    flags.set(name, text)
    if on_change is not None:
        try:
            on_change(name)
        except BaseException:
            flags._values, flags.origins = before
            raise


def parse(options: Iterable[str]) -> Flags:
    """The flags of a VM: first those of the environment, where it is obeyed, then `options`. Raises OptionError."""
    flags = Flags()
    for name in (environ.OPTIONS, environ.RUN_OPTIONS):
        flags.add_all(split(environ.get(name)), "environment")
    if environ.get(environ.RUN_OPTIONS) and "%p" not in flags.text("PerfDataSaveFile"):
        flags.forget("PerfDataSaveFile")  # the file of who was started first
    if environ.get(environ.RUN_OPTIONS):
        flags.recordings = [each for each in flags.recordings if "filename=" not in each or "%p" in each]  # the same
    flags.inherited = len(flags.agents)
    flags.own = len(flags.arguments)
    flags.add_all(options)
    return flags


def spelling(name: str, default: Value) -> str:
    """How the flag is written."""
    if isinstance(default, bool):
        return f"-XX:[+-]{name}"
    if isinstance(default, int):
        return f"-XX:{name}=N"
    return f"-XX:{name}={_VALUES.get(name, 'FILE')}"


def describe() -> str:
    """The table for people, one flag a paragraph."""
    lines: list[str] = []
    for name, default, low, high, text in FLAGS:
        if isinstance(default, bool):
            value = "on" if default else "off"
        elif isinstance(default, int):
            value = f"{default}; {low} to {high}"
        else:
            value = "none"
        lines += [f"  {spelling(name, default)}  ({value})", f"      {text}"]
    return "\n".join(lines)
