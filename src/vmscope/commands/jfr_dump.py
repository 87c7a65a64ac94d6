"""JFR.dump: what has been recorded until now, as a file."""

from __future__ import annotations

import datetime
import re
import time

from vmscope.commands import _jfr
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import CommandError
from vmscope.flight import recordings
from vmscope.flight.recordings import limited
from vmscope.flight.units import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output
    from vmscope.flight.recordings import Recording
    from vmscope.flight.repository import Chunk

_RELATIVE = re.compile(r"-(\d{1,9})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_WHEN = "local time (13:20:15), date and time (2026-11-22T09:00:00, or with Z), or how long ago (-5m)."

ARGUMENTS = (
    Argument("begin", f"From when on: {_WHEN}", option=True),
    Argument("end", f"Until when: {_WHEN}", option=True),
    Argument("filename", "The file, or a folder for one; %p is the pid, %t the time.", option=True),
    Argument("maxage", "How much of the end, as a time.", "NANOTIME", option=True),
    Argument("maxsize", "How much of the end, in bytes.", "MEMORY SIZE", option=True),
    Argument("name", f"{_jfr.NAME} Else all recordings.", option=True),
    Argument("path-to-gc-roots", "Taken and not used: JFR.start has it too.", "BOOLEAN", default="false", option=True),
)


@_jfr.answering
def run(out: Output, text: str) -> None:
    given = _jfr.Arguments(text, ARGUMENTS)
    age = given.number("maxage")
    if age is not None and age < 0:
        raise CommandError("Dump failed, maxage can't be negative.")
    if age is not None and (given.has("begin") or given.has("end")):
        raise CommandError("Dump failed, maxage can't be combined with begin or end.")
    begin, end = (_moment(given, which) for which in ("begin", "end"))
    if begin and end and begin > end:
        raise CommandError("Dump failed, begin must precede end.")
    one = _one(given)
    path = one.path if one is not None and not given.has("filename") else ""
    path = path or recordings.resolve(given.text("filename"), one)

    def keep(chunks: list[Chunk]) -> list[Chunk]:
        within = [each for each in chunks if each.end >= begin and (not end or each.begin <= end)]
        return limited(within, age or 0, given.number("maxsize") or 0)

    recorder = recordings.RECORDER
    try:
        written = recorder.dump([one] if one is not None else recorder.running(), path, keep)
    except LookupError as error:
        raise CommandError("Dump failed. No data found in the specified interval.") from error
    except OSError as error:
        raise CommandError(f"Dump failed. Could not copy recording data. {_jfr.reason(error, path)}") from error
    whose = f' "{one.name}"' if one is not None else ""
    out.write(f"Dumped recording{whose}, {size(written)} written to:\n\n{path}\n")


def _one(given: _jfr.Arguments) -> Recording | None:
    """The recording that is named; None for all."""
    if not recordings.RECORDER.recordings:
        raise CommandError("No recordings to dump from. Use JFR.start to start a recording.")
    if not given.has("name"):
        return None
    name = given.text("name")
    one = recordings.RECORDER.find(name)
    if one is None:
        raise CommandError(_jfr.not_found(name))
    if not one.begin:
        raise CommandError(
            f'Dump failed. Could not copy recording data. Recording "{one.name}" (id={one.id}) has not started, '
            "no content to write"
        )
    return one


def _moment(given: _jfr.Arguments, which: str) -> int:
    """ns since 1970; 0 where it was not given."""
    if not given.has(which):
        return 0
    text = given.text(which)
    relative = _RELATIVE.fullmatch(text)
    if relative is not None:
        return time.time_ns() - int(relative[1]) * _UNITS[relative[2]] * _jfr.S
    try:
        if "T" in text:
            found = datetime.datetime.fromisoformat(text)
        else:
            now = datetime.datetime.now()
            found = datetime.datetime.combine(now.date(), datetime.time.fromisoformat(text))
            if found > now:  # yesterday's
                found -= datetime.timedelta(days=1)
        return int(found.timestamp() * 1_000_000) * 1_000
    except (ValueError, OverflowError) as error:
        raise CommandError(f"Dump failed, not a valid {which} time.") from error


COMMANDS = (
    Command("JFR.dump", "Writes what flight recordings have until now to a file.", run, arguments=ARGUMENTS, raw=True),
)
