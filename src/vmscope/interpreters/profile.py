"""A profile of a process that was not prepared: its stacks, sampled from outside."""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread
from time import monotonic
from typing import NamedTuple

from vmscope.errors import CommandLineError, ReadTimeout
from vmscope.interpreters.stacks import PATIENCE, Stacks, in_time, said, task_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SECOND = 1_000_000_000
_SLICE = 0.2  # seconds: a signal that comes just before a wait begins does not interrupt it
SHORTEST = 0.0001  # seconds between two samples


class Sampled(NamedTuple):
    """One stack of one thread, in one state, and in how many samples it was met. Frames are (function, file, line), the
    innermost first.
    """

    thread: int  # its place among the profile's
    gil: bool
    running: bool
    samples: int
    frames: tuple[tuple[str, str, int], ...]


class SampledThread(NamedTuple):
    native_id: int
    ident: int
    name: str


class Profile(NamedTuple):
    """`period` is what each sample stands for, in seconds. `end`: why it ended: "time", "process" where that ended,
    "stop" where it was stopped, "torn" where it could no longer be read. `statistics`: rounds, reads, torn, lost, late.
    """

    pid: int
    version: str
    period: float
    end: str
    threads: list[SampledThread]
    stacks: list[Sampled]
    statistics: dict[str, int]


def profile_unprepared(
    pid: int, duration: float, period: float, *, started: Callable[[], object] | None = None
) -> Profile:
    """Samples the stacks of a CPython process of 3.11 to 3.15 from outside, for `duration` seconds, each `period`.

    Ctrl-C ends it, and what there is, is kept. `started` is called when it begins. Raises NoSuchProcess, AccessDenied,
    ReadTimeout, and NotReadable with the reason.
    """
    if not SHORTEST <= period <= duration:
        raise CommandLineError(f"a profile's period is {SHORTEST:g} s or more, and not more than its duration")
    stacks = in_time(pid, lambda: Stacks(pid))
    try:
        names = in_time(pid, lambda: _names(stacks))
        threads, rows, statistics = _run(stacks, round(duration * _SECOND), round(period * _SECOND), started)
        if statistics["end"] != "process":
            names |= in_time(pid, lambda: _names(stacks))
    finally:
        stacks.close()
    return Profile(
        pid,
        stacks.version,
        period,
        str(statistics.pop("end")),
        [
            SampledThread(native_id, ident, names.get(ident) or task_name(pid, native_id) or str(native_id))
            for native_id, ident in threads
        ],
        _merged(rows),
        {name: int(value) for name, value in statistics.items()},
    )


def _names(stacks: Stacks) -> dict[int, str]:
    return {thread.ident: thread.name for thread in stacks.take()}


def _merged(rows: _Rows) -> list[Sampled]:
    """Instructions of the same line as one."""
    counts: dict[tuple[int, bool, bool, tuple[tuple[str, str, int], ...]], int] = {}
    for thread, gil, running, count, frames in rows:
        key = (thread, gil, running, frames)
        counts[key] = counts.get(key, 0) + count
    return [Sampled(thread, gil, running, count, frames) for (thread, gil, running, frames), count in counts.items()]


_Rows = list[tuple[int, bool, bool, int, tuple[tuple[str, str, int], ...]]]


def _run(
    stacks: Stacks, duration: int, period: int, started: Callable[[], object] | None
) -> tuple[list[tuple[int, int]], _Rows, dict[str, int | str]]:
    """On a thread of its own, so that Ctrl-C is heard whatever the kernel waits for."""
    done = allocate_lock()
    done.acquire()
    results = []
    errors: list[BaseException] = []
    stop, stopper = os.pipe2(os.O_CLOEXEC)

    def run() -> None:
        try:
            results.append(said(stacks.pid, lambda: stacks.reader.profile(duration, period, stop)))
        except BaseException as error:
            errors.append(error)
        done.release()

    start_new_thread(run, ())
    ended = False
    try:
        if started is not None:
            started()
        deadline = monotonic() + duration / _SECOND + PATIENCE
        while not (ended := done.acquire(timeout=_SLICE)) and monotonic() < deadline:
            pass
    except KeyboardInterrupt:
        os.write(stopper, b"x")
        ended = done.acquire(timeout=PATIENCE)
    if not ended:  # the descriptors stay, as it may still look at them
        raise ReadTimeout(
            f"process {stacks.pid} could no longer be read",
            pid=stacks.pid,
            hint="part of its memory is of a file system, or of a program, that does not answer",
        )
    os.close(stop)
    os.close(stopper)
    if errors:
        raise errors[0]
    return results[0]
