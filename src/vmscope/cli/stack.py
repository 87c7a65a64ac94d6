"""`vmscope stack`: the stacks of a Python process that was not prepared."""

from __future__ import annotations

from vmscope import terminal
from vmscope.cli import _options, _table
from vmscope.errors import CommandLineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.interpreters import Thread

HELP = """\
usage: vmscope stack [--locals] [--json] PID

Shows what each thread of a CPython process executes, 3.11 to 3.15. The process
need not run vmscope: its memory is read from outside, and it is neither stopped
nor asked. You need the right to trace it: it is yours, or you are root.

  --locals         also the variables of each frame, in a few words each
  --json           one JSON object instead of the text

The main thread comes first, then the others, the oldest first; of each the
innermost frame comes first. A thread is running where the kernel says so, else
idle. What it shows of different threads is not of the same moment. A thread of
vmscope's own, or of C alone, has no frames.

example:
$ vmscope stack 4711
4711: CPython 3.13.0, 2 threads: python shop.py

"MainThread" 4711: running, has the GIL
    price (/srv/shop/shop.py:41)
    total (/srv/shop/shop.py:57)
    <module> (/srv/shop/shop.py:80)

"stock" 4713: idle
    Stock.refresh (/srv/shop/stock.py:12)
    Thread.run (/usr/lib/python3.13/threading.py:992)
    Thread._bootstrap_inner (/usr/lib/python3.13/threading.py:1041)
    Thread._bootstrap (/usr/lib/python3.13/threading.py:1012)
"""

_STATES = {
    "R": "running",
    "D": "in the kernel, which cannot be interrupted",
    "T": "stopped",
    "t": "stopped by a debugger",
}


def main(args: list[str]) -> int:
    """Shows the stacks. 0, or 1 when they cannot be read."""
    options, words = _options.parse("stack", args, {"--locals": None, "--json": None})
    if len(words) != 1 or not _options.is_pid(words[0]) or not int(words[0]):
        raise CommandLineError("stack takes one pid", hint="vmscope stack --help shows how")
    from vmscope.interpreters.stacks import in_time

    pid = int(words[0])
    version, threads, statistics = in_time(pid, lambda: _read(pid, "--locals" in options))
    if "--json" in options:
        terminal.OUT.show(_json(pid, version, threads, statistics))
    else:
        terminal.OUT.show(_text(pid, version, threads))
    return 0


def _read(pid: int, local_variables: bool) -> tuple[str, list[Thread], dict[str, int]]:
    from vmscope.interpreters import Stacks

    with Stacks(pid) as stacks:
        return stacks.version, stacks.take(local_variables=local_variables), stacks.statistics


def _text(pid: int, version: str, threads: list[Thread]) -> str:
    from vmscope.interpreters.stacks import program_of

    count = f"{len(threads)} thread{'s' * (len(threads) != 1)}"
    parts = [f"{pid}: CPython {version}, {count}: {terminal.printable(program_of(pid))}\n"]
    for thread in threads:
        state = _STATES.get(thread.state, "idle")
        gil = ", has the GIL" if thread.gil else ""
        parts.append(f'\n"{terminal.printable(thread.name)}" {thread.native_id}: {state}{gil}\n')
        for frame in thread.frames:
            place = terminal.printable(f"{frame.function} ({frame.file}:{frame.line})")
            parts.append(f"    {place}\n")
            parts += [f"        {terminal.printable(f'{name} = {value}')}\n" for name, value in frame.locals or ()]
        if thread.cut:
            parts.append("    ...\n")
        if thread.lost:
            parts.append("    <no stack: it changed whenever it was read>\n")
    return "".join(parts)


def _json(pid: int, version: str, threads: list[Thread], statistics: dict[str, int]) -> str:
    rows = []
    for thread in threads:
        row = thread._asdict()
        row["frames"] = [
            {
                "function": frame.function,
                "file": frame.file,
                "line": frame.line,
                **({} if frame.locals is None else {"locals": {each.name: each.value for each in frame.locals}}),
            }
            for frame in thread.frames
        ]
        rows.append(row)
    return _table.as_json({"pid": pid, "version": version, "threads": rows, "statistics": statistics})
