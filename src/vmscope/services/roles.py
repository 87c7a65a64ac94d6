"""The roles of processes: masters and their workers, reloaders, and what multiprocessing starts.

A worker is a fork of its master, which shows in /proc: it has the command line and the stack of its parent. What is
started anew with the same program and arguments is the worker of a reloader, as Django and Flask have one. The
processes of multiprocessing say what they are on their command line.
"""

from __future__ import annotations

from vmscope.errors import VMScopeError
from vmscope.reader.machine import CPYTHON
from vmscope.reader.process import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from vmscope.reader.machine import VM

    class Known(Protocol):
        """A VM and its process, as far as they are known."""

        pid: int
        ppid: int | None
        kind: str
        main: str
        command_line: str  # the program and its arguments
        started_as: str  # the interpreter and all that follows it
        stack_start: int  # which a fork keeps and exec changes


MASTER, WORKER, RELOADER = "master", "worker", "reloader"
SPAWNED, FORKSERVER, TRACKER = "spawned worker", "forkserver", "resource tracker"

ROLES = (  # and what each is
    (MASTER, "forked its workers, or had multiprocessing start them"),
    (WORKER, "a fork of its master, or what a reloader has started"),
    (RELOADER, "starts its worker anew when a file changes"),
    (SPAWNED, "multiprocessing's, by the method spawn"),
    (FORKSERVER, "multiprocessing's, which forks workers for the master"),
    (TRACKER, "multiprocessing's, which cleans up behind them all"),
)
# What stands on the command lines of processes that multiprocessing starts.
_HELPERS = (
    ("--multiprocessing-fork", SPAWNED),  # the method spawn, in bundles too
    ("from multiprocessing.forkserver import main", FORKSERVER),
    ("from multiprocessing.resource_tracker import main", TRACKER),
)
_DEEPEST = 64  # generations between a VM and the next one above it


class Seen:
    """A live VM and its process, at one look. Raises VMScopeError where it cannot be read, or has ended."""

    __slots__ = ("command_line", "kind", "main", "pid", "ppid", "stack_start", "started_as")

    def __init__(self, vm: VM) -> None:
        found = process(vm.pid or 0)
        self.pid, self.stack_start = found.pid, found.stack_start
        self.ppid: int | None = found.ppid
        self.kind, self.main = vm.kind, vm.main
        self.command_line, self.started_as = vm.command_line, vm.started_as


class Member:
    """A VM in its service.

    `parent` is the pid of the nearest VM above it, `depth` how many there are above, `master` the pid of the VM that it
    works for; None where there is none.
    `service` is the name of the service's first process, `role` one of the above, or "" for a program by itself.
    """

    __slots__ = ("depth", "master", "parent", "role", "service")

    def __init__(self, service: str, role: str = "", master: int | None = None) -> None:
        self.service = service
        self.role = role
        self.master = master
        self.parent: int | None = None
        self.depth = 0

    @property
    def name(self) -> str:
        """`shop`, or `shop: worker`."""
        return self.service if self.role in ("", MASTER) else f"{self.service}: {self.role}"

    @property
    def label(self) -> str:
        """The same with whom it works for: `shop: worker of 4711`."""
        return self.name if self.master is None else f"{self.name} of {self.master}"


def members(vms: Iterable[Known]) -> dict[int, Member]:
    """What each of these VMs is to the others, by pid."""
    seen = {each.pid: each for each in vms}
    found: dict[int, Member] = {}
    parents = {pid: each.ppid for pid, each in seen.items()}
    for pid in seen:
        line = [pid]  # from it up to one that is known, or has no VM above it
        while line[-1] not in found and (above := _above(line[-1], seen, parents)) is not None and above not in line:
            line.append(above)
        for position in range(len(line) - 1, -1, -1):
            if line[position] not in found:
                parent = line[position + 1] if position + 1 < len(line) else None
                made = found[line[position]] = _member(seen[line[position]], parent, seen, found)
                made.parent = parent
                made.depth = 0 if parent is None else found[parent].depth + 1
    return {pid: found[pid] for pid in seen}


def _above(pid: int, seen: dict[int, Known], parents: dict[int, int | None]) -> int | None:
    """The nearest VM among its ancestors."""
    for _ in range(_DEEPEST):
        if pid not in parents:
            parents[pid] = _parent(pid)
        parent = parents[pid]
        if parent is None or parent in seen:
            return parent
        pid = parent
    return None


def _parent(pid: int) -> int | None:
    try:
        return process(pid).ppid or None
    except VMScopeError:  # it has ended, or is hidden from us
        return None


def _member(each: Known, parent: int | None, seen: dict[int, Known], found: dict[int, Member]) -> Member:
    role = "" if parent is None else _role(each, seen[parent])
    if parent is None or not role:
        return Member(each.main)
    above, master, first = seen[parent], parent, found[parent]
    if first.role == FORKSERVER and first.master is not None:  # which forks for another one
        master = first.master
    chief = found[master]
    if not chief.role:
        chief.role = MASTER if role != WORKER or _is_fork(each, above) else RELOADER
    return Member(first.service, role, master)


def _role(each: Known, above: Known) -> str:
    """What it is to the VM above it; "" for a program of its own."""
    if each.kind != CPYTHON or above.kind != CPYTHON:
        return ""
    if _is_fork(each, above):
        return WORKER
    helper = next((role for text, role in _HELPERS if text in each.started_as), "")
    return helper or (WORKER if each.command_line == above.command_line else "")


def _is_fork(each: Known, above: Known) -> bool:
    """It runs what its parent was started as. Where stacks are hidden, the command line alone has to tell."""
    return each.started_as == above.started_as and each.stack_start == above.stack_start and each.ppid == above.pid
