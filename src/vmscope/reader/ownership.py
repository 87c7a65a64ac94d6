"""Whose a region is: does its writer live, and is it the process that the file's name says?

Three witnesses, the cheapest first. A vmscope region carries its writer's start time; a JVM says when it
began, which is soon after its process did, and where its home is, in which its program lies. Where these
do not settle it, /proc/locks names the holder of the lock that every vmscope region and every newer JVM has on
its file. Nothing has to be locked to find out, but that file takes the kernel about 10 ms. Where no lock is to be
seen (an old JVM, a file system whose device numbers differ) the process's maps say whether it has the file mapped.
"""

from __future__ import annotations

import os
import sys

from vmscope import mounts
from vmscope.errors import AccessDenied, NoSuchProcess
from vmscope.reader.process import Process, namespace_pids, process, read_file, read_in_time, user_ids

if sys.platform != "win32":
    from vmscope.reader import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LIVE = "live"
STALE = "stale"  # the writer has ended, or nothing of it can be seen from here
FOREIGN = "foreign"  # a living process of another pid namespace wrote it, and the file's name is its pid there

START_TICKS = "vmscope.process.startTicks"
STACK_START = "vmscope.process.stackStart"
BEGIN_TIME = "sun.rt.createVmBeginTime"
HOME = "java.property.java.home"
WITNESSES = (START_TICKS, STACK_START, BEGIN_TIME, HOME)  # the counters that `owner` looks at

SOON = 2_000  # ms between a process's start and its JVM's, if it is a `java`; the clock may have been set since
_LIMIT = 16 << 20  # bytes of /proc/locks or of processes' maps
_PATIENCE = 1.0  # seconds for another user's maps
_NAMESAKES = 8  # maps of files in directories of regions; a VM has one


class FileLocks:
    """Who holds a lock of the flock kind on which file: one look at /proc/locks, when it is first needed.

    Also processes' maps. Another user can make his long to read, or have the kernel wait before it shows them: so
    all of one user's together have a size and a time.
    """

    __slots__ = ("_holders", "_left")

    def __init__(self) -> None:
        self._holders: dict[tuple[int, int], list[int]] | None = None
        self._left: dict[int, int] = {}  # bytes of the maps of each user's processes that are still read

    def maps(self, candidate: Process) -> bytes:
        """A process's maps. OSError where they are not ours to read, or not to be had."""
        path = f"/proc/{candidate.pid}/maps"
        if candidate.uid == os.geteuid() and not mounts.reads_as_root():
            return read_file(path, _LIMIT)
        left = self._left.get(candidate.uid, _LIMIT)
        self._left[candidate.uid] = 0  # should it not come back
        text = read_in_time(path, left, _PATIENCE)
        self._left[candidate.uid] = left - len(text)
        return text

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

    __slots__ = ("_writer", "pid", "state")

    def __init__(self, state: str, pid: int, writer: Process | None = None) -> None:
        self.state = state
        self.pid = pid
        self._writer = writer

    @property
    def alive(self) -> bool:
        """Whether the writer, which was live when this was found out, still is."""
        if self.state != LIVE:
            return False
        try:
            now = process(self.pid)
        except NoSuchProcess:
            return False
        except AccessDenied:
            return True
        then = self._writer or now
        return now.alive and then.start_ticks == now.start_ticks and not _has_execed(now, then.stack_start)


