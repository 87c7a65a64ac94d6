"""Whose a region is: does its writer live, and is it the process that the file's name says?

HotSpot and vmscope hold a lock on the file as long as they live, and /proc/locks names the holder, so
nothing has to be locked to find out. Where no lock is to be seen (an old JVM, a file system whose device
numbers differ) the process itself is asked: a vmscope region carries its writer's start time, and a JVM
has the file mapped.
"""

from __future__ import annotations

import os

from vmscope.errors import AccessDenied, NoSuchProcess
from vmscope.reader.process import Process, namespace_pids, process, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Values = Mapping[str, int | str]

LIVE = "live"
STALE = "stale"  # the writer has ended, or nothing of it can be seen from here
FOREIGN = "foreign"  # a living process of another pid namespace wrote it, and the file's name is its pid there

START_TICKS = "vmscope.process.startTicks"
BEGIN_TIME = "sun.rt.createVmBeginTime"

CLOCK_STEP = 5_000  # ms: how far the clock may have been set since, before start times tell nothing
_LIMIT = 16 << 20  # bytes of /proc/locks or of a process's maps


class Locks:
    """Who holds a lock of the flock kind on which file: one look at /proc/locks."""

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: dict[tuple[int, int], list[int]] = {}
        try:
            text = read_file("/proc/locks", _LIMIT)
        except OSError:
            return
        # 7: FLOCK  ADVISORY  WRITE 4711 fe:00:262145 0 EOF; one that waits has "->" in the second place
        for line in text.splitlines():
            fields = line.split()
            if len(fields) >= 6 and fields[1] == b"FLOCK":
                major, minor, inode = fields[5].split(b":")
                key = os.makedev(int(major, 16), int(minor, 16)), int(inode)
                self._holders.setdefault(key, []).append(int(fields[4]))

    def holders(self, device: int, inode: int) -> list[int]:
        return self._holders.get((device, inode), [])


class Owner:
    """`state` of a region, and the `pid` of its writer in our namespace, which a foreign region does not have."""

    __slots__ = ("pid", "state")

    def __init__(self, state: str, pid: int) -> None:
        self.state = state
        self.pid = pid


def owner(pid: int, nspid: int, found: os.stat_result, locks: Locks, values: Callable[[], Values]) -> Owner:
    """Who wrote the file `found`, which is named `nspid` and should be process `pid`'s.

    `values` gives the region's; it is only called when nobody holds the lock, and what it raises comes out.
    """
    holders = locks.holders(found.st_dev, found.st_ino)
    if pid in holders:
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
    try:
        candidate = process(pid)
    except NoSuchProcess:
        return Owner(STALE, pid)
    except AccessDenied:
        return Owner(LIVE, pid)  # hidden, but there, and the file could be read: its user may be trusted
    alive = candidate.alive and _wrote(candidate, found, values())
    return Owner(LIVE if alive else STALE, pid)


def _wrote(candidate: Process, found: os.stat_result, values: Values) -> bool:
    """Whether this process wrote a file that nobody holds a lock on."""
    ticks = values.get(START_TICKS)
    if isinstance(ticks, int) and ticks:
        return ticks == candidate.start_ticks
    try:
        return _maps(candidate.pid, found.st_ino)
    except OSError:
        pass
    begin = values.get(BEGIN_TIME)
    return not isinstance(begin, int) or begin >= candidate.start_time - CLOCK_STEP


def _maps(pid: int, inode: int) -> bool:
    """Whether a process has a region file of this inode mapped. OSError where its maps are not ours to read."""
    wanted = b"%d" % inode
    for line in read_file(f"/proc/{pid}/maps", _LIMIT).splitlines():
        # 7f0c-7f0d rw-s 00000000 00:1c 262145    /tmp/hsperfdata_user/4711
        if b"/hsperfdata_" in line and line.split(None, 5)[4] == wanted:
            return True
    return False
