"""`ps`, `stat` and `counters` of a hundred VMs that were made to hold readers up, to those of as many honest ones."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.measure import Figure, Sample, Series, in_turns, output, process
from benchmarks.world import fleet, vmscope_command
from tests import attackers
from tests.attackers import KINDS

SIZE = 100
NUMBERS = 170
RARE = (attackers.dense, attackers.restless)  # once each: for the memory and the processor that they take themselves

HONEST, HOSTILE = "root", "attacker"  # whose directories are there, under their names or under others


def figures(rounds: int) -> Iterator[Figure]:
    with fleet(SIZE, NUMBERS) as vms, _hostile_vms() as hostile:
        honest = [vm.pid for vm in vms if vm.pid]
        with _stopped(honest):
            yield from _compared(rounds, honest, hostile)


def _compared(rounds: int, honest: list[int], hostile: list[int]) -> Iterator[Figure]:
    _check(HONEST, honest)
    _check(HOSTILE, hostile)
    ps = _measure(rounds, [["ps"]], [["ps"]])
    yield Figure(f"`ps` of {SIZE} hostile VMs, to {SIZE} honest ones", *ps, 2.0)
    for tool in ("stat", "counters"):
        each = [[tool, str(pid)] for pid in hostile[: len(KINDS)]]
        found = _measure(rounds, each, [[tool, str(pid)] for pid in honest[: len(KINDS)]])
        yield Figure(f"`{tool}` of {len(KINDS)} kinds of them, to as many honest ones", *found, 2.0)


@contextmanager
def _stopped(pids: list[int]) -> Iterator[None]:
    """They would notice that their directory has been moved, and publish anew."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def _hostile_vms() -> Iterator[list[int]]:
    """Their pids: one of each kind, and then more of most kinds."""
    uid = attackers.ATTACKER if os.geteuid() == 0 and _may_become(attackers.ATTACKER) else os.getuid()
    common = [kind for kind in KINDS if kind not in RARE]
    kinds = [*KINDS, *(common[number % len(common)] for number in range(SIZE - len(KINDS)))]
    with ExitStack() as stack:
        pids = []
        for kind in kinds:
            pid = attackers.process_of(uid, kind)
            stack.callback(os.waitpid, pid, 0)
            stack.callback(os.kill, pid, signal.SIGKILL)
            pids.append(pid)
        yield pids


def _may_become(uid: int) -> bool:
    """Not in a user namespace that has one user."""
    with open("/proc/self/uid_map") as file:
        return any(int(first) <= uid < int(first) + int(count) for first, _, count in map(str.split, file))


def _show(whose: str) -> None:
    """Puts these VMs' directory in its place, and the others' aside."""
    for user in (HONEST, HOSTILE):
        place, aside = f"/tmp/hsperfdata_{user}", f"/tmp/aside_{user}"
        there, wanted = (aside, place) if user == whose else (place, aside)
        if os.path.exists(there):
            os.rename(there, wanted)


def _check(whose: str, pids: list[int]) -> None:
    _show(whose)
    shown = {line.split()[0] for line in output(vmscope_command("ps")).splitlines()}
    if {str(pid) for pid in pids} != shown - {"PID"}:
        raise RuntimeError(f"ps does not show each VM of {whose}'s")


def _measure(rounds: int, hostile: list[list[str]], honest: list[list[str]]) -> tuple[Series, Series]:
    found = in_turns({"hostile": _case(HOSTILE, hostile), "honest": _case(HONEST, honest)}, rounds)
    return found["hostile"], found["honest"]


def _case(whose: str, commands: list[list[str]]) -> Callable[[], Sample]:
    """Runs these tools one after the other; they may say what is wrong with a VM."""
    cases = [process(vmscope_command(*command), may_fail=True) for command in commands]

    def case() -> Sample:
        _show(whose)
        samples = [case() for case in cases]
        return sum(wall for wall, _ in samples), sum(cpu for _, cpu in samples)

    return case
