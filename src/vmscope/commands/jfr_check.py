"""JFR.check: which recordings there are."""

from __future__ import annotations

import os

from vmscope.commands import _jfr
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.flight import recordings
from vmscope.flight.types import label
from vmscope.flight.units import size, spaced, timespan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output
    from vmscope.flight.recordings import Recording

ARGUMENTS = (
    Argument("name", _jfr.NAME, option=True),
    Argument("verbose", "With the settings of each event.", "BOOLEAN", default="false", option=True),
)
_ORDER = ("throttle", "period", "cutoff", "threshold", "stackTrace", "enabled")


@_jfr.answering
def run(out: Output, text: str) -> None:
    given = _jfr.Arguments(text, ARGUMENTS)
    recorder = recordings.RECORDER
    with recorder.lock:
        found = [*recorder.recordings.values()]
    if given.has("name"):
        name = given.text("name")
        one = recorder.find(name)
        if one is None:
            out.write(f"{_jfr.not_found(name)}\n")
            return
        found = [one]
    if not found:
        out.write(f"No available recordings.\n\nUse jcmd {os.getpid()} JFR.start to start a recording.\n")
        return
    out.write("\n\n".join(_describe(each, given.on("verbose")) for each in found) + "\n")


def _describe(recording: Recording, verbose: bool) -> str:
    words = [f"Recording {recording.id}: name={recording.name}"]
    if recording.duration:
        words.append(f"duration={timespan(recording.duration)}")
    if recording.max_size:
        words.append(f"maxsize={size(recording.max_size, '')}")
    if recording.max_age is not None:
        words.append(f"maxage={timespan(recording.max_age)}")
    lines = [" ".join([*words, f"({recording.state})"])]
    if verbose:
        lines.append("")
        for event, values in sorted(recording.settings.values.items()):
            shown = [f"{name}={spaced(values[name])}" for name in _ORDER if name in values]
            lines += [f" {label(event)} ({event})", f"   [{','.join(shown)}]"]
    return "\n".join(lines)


COMMANDS = (Command("JFR.check", "The flight recordings that run or wait.", run, arguments=ARGUMENTS, raw=True),)