def owner(
    pid: int, nspid: int, found: os.stat_result, witnesses: Callable[[], Mapping[str, int | str]], locks: FileLocks
) -> Owner:
    """Who wrote the file `found`, which is named `nspid` and should be process `pid`'s.

    `witnesses` reads the WITNESSES in it, which is done only where that process may be its writer.
    """
    try:
        candidate: Process | None = process(pid)
    except NoSuchProcess:
        candidate = None
    except AccessDenied:
        return Owner(LIVE, pid)  # hidden, but there, and the file could be read: its user may be trusted
    if sys.platform == "win32":
        return Owner(STALE, pid) if candidate is None else _owner_of_mapping(candidate, witnesses())
    if candidate is not None and not (candidate.alive and _may_own(candidate, found.st_uid)):
        candidate = None
    values = {} if candidate is None else witnesses()
    # Containers that share a tmp directory and start at one moment have processes of the same pid and age.
    if candidate is not None and nspid == pid and _began(candidate, values):
        return Owner(LIVE, pid, candidate)
    holders = locks.holders(found.st_dev, found.st_ino)
    if candidate is not None and pid in holders:
        return Owner(LIVE, pid, candidate)
    for holder in holders:
        # Another namespace's process, which shares this tmp directory: the name is its pid over there. Who takes a lock
        # and ends may leave it to others, and his pid to anybody.
        try:
            if namespace_pids(holder)[-1] == nspid and _may_own(writer := process(holder), found.st_uid):
                return Owner(LIVE, holder, writer)
        except (NoSuchProcess, AccessDenied):
            continue
    if holders:
        return Owner(FOREIGN, pid)
    if candidate is not None and (_began(candidate, values) or _wrote(candidate, found, values, locks)):
        return Owner(LIVE, pid, candidate)
    return Owner(STALE, pid)


def _owner_of_mapping(candidate: Process, values: Mapping[str, int | str]) -> Owner:
    """On Windows the mapping was found by its name, which goes with its writer: a process that is not younger."""
    begin = values.get(BEGIN_TIME)
    ticks = values.get(START_TICKS)
    if ticks:
        wrote = ticks == candidate.start_ticks
    else:  # a JVM that just starts has not said yet when it began
        wrote = not begin or (isinstance(begin, int) and begin >= candidate.start_time - SOON)
    if candidate.alive and wrote:
        return Owner(LIVE, candidate.pid, candidate)
    return Owner(STALE, candidate.pid)


def may_be_of(pid: int, uid: int) -> bool:
    """Whether a running process may have made a file of this user; True where that cannot be found out."""
    try:
        return uid == 0 or _may_own(process(pid), uid)
    except (NoSuchProcess, AccessDenied):
        return True


def _may_own(candidate: Process, uid: int) -> bool:
    """Whether a process may have made a file of this user: no process publishes in another user's name."""
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
        return ticks == candidate.start_ticks and not _has_execed(candidate, values.get(STACK_START))
    begin, home = values.get(BEGIN_TIME), values.get(HOME)
    if not isinstance(begin, int) or not isinstance(home, str) or abs(begin - candidate.start_time) > SOON:
        return False
    try:
        program = os.readlink(f"/proc/{candidate.pid}/exe")
    except OSError:
        return False
    return program.startswith(home.removesuffix("/jre") + "/bin/")


def _has_execed(candidate: Process, stack_start: int | str | None) -> bool:
    """Whether the process has become another program since its stack began there; False where that cannot be seen."""
    return bool(stack_start and candidate.stack_start) and stack_start != candidate.stack_start


def _wrote(candidate: Process, found: os.stat_result, values: Mapping[str, int | str], locks: FileLocks) -> bool:
    """Whether this process wrote a file that no process holds a lock on, and that did not begin with it."""
    if values.get(START_TICKS):
        return False
    try:
        return _maps(candidate, found, locks)
    except OSError:
        pass
    begin = values.get(BEGIN_TIME)
    return not isinstance(begin, int) or begin >= candidate.start_time - SOON


def _maps(candidate: Process, found: os.stat_result, locks: FileLocks) -> bool:
    """Whether a process has this file mapped. OSError where its maps are not ours to read."""
    left = _NAMESAKES
    for line in locks.maps(candidate).splitlines():
        # 7f0c-7f0d rw-s 00000000 00:1c 262145    /tmp/hsperfdata_user/4711
        start = line.find(b"/")
        if b"/hsperfdata_" not in line or start < 0:
            continue
        left -= 1
        if left < 0:
            break
        try:  # device numbers here may differ from those that stat gives
            fd = place.open_file(f"/proc/{candidate.pid}/root{os.fsdecode(line[start:])}")
        except OSError:
            continue
        try:
            mapped = os.fstat(fd)
        finally:
            os.close(fd)
        if (mapped.st_dev, mapped.st_ino) == (found.st_dev, found.st_ino):
            return True
    return False
