"""JFR.start: begins a recording."""

from __future__ import annotations

import os

from vmscope.commands import _jfr
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import CommandError
from vmscope.flight import recordings
from vmscope.flight.recordings import DEFAULT_SIZE, Recording
from vmscope.flight.settings import Settings
from vmscope.flight.units import timespan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output

ARGUMENTS = (
    Argument("delay", "How long to wait before it begins, at least 1s.", "NANOTIME", option=True),
    Argument(
        "disk",
        "Chunks are files while it runs; else the last minutes stay in memory.",
        "BOOLEAN",
        default="true",
        option=True,
    ),
    Argument("dumponexit", "Write it to a file when the process ends.", "BOOLEAN", option=True),
    Argument("duration", "How long it takes, at least 1s; then it is written to its file.", "NANOTIME", option=True),
    Argument(
        "filename",
        "The file, or a folder for one, that it is written to at its end; %p is the pid, %t the time.",
        option=True,
    ),
    Argument(
        "flush-interval", "Taken and not used: what is recorded goes to the file each second.", "NANOTIME", option=True
    ),
    Argument("maxage", "How long chunks are kept.", "NANOTIME", option=True),
    Argument("maxsize", "How many bytes of chunks are kept; without any limit 250m.", "MEMORY SIZE", option=True),
    Argument("name", "What to call it in other commands; else its number.", option=True),
    Argument(
        "path-to-gc-roots",
        "Record what keeps old objects alive, as memory-leaks=gc-roots does.",
        "BOOLEAN",
        default="false",
        option=True,
    ),
    Argument(
        "settings",
        "default, profile, none, or a .jfc file; may be given several times. Other arguments are "
        "options of these (gc=high), or EVENT#SETTING=VALUE.",
        default="default",
        option=True,
    ),
)


def start(text: str, blank: str = " ") -> str:
    """Begins what a text as of JFR.start asks for, with `blank` between its arguments; the answer. VMScopeError."""
    given = _jfr.Arguments(text, ARGUMENTS, free=True, blank=blank)
    recording, warnings = _recording(given)
    recorder = recordings.RECORDER
    recorder.add(recording)
    filename = given.text("filename")
    if given.has("filename") or recording.duration:
        recording.path = recordings.resolve(filename, recording)
        problem = _unwritable(recording.path)
        if problem:
            raise CommandError(f"Could not start recording, not able to write to file {problem}")
    try:
        recorder.start(recording)
    except OSError as error:
        raise CommandError(f"Could not start recording, {_jfr.reason(error, str(error.filename))}") from error
    lines = [f"Warning! {each}" for each in warnings]
    begun = f"Started recording {recording.id}."
    if recording.delay:
        begun = f"Recording {recording.id} scheduled to start in {timespan(recording.delay, ' ')}."
    if recording.duration:
        lines += [f"{begun} The result will be written to:", "", recording.path]
        return "\n".join(lines)
    if recording.max_size == DEFAULT_SIZE and not given.has("maxsize"):
        begun += " No limit specified, using maxsize=250MB as default."
    name = f'\\"{recording.name}\\"' if " " in recording.name else recording.name
    where = "" if recording.path else "filename=FILEPATH "
    return "\n".join(
        [*lines, begun, "", f"Use jcmd {os.getpid()} JFR.dump name={name} {where}to copy recording data to file."]
    )


def _recording(given: _jfr.Arguments) -> tuple[Recording, list[str]]:
    """What was asked for, with warnings. CommandError, OptionError."""
    name = given.text("name")
    delay, duration = given.number("delay"), given.number("duration")
    if name.isdigit():
        raise CommandError("Name of recording can't be numeric")
    for what, value in (("duration", duration), ("delay", delay)):
        if value is not None and value < _jfr.S:
            raise CommandError(f"Could not start recording, {what} must be at least 1 second.")
    choices = [*given.others, *([("memory-leaks", "gc-roots")] if given.on("path_to_gc_roots") else [])]
    settings = Settings(given.given.get("settings", ["default"]), choices)
    dump_on_exit = given.values["dumponexit"]
    if given.has("filename") and not duration and dump_on_exit is False:
        raise CommandError(
            "Filename can only be set for a time bound recording or if dumponexit=true. "
            "Set duration/dumponexit or omit filename."
        )
    disk = given.on("disk")
    max_age, max_size = given.number("maxage"), given.number("maxsize")
    warnings = [*settings.warnings]
    for what, limit in (("maxage", max_age), ("maxsize", max_size)):
        if limit is not None and not disk:
            warnings.append(f"Option {what} has no effect with disk=false.")
    if disk and max_age is None and max_size is None and duration is None:
        max_size = DEFAULT_SIZE
    recording = Recording(
        settings,
        name=name,
        delay=delay or 0,
        duration=duration or 0,
        max_age=max_age,
        max_size=max_size,
        disk=disk,
        dump_on_exit=given.has("filename") if dump_on_exit is None else dump_on_exit is True,
    )
    return recording, warnings


def _unwritable(path: str) -> str:
    """Why the file cannot be written, with its path; "" where it can."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        return f"{path}. {path} "
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return f"{path}. {path}: Permission denied"
    return ""


@_jfr.answering
def run(out: Output, text: str) -> None:
    out.write(f"{start(text)}\n")


COMMANDS = (
    Command(
        "JFR.start",
        "Begins a flight recording of this process.",
        run,
        impact="Low to medium: 1 % with the settings default, more with others.",
        arguments=ARGUMENTS,
        raw=True,
    ),
)
