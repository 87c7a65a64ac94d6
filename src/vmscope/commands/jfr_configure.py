"""JFR.configure: where recordings are kept, and how large their parts are."""

from __future__ import annotations

from vmscope.commands import _jfr
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import CommandError
from vmscope.flight import recordings
from vmscope.flight.repository import Repository
from vmscope.flight.units import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output
    from vmscope.flight.recordings import Recorder

_FIXED = "This stays as it is once there has been a recording."
ARGUMENTS = (
    Argument("dumppath", "Where a crash dumps recordings to.", option=True),
    Argument("globalbuffercount", "A JVM's; nothing here depends on it.", "JULONG", option=True),
    Argument("globalbuffersize", "A JVM's; nothing here depends on it.", "MEMORY SIZE", option=True),
    Argument("maxchunksize", f"Bytes of a chunk, at least 1m. {_FIXED}", "MEMORY SIZE", option=True),
    Argument("memorysize", "A JVM's; nothing here depends on it.", "MEMORY SIZE", option=True),
    Argument("preserve-repository", "Leave the chunks when the process ends.", "BOOLEAN", option=True),
    Argument("repositorypath", "The folder in which there is one for the chunks.", option=True),
    Argument("samplethreads", "JDK 17's; threads are sampled as the settings say.", "BOOLEAN", option=True),
    Argument("stackdepth", f"Frames of a stack, 1 to 2048. {_FIXED}", "JULONG", option=True),
    Argument("thread_buffer_size", "A JVM's; nothing here depends on it.", "MEMORY SIZE", option=True),
)
_AT_START = {
    "repository": "repositorypath",
    "numglobalbuffers": "globalbuffercount",
    "threadbuffersize": "thread_buffer_size",
}
_IGNORED = (
    Argument("old-object-queue-size", "A JVM's; nothing here depends on it.", "JULONG", option=True),
    Argument("retransform", "A JVM's; nothing here depends on it.", "BOOLEAN", option=True),
    Argument("sampleprotection", "A JVM's; nothing here depends on it.", "BOOLEAN", option=True),
)
LEAST_CHUNK, DEEPEST = 1 << 20, 2048
# Argument, attribute of Options, what it is called in the answer, whether it is a size; fixed by the first recording.
_FIXED_ROWS = (
    ("stackdepth", "stack_depth", "Stack depth", False),
    ("globalbuffercount", "global_buffers", "Global buffer count", False),
    ("globalbuffersize", "global_buffer_size", "Global buffer size", True),
    ("thread_buffer_size", "thread_buffer_size", "Thread buffer size", True),
    ("memorysize", "memory_size", "Memory size", True),
    ("maxchunksize", "max_chunk_size", "Max chunk size", True),
)


@_jfr.answering
def run(out: Output, text: str) -> None:
    lines = configure(text)
    out.write("\n".join(lines or _describe(recordings.RECORDER)) + "\n")


def configure(text: str) -> list[str]:
    """Does what a text as of JFR.configure asks for; a line for each value that has changed. CommandError."""
    return _change(_jfr.Arguments(text, ARGUMENTS))


def configure_at_start(text: str) -> None:
    """The same for -XX:FlightRecorderOptions, where some arguments are called otherwise, with commas between them."""
    _change(_jfr.Arguments(text, (*ARGUMENTS, *_IGNORED), blank=",", names=_AT_START))


def _change(given: _jfr.Arguments) -> list[str]:
    recorder = recordings.RECORDER
    options = recorder.options
    chunk, depth = given.number("maxchunksize"), given.number("stackdepth")
    if chunk is not None and chunk < LEAST_CHUNK:
        raise CommandError(f"Max chunk size must be at least {LEAST_CHUNK}")
    if depth is not None and not 1 <= depth <= DEEPEST:
        raise CommandError(f"Stack depth must be between 1 and {DEEPEST}")
    lines = []
    with recorder.lock:
        if given.has("preserve-repository"):
            options.preserve = given.on("preserve_repository")
            lines.append(f"Preserve repository: {str(options.preserve).lower()}")
        if given.has("repositorypath"):
            lines.append(f"Repository path: {_move(recorder, given.text('repositorypath'))}")
        if given.has("dumppath"):
            options.dump_path = given.text("dumppath")
            lines.append(f"Dump path: {options.dump_path}")
        if not recorder.began:
            for name, attribute, label, is_size in _FIXED_ROWS:
                value = given.number(name)
                if value is not None:
                    setattr(options, attribute, value)
                    lines.append(f"{label}: {size(value) if is_size else value}")
    return lines


def _move(recorder: Recorder, base: str) -> str:
    """The next repository is in this folder; where one is in use, it is until the recordings end."""
    try:
        found = Repository(base)
    except OSError as error:
        raise CommandError(
            f"Could not use {base} as repository. Unable to create JFR repository directory using base location "
            f"({base}): {error.strerror}"
        ) from error
    found.remove()
    recorder.options.repository = base
    return base


def _describe(recorder: Recorder) -> list[str]:
    options, found = recorder.options, recorder.repository
    lines = [
        "Current configuration:",
        "",
        f"Preserve repository: {str(options.preserve).lower()}",
        f"Repository path: {'N/A' if found is None else found.path}",
        *([] if found is None else [""]),
        f"Dump path: {options.dump_path or recordings.folder()}",
        "",
    ]
    for _, attribute, label, is_size in _FIXED_ROWS:
        value = getattr(options, attribute)
        lines.append(f"{label}: {size(value) if is_size else value}")
    return lines


COMMANDS = (
    Command(
        "JFR.configure",
        "Where flight recordings are kept, and how large their parts are; without arguments, how it is.",
        run,
        arguments=ARGUMENTS,
        raw=True,
    ),
)
