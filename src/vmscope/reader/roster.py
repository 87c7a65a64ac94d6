"""The live VMs of this host, looked at again and again: what is new is opened, what has ended is closed."""

from __future__ import annotations

import os
import sys
import time

from vmscope import reader
from vmscope.errors import AccessDenied, VMScopeError
from vmscope.reader.attachment import open_candidate
from vmscope.reader.discovery import TMP, Candidate, every, folders, identity
from vmscope.reader.machine import VM
from vmscope.reader.ownership import LIVE, FileLocks
from vmscope.reader.process import exists

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select
    from collections.abc import Callable

    from vmscope.reader.ownership import Owner

EVERY = 5.0  # seconds after which VMs are looked for though no directory has changed: those of new containers


class Roster:
    """`vms` by pid, and `changes`, which counts how often that is another set. Close it after use.

    What `holds` says so of is not closed when it leaves the set, but put into `gone`, for who takes it out there.
    `keeps_descriptors`: not so on a thread that has a table of its own, with which they go.
    """

    def __init__(self, tmp: str = TMP, *, keeps_descriptors: bool = True) -> None:
        self.vms: dict[int, VM] = {}
        self.changes = 0
        self.gone: list[VM] = []
        self.holds: Callable[[VM], bool] = lambda vm: False
        self._tmp = tmp
        self._exits = _ExitWatch(keeps_descriptors)
        self._times: dict[str, int] = {}
        self._due = 0.0

    def refresh(self) -> bool:
        """Looks again. Whether the VMs are others than before."""
        before = self.changes
        for pid in self._exits.ended():
            self.remove(pid)
        now = time.monotonic()
        if now >= self._due or _times(self._tmp) != self._times:
            # The times first: what comes after them is found the next time, whether or not it is found now.
            self._times = _times(self._tmp)
            self._due = now + EVERY
            self._discover()
        return self.changes != before

    def remove(self, pid: int) -> None:
        """Forgets a VM: it has ended, or cannot be read."""
        vm = self.vms.pop(pid, None)
        if vm is not None:
            if self.holds(vm):
                self.gone.append(vm)
            else:
                vm.close()
            self._exits.forget(pid)
            self.changes += 1

    def close(self) -> None:
        self.holds = lambda vm: False
        for pid in list(self.vms):
            self.remove(pid)

    def _discover(self) -> None:
        locks = FileLocks()
        known = {vm.path: pid for pid, vm in self.vms.items()}
        seen: set[int] = set()
        for candidate in every(self._tmp):
            pid = known.get(candidate.path)
            if pid is not None and self._is_same(pid, candidate, locks):
                seen.add(pid)
                continue
            found = _open(candidate, locks)
            if found is None:
                continue
            rival = self.vms.get(found.pid or 0)
            if found.pid in seen or (rival is not None and rival.path != found.path and rival.alive):
                found.close()  # of two files that claim one process, the one that was here first
                continue
            self.remove(found.pid or 0)
            self._add(found)
            seen.add(found.pid or 0)
        for pid in set(self.vms) - seen:
            self.remove(pid)

    def _add(self, found: VM) -> None:
        pid = found.pid or 0
        self.vms[pid] = found
        self._exits.watch(pid)
        self.changes += 1

    def _is_same(self, pid: int, candidate: Candidate, locks: FileLocks) -> bool:
        """Whether the file that is there is the one that is open, and its writer lives."""
        vm = self.vms.get(pid)
        if vm is None or not candidate.runs:
            return False
        try:
            return identity(candidate) == vm.file and vm.examine(locks).state == LIVE
        except VMScopeError:
            return False


def _open(candidate: Candidate, locks: FileLocks) -> VM | None:
    """The VM of a candidate; None where there is no live one that can be read."""
    if not reader.may_live(candidate, locks):
        return None
    try:
        found = VM(open_candidate(candidate))
    except VMScopeError:
        return None
    owner: Owner | None
    try:
        owner = reader.owner_of(found, locks)
    except VMScopeError:
        owner = None
    if owner is None or owner.state != LIVE:
        found.close()
        return None
    return found


def _times(tmp: str) -> dict[str, int]:
    """When each directory of regions in the tmp directory was changed."""
    return {path: os.fstat(folder).st_mtime_ns for _, path, folder in folders(tmp)}


class _ExitWatch:
    """Tells which processes have ended, all at once: by a descriptor of each, as a pid is given again."""

    def __init__(self, keeps_descriptors: bool) -> None:
        self._descriptors: dict[int, int] = {}
        self._pids: dict[int, int] = {}
        self._others: set[int] = set()  # pids that have no descriptor
        self._poll: select.poll | select.epoll | None = None
        if sys.platform == "linux":
            import select

            # An epoll object closes its descriptor when it goes, whatever has that number then.
            self._poll = select.epoll() if keeps_descriptors else select.poll()

    def watch(self, pid: int) -> None:
        if self._poll is None or sys.platform != "linux":
            self._others.add(pid)
            return
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:  # an old kernel, or no descriptor left
            self._others.add(pid)
            return
        try:
            self._poll.register(descriptor, 1)  # POLLIN, EPOLLIN
        except OSError:  # no more may be watched by this user
            os.close(descriptor)
            self._others.add(pid)
            return
        self._descriptors[pid] = descriptor
        self._pids[descriptor] = pid

    def forget(self, pid: int) -> None:
        self._others.discard(pid)
        descriptor = self._descriptors.pop(pid, None)
        if descriptor is not None and self._poll is not None:
            self._poll.unregister(descriptor)
            del self._pids[descriptor]
            os.close(descriptor)

    def ended(self) -> list[int]:
        """Those that have ended."""
        found = [self._pids[descriptor] for descriptor, _ in self._poll.poll(0)] if self._poll is not None else []
        return found + [pid for pid in self._others if not _runs(pid)]


def _runs(pid: int) -> bool:
    try:
        return exists(pid)
    except AccessDenied:
        return True
