"""`vmscope profile`: records what a VM does for a while, and shows or writes what that makes."""

from __future__ import annotations

import os
import sys

from vmscope import terminal
from vmscope.cli import _options, _profile
from vmscope.cli._signals import Signals
from vmscope.errors import NoSuchProcess, NotAttachable, VMScopeError
from vmscope.flight.convert import modes, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from vmscope.attach.recording import RemoteRecording
    from vmscope.flight.convert.profile import Profile

    Each = TypeVar("Each")
    Made = TypeVar("Made")

HELP = f"""\
usage: vmscope profile [OPTION ...] PID|NAME
       vmscope profile [OPTION ...] --service=NAME
       vmscope profile [OPTION ...] -- SCRIPT.py | -m MODULE [ARGUMENT ...]

Records what a Python or Java VM does, and shows the functions with the largest
shares, or writes a file. NAME is part of a program's name; where several VMs
have it, as with all workers of a service, they are added up. Behind -- stands a
program that is started, as by vmscope run, and recorded until it ends.

  --duration=30s    how long; Ctrl-C ends it before, and keeps what there is
  --mode=cpu        what is shown:
{_profile.MODE_HELP}
  --thread=PATTERN  only threads whose names are like this: 'worker-*'
  -o FILE           a flame graph (.html), or .collapsed, .speedscope.json,
                    .pb.gz, .jfr: see vmscope convert --help

The VM records by its own flight recorder, with the settings called profile, in
a recording of its own, of which nothing is left there. A CPython that does not
run vmscope is sampled from outside: cpu, wall and gil, and no .jfr.

example:
$ vmscope profile --duration=10s 4711
cpu: 487 samples of 2 threads in 10.0 s

       SELF  SELF%  TOTAL%  FUNCTION
290 samples  59.5%   98.9%  java.util.ArrayList.grow
193 samples  39.6%   39.6%  Shop.price
$ vmscope profile --duration=10s --mode=alloc -o shop.html 4711
shop.html: alloc: 17.1 GiB of 2 threads in 10.0 s
"""

_TAKES: dict[str, str | None] = {
    "--duration": "", "--mode": "", "--thread": "", "--service": "", "-o": "", "--output": "",
}  # fmt: skip
# What the settings called profile leave out. A VM that has no such event says so, and goes on.
_SETTINGS = {
    "cpu": ("jdk.CPUTimeSample#enabled=true",),
    "wall": ("vmscope.WaitSample#enabled=true",),
    "gil": ("vmscope.GILWait#enabled=true",),
    "alloc": (),
    "lock": ("jdk.JavaMonitorEnter#threshold=1ms", "jdk.ThreadPark#threshold=1ms", "vmscope.GILWait#enabled=true"),
    "exception": ("jdk.JavaExceptionThrow#enabled=true",),
}
_TICK = 0.5  # seconds between two looks


def main(args: list[str]) -> int:
    """Records, then shows or writes. 0; 1 where that cannot be done; the program's status where one was started."""
    import tempfile

    position = args.index("--") if "--" in args else len(args)
    program = args[position + 1 :]
    given, words = _options.parse("profile", args[:position], _TAKES)
    mode, window = _profile.mode_of("profile", given), _profile.window_of("profile", given)
    path = given.get("-o") or given.get("--output", "")
    if path:
        _profile.check_output("profile", path, *output.ENDINGS)
    if len(words) + ("--service" in given) + (position < len(args)) != 1 or (position < len(args) and not program):
        raise _profile.wrong("profile", "needs one of a pid, a program's name, --service=NAME and -- PROGRAM")
    seconds = _options.seconds("profile", given.get("--duration", "30s"))
    status = 0
    with tempfile.TemporaryDirectory(prefix="vmscope-profile-") as folder:
        if program:
            if "--duration" in given:
                raise _profile.wrong("profile", "takes no --duration where it starts a program")
            status, recordings = _run(program, mode, folder)
        else:
            pids = _service(given["--service"]) if "--service" in given else _pids(words[0])
            try:
                recordings, (window.begin, window.end) = _record(pids, mode, seconds, folder)
            except NotAttachable as error:
                if len(pids) != 1 or output.ending(path) == output.RECORDING:
                    raise
                _give_profile(_from_outside(pids[0], mode, seconds, window, error), mode, path, words[0])
                return 0
        _give(recordings, mode, window, path, program[0] if program else (words or [given.get("--service", "")])[0])
    return status


def _give(recordings: list[str], mode: str, window: modes.Window, path: str, name: str) -> None:
    """Shows or writes it."""
    if output.ending(path) == output.RECORDING:
        output.join(recordings, path)
        _profile.written(path, f"{os.path.getsize(path)} bytes")
        return
    _give_profile(modes.profile(recordings, mode, window), mode, path, name)


