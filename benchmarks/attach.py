"""The attach listener: how fast it answers, and what it costs while nobody asks."""

from __future__ import annotations

import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from benchmarks.measure import Figure, Outcome, Row, Sample, Series, call, in_turns, process
from benchmarks.world import vmscope_command
from tests.support import Child

LOOPS = 20
IDLE_SECONDS = 10
REQUEST = b"1\0jcmd\0VM.version\0\0\0"
IDLE = "import sys; print('ready', flush=True); sys.stdin.read()"
BUSY = "print('ready', flush=True)\nwhile True: pass"
FORKING = """
import os
print('ready', flush=True)
while True:
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
"""


def figures(rounds: int) -> Iterator[Row]:
    jattach = shutil.which("jattach")
    if jattach is None:
        raise RuntimeError("benchmarks need jattach: apt-get install jattach")
    yield from _round_trips(jattach, rounds)
    yield from _memory(rounds)
    yield _wake_ups()


def _start(stack: ExitStack, code: str, *options: str) -> Child:
    child: Child = stack.enter_context(Child(vmscope_command("run", *options, "-c", code)))
    child.read_until(b"ready\n")
    return child


def _round_trip(pid: int) -> bytes:
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(f"/tmp/.java_pid{pid}")
        client.sendall(REQUEST)
        answer = b""
        while part := client.recv(65536):
            answer += part
    return answer


def _asking(pid: int) -> Callable[[], Sample]:
    if not _round_trip(pid).startswith(b"0\nCPython"):
        raise RuntimeError(f"process {pid} does not answer")
    return call(lambda: _round_trip(pid), LOOPS)


def _round_trips(jattach: str, rounds: int) -> Iterator[Figure]:
    with ExitStack() as stack:
        idle, busy, forking = (_start(stack, code).pid for code in (IDLE, BUSY, FORKING))
        found = in_turns(
            {
                "jattach": process([jattach, str(idle), "jcmd", "VM.version"]),
                "idle": _asking(idle),
                "busy": _asking(busy),
                "forking": _asking(forking),
            },
            rounds,
        )
    yield Figure("a round trip, VM.version of an idle process, to jattach's run", found["idle"], found["jattach"], 0.3)
    yield Figure("the same of one that computes", found["busy"], found["jattach"], None)
    yield Figure("the same of one that forks all the time", found["forking"], found["jattach"], None)


def _memory(rounds: int) -> Iterator[Figure]:
    unasked, asked = Series("unasked", "B"), Series("asked", "B")
    for _ in range(rounds):
        with ExitStack() as stack:
            having, without = _start(stack, IDLE), _start(stack, IDLE, "-XX:+DisableAttachMechanism")
            time.sleep(0.5)  # until the first sample was taken
            before = _own_memory(without.pid)
            unasked.values.append(_own_memory(having.pid) - before)
            _round_trip(having.pid)
            time.sleep(0.1)
            asked.values.append(_own_memory(having.pid) - before)
    yield Figure("memory of the listener, idle", unasked, None, 150e3, 0.5)
    yield Figure("the same after its first command, with the code for that", asked, None, None, 0.5)


def _own_memory(pid: int) -> float:
    """Bytes that no other process shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024.0 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _wake_ups() -> Outcome:
    """Those of its two threads; without a region there are no others."""
    with ExitStack() as stack:
        child = _start(stack, IDLE, "-XX:+PerfDisableSharedMem", "-XX:PerfDataSamplingInterval=0")
        _round_trip(child.pid)
        time.sleep(0.5)
        threads = [task for task in Path(f"/proc/{child.pid}/task").iterdir() if task.name != str(child.pid)]
        before = sum(map(_switches, threads))
        time.sleep(IDLE_SECONDS)
        count = sum(map(_switches, threads)) - before
    told = f"{count} wake-ups of {len(threads)} threads"
    return Outcome(f"the listener, idle for {IDLE_SECONDS} s", {"vmscope": told}, count == 0 and len(threads) == 2)


def _switches(task: Path) -> int:
    return sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text())))
