"""JFR.stop: ends a recording."""

from __future__ import annotations

from vmscope.commands import _jfr
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import CommandError
from vmscope.flight import recordings
from vmscope.flight.units import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output

ARGUMENTS = (
    Argument("filename", "The file that it is written to; else that of JFR.start, or none.", option=True),
    Argument("name", _jfr.NAME, mandatory=True, option=True),
)


@_jfr.answering
def run(out: Output, text: str) -> None:
    given = _jfr.Arguments(text, ARGUMENTS)
    if not given.has("name"):
        raise CommandError("The argument 'name' is mandatory")
    name = given.text("name")
    recording = recordings.RECORDER.find(name)
    if recording is None:
        why = f'Could not stop recording "{name}".'
        if given.has("filename"):
            why = f'Could not write recording "{name}" to file. {_jfr.not_found(name)}'
        raise CommandError(why)
    path = recordings.resolve(given.text("filename"), recording) if given.has("filename") else recording.path
    try:
        written = recordings.RECORDER.stop(recording, path)
    except OSError as error:
        raise CommandError(
            f'Could not write recording "{name}" to file. {_jfr.reason(error, path)}\n\nThe recording goes on.'
        ) from error
    if path:
        out.write(f'Stopped recording "{recording.name}", {size(written)} written to:\n\n{path}\n')
    else:
        out.write(f'Stopped recording "{recording.name}".\n')


COMMANDS = (
    Command("JFR.stop", "Ends a flight recording, and writes it to its file.", run, arguments=ARGUMENTS, raw=True),
)
