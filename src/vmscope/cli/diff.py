"""`vmscope diff`: what has changed between two flight recordings."""

from __future__ import annotations

from vmscope.cli import _options, _profile
from vmscope.flight.convert import flame_graph, modes, output

HELP = """\
usage: vmscope diff [OPTION ...] BEFORE.jfr AFTER.jfr [-o FILE.html]

Shows which functions have changed most between two flight recordings, by their
shares: each recording is 100 %, however long it is. Changes are in points.

  -o FILE.html      a flame graph too: what has grown is red, what has shrunk
                    blue; its widths are those after, or before
  --mode=cpu        what is compared: cpu, wall, gil, alloc, lock or exception
  --thread=PATTERN  only threads whose names are like this: 'worker-*'

example:
$ vmscope diff monday.jfr tuesday.jfr -o change.html
cpu: 129 samples of 3 threads in 4.0 s
cpu: 158 samples of 3 threads in 4.2 s

CHANGE  BEFORE  AFTER  TOTAL CHANGE  FUNCTION
 -57.4   57.4%   0.0%         -57.4  java.util.Arrays.copyOf
 +42.4   20.9%  63.3%         -14.4  java.util.ArrayList.grow
 +17.0   17.8%  34.8%         +17.0  Shop.price

change.html: 129 samples before, 158 samples after
"""

_TAKES: dict[str, str | None] = {"-o": "", "--output": "", "--mode": "", "--thread": ""}


def main(args: list[str]) -> int:
    """Shows the table, and writes the page. 0, or 1 where a recording cannot be read or has no such events."""
    given, words = _options.parse("diff", args, _TAKES)
    if len(words) != 2:
        raise _profile.wrong("diff", "needs two recordings")
    mode, window = _profile.mode_of("diff", given), _profile.window_of("diff", given)
    path = given.get("-o") or given.get("--output", "")
    if path:
        _profile.check_output("diff", path, output.HTML)
    before, after = (modes.profile([word], mode, window) for word in words)
    for word, profile in zip(words, (before, after), strict=True):
        if not profile.stacks:
            raise modes.nothing([word], mode)
    heads = f"{output.summary(before)}\n{output.summary(after)}\n\n"
    _profile.show_table(heads + _profile.changes(before, after))
    if path:
        amounts = [output.amount(profile.total, profile.unit) for profile in (before, after)]
        about = f"{amounts[0]} before, {amounts[1]} after"
        title = " to ".join(_profile.title_of([word]) for word in words)
        with open(path, "wb") as file:
            file.write(flame_graph.difference(before, after, title, f"{mode}: {about}; red has grown, blue has shrunk"))
        _profile.show("\n")
        _profile.written(path, about)
    return 0