def _from_outside(pid: int, mode: str, seconds: float, window: modes.Window, refusal: NotAttachable) -> Profile:
    """Of a process that does not run vmscope. Raises the refusal where it is not a CPython that can be read."""
    from vmscope.cli import _unprepared
    from vmscope.errors import NotReadable

    try:
        return _unprepared.profile(pid, mode, seconds, window)
    except NotReadable as error:
        raise refusal from error


def _give_profile(profile: Profile, mode: str, path: str, name: str) -> None:
    if path and profile.stacks:
        _profile.save(profile, path, f"{os.path.basename(name)}, {mode}")
    elif profile.stacks:
        _profile.show_table(_profile.top(profile))
    else:
        raise VMScopeError(
            f"{name} did nothing in that time that a profile of the mode {mode} shows",
            hint="--duration=60s looks for longer; --mode=wall shows where its threads wait",
        )


# -- of a running VM ------------------------------------------------------------------------------


def _pids(word: str) -> list[int]:
    if _options.is_pid(word) and int(word):
        return [int(word)]
    from vmscope.cli import _targets

    return _targets.attachable("profile", word)


def _service(name: str) -> list[int]:
    """All processes of a service. NoSuchProcess."""
    from vmscope.cli import _targets

    pids = _targets.of_service(name)
    if not pids:
        raise NoSuchProcess(f"no service is called {name!r}", hint="vmscope ps --tree lists them")
    return pids


def _record(pids: Sequence[int], mode: str, seconds: float, folder: str) -> tuple[list[str], tuple[int, int]]:
    """The recordings of these VMs, and the time that is meant, in nanoseconds since 1970.

    A VM that is slow to answer records for longer. Raises an error of one of them where there is no recording.
    """
    from time import time_ns

    from vmscope.attach.recording import RemoteRecording

    running: list[RemoteRecording] = []

    def start(pid: int) -> None:
        recording = RemoteRecording(pid)
        running.append(recording)  # at once: what has begun is stopped, whatever its answer is
        recording.start(*_SETTINGS[mode])
        started.append(recording)

    def dump(recording: RemoteRecording) -> str:
        path = os.path.join(folder, f"{recording.pid}.jfr")
        recording.dump(path)
        return path

    started: list[RemoteRecording] = []
    with Signals() as signals:
        try:
            _, failures = _at_once(start, pids)
            begin = time_ns()
            if started:
                _wait(signals, seconds, started)
            end = time_ns()
            made, more = _at_once(dump, started)
        finally:
            _at_once(RemoteRecording.close, running)
    failures += more
    for error in failures if made else failures[:-1]:
        terminal.complain(error)
    if not made:
        raise failures[-1]
    return made, (begin, end)


def _at_once(do: Callable[[Each], Made], what: Sequence[Each]) -> tuple[list[Made], list[VMScopeError]]:
    """Has several VMs asked at once, as each may take its time; what came of it, and what went wrong."""
    from concurrent.futures import ThreadPoolExecutor

    made, failures = [], []
    with ThreadPoolExecutor(max(1, len(what))) as pool:
        for future in [pool.submit(do, each) for each in what]:
            try:
                made.append(future.result())
            except VMScopeError as error:
                failures.append(error)
    return made, failures


def _wait(signals: Signals, seconds: float, running: Sequence[RemoteRecording]) -> None:
    """Until the time is over, a signal comes or all have ended; a terminal is shown how far that is."""
    from time import monotonic

    shown = terminal.ERR.isatty()
    what = f"process {running[0].pid}" if len(running) == 1 else f"{len(running)} processes"
    begin = monotonic()
    while (left := seconds - (monotonic() - begin)) > 0:
        if shown:
            terminal.ERR.put(f"\r\x1b[Krecording {what}: {seconds - left:.0f} of {seconds:g} s; Ctrl-C ends it now")
        if signals.wait(min(left, _TICK)) or not any(each.alive for each in running):
            break
    if shown:
        terminal.ERR.put("\r\x1b[K")


# -- of a program that is started -----------------------------------------------------------------


def _run(program: list[str], mode: str, folder: str) -> tuple[int, list[str]]:
    """Runs it to its end; its status, and its recording. Ctrl-C is the program's."""
    import subprocess

    path = os.path.join(folder, "program.jfr")
    options = ",".join([f"filename={path}", "settings=profile", "dumponexit=true", *_SETTINGS[mode]])
    command = [sys.executable, "-m", "vmscope", "run", f"-XX:StartFlightRecording={options}", *program]
    with Signals():
        status = subprocess.run(command, check=False).returncode
    if not os.path.exists(path):
        raise VMScopeError(
            f"{program[0]} has left no recording: its exit status is {status}",
            hint="a program that is killed, or that does not start, writes none",
        )
    return (status if status >= 0 else 128 - status), [path]
