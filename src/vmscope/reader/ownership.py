"""Whose a region is: does its writer live, and is it the process that the file's name says?

Three witnesses, the cheapest first. A vmscope region carries its writer's start time, and a JVM says when it
began, which is soon after its process did. Where these do not settle it, /proc/locks names who holds the
lock that every vmscope region and every newer JVM has on its file; nothing has to be locked to find out,
but to read that file takes the kernel some 10 ms. Where no lock is to be seen (an old JVM, a file system
whose device numbers differ) the process is asked whether it has the file mapped.
"""

from __future__ import annotations

import os

from vmscope.errors import AccessDenied, NoSuchProcess
from vmscope.reader.process import Process, namespace_pids, process, read_file, user_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LIVE = "live"
STALE = "stale"  # the writer has ended, or nothing of it can be seen from here
FOREIGN = "foreign"  # a living process of another pid namespace wrote it, and the file's name is its pid there

START_TICKS = "vmscope.process.startTicks"
BEGIN_TIME = "sun.rt.createVmBeginTime"

SOON = 2_000  # ms between a process's start and its JVM's, if it is a `java`; the clock may have been set since
_LIMIT = 16 << 20  # bytes of /proc/locks or of a process's maps


class Locks:
    """Who holds a lock of the flock kind on which file: one look at /proc/locks, when it is first needed."""

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: dict[tuple[int, int], list[int]] | None = None

    def holders(self, device: int, inode: int) -> list[int]:
        if self._holders is None:
            self._holders = self._read()
        return self._holders.get((device, inode), [])

    @staticmethod
    def _read() -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        try:
            text = read_file("/proc/locks", _LIMIT)
        except OSError:
            return found
        # 7: FLOCK  ADVISORY  WRITE 4711 fe:00:262145 0 EOF; one that waits has "->" in the second place
        for line in text.splitlines():
            fields = line.split()
            if len(fields) >= 6 and fields[1] == b"FLOCK":
                major, minor, inode = fields[5].split(b":")
                key = os.makedev(int(major, 16), int(minor, 16)), int(inode)
                found.setdefault(key, []).append(int(fields[4]))
        return found


class Owner:
    """`state` of a region, and the `pid` of its writer in our namespace, which a foreign region does not have."""

    __slots__ = ("pid", "state")

    def __init__(self, state: str, pid: int) -> None:
        self.state = state
        self.pid = pid


def owner(pid: int, nspid: int, found: os.stat_result, values: Mapping[str, int | str], locks: Locks) -> Owner:
    """Who wrote the file `found`, which is named `nspid`, should be process `pid`'s, and has these values."""
    try:
        candidate: Process | None = process(pid)
    except NoSuchProcess:
        candidate = None
    except AccessDenied:
        return Owner(LIVE, pid)  # hidden, but there, and the file could be read: its user may be trusted
    if candidate is not None and not (candidate.alive and _may_own(candidate, found.st_uid)):
        candidate = None
    if candidate is not None and _began(candidate, values):
        return Owner(LIVE, pid)
    holders = locks.holders(found.st_dev, found.st_ino)
    if pid in holders and candidate is not None:
        return Owner(LIVE, pid)
    for holder in holders:
        # Another namespace's process, which shares this tmp directory: the name is its pid over there.
        try:
            if namespace_pids(holder)[-1] == nspid:
                return Owner(LIVE, holder)
        except (NoSuchProcess, AccessDenied):
            continue
    if holders:
        return Owner(FOREIGN, pid)
    return Owner(LIVE if candidate is not None and _wrote(candidate, found, values) else STALE, pid)


def _may_own(candidate: Process, uid: int) -> bool:
    """Whether a process may have made a file of this user: nobody publishes in another one's name."""
    if uid in (0, candidate.uid):
        return True
    try:
        return candidate.uid == 0 and uid in user_ids(candidate.pid)
    except (NoSuchProcess, AccessDenied):
        return False


def _began(candidate: Process, values: Mapping[str, int | str]) -> bool:
    """Whether the region began with this process, which is as good as certain."""
    ticks = values.get(START_TICKS)
    if ticks:
        return ticks == candidate.start_ticks
    begin = values.get(BEGIN_TIME)
    return isinstance(begin, int) and -SOON <= begin - candidate.start_time <= SOON


def _wrote(candidate: Process, found: os.stat_result, values: Mapping[str, int | str]) -> bool:
    """Whether this process wrote a file that nobody holds a lock on, and that did not begin with it."""
    if values.get(START_TICKS):
        return False
    try:
        return _maps(candidate.pid, found.st_ino)
    except OSError:
        pass
    begin = values.get(BEGIN_TIME)
    return not isinstance(begin, int) or begin >= candidate.start_time - SOON


def _maps(pid: int, inode: int) -> bool:
    """Whether a process has a region file of this inode mapped. OSError where its maps are not ours to read."""
    wanted = b"%d" % inode
    for line in read_file(f"/proc/{pid}/maps", _LIMIT).splitlines():
        # 7f0c-7f0d rw-s 00000000 00:1c 262145    /tmp/hsperfdata_user/4711
        if b"/hsperfdata_" in line and line.split(None, 5)[4] == wanted:
            return True
    return False
