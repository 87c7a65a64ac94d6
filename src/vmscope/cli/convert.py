"""`vmscope convert`: flight recordings as flame graphs and in other profilers' formats."""

from __future__ import annotations

import os

from vmscope.cli import _options, _profile
from vmscope.flight.convert import modes, output

HELP = f"""\
usage: vmscope convert [OPTION ...] RECORDING.jfr ... FILE

Makes a profile of flight recordings, vmscope's and JVMs', and writes it to
FILE; its ending picks the format. Several recordings are added up.

  .html             a flame graph: one page that works without a network
  .collapsed        stacks as text, a line each, for flamegraph.pl and others
  .speedscope.json  for speedscope.app
  .pb.gz            for pprof, and what else reads its format
  .jfr              the recordings themselves, in one file

  --mode=cpu        what is shown:
{_profile.MODE_HELP}
  --thread=PATTERN  only threads whose names are like this: 'worker-*'
  --from=TIME --to=TIME
                    only what lies between: seconds after the recording's
                    beginning (90s, 1.5m), or a time (2026-11-23T06:48:05)

Without FILE it shows the functions with the largest shares.

example:
$ vmscope convert --mode=cpu shop.jfr shop.html
shop.html: cpu: 129 samples of 3 threads in 4.0 s
$ vmscope convert shop.jfr
cpu: 129 samples of 3 threads in 4.0 s

      SELF  SELF%  TOTAL%  FUNCTION
74 samples  57.4%   57.4%  java.util.Arrays.copyOf
27 samples  20.9%   78.3%  java.util.ArrayList.grow
23 samples  17.8%   17.8%  Shop.price
"""

_TAKES: dict[str, str | None] = {"--mode": "", "--thread": "", "--from": "", "--to": ""}


def main(args: list[str]) -> int:
    """Writes the file, or shows the table. 0, or 1 where a recording cannot be read or has no such events."""
    given, words = _options.parse("convert", args, _TAKES)
    if not words:
        raise _profile.wrong("convert", "needs a recording")
    mode, window = _profile.mode_of("convert", given), _profile.window_of("convert", given)
    recordings = words[:-1] or words
    path = words[-1] if len(words) > 1 else ""
    if path:
        _profile.check_output("convert", path, *output.ENDINGS)
    if output.ending(path) == output.RECORDING:
        return _join(recordings, path, given)
    profile = modes.profile(recordings, mode, window)
    if not profile.stacks:
        raise modes.nothing(recordings, mode)
    if path:
        _profile.save(profile, path, _profile.title_of(recordings))
    else:
        _profile.show_table(_profile.top(profile))
    return 0


def _join(recordings: list[str], path: str, given: dict[str, str]) -> int:
    """Copies recordings, once they are known to be whole."""
    from vmscope.flight.convert import recording

    if given:
        raise _profile.wrong("convert", f"cannot pick a part of a recording: {next(iter(given))} needs another format")
    for each in recordings:
        if os.path.exists(path) and os.path.samefile(each, path):
            raise _profile.wrong("convert", f"cannot write to {path!r}, which it reads")
        for _ in recording.chunks(each):
            pass
    output.join(recordings, path)
    _profile.written(path, f"{os.path.getsize(path)} bytes")
    return 0
