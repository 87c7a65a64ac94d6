"""Which region files stand on this host, and whose they say they are.

What the JDK's jps lists, in its order, and without a look at whether the writer still lives.
"""

from __future__ import annotations

import os
import sys
from stat import S_ISREG

from vmscope.errors import VMScopeError
from vmscope.reader.ownership import may_be_of
from vmscope.reader.process import PID_MAX, namespace_pids, pids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform == "win32":
    from vmscope import win32

    try:
        TMP = win32.temporary_folder().rstrip("\\")
    except OSError:  # then no process can publish anything either
        TMP = ""
else:
    from vmscope import mounts
    from vmscope.reader import place

    TMP = "/tmp"

PREFIX = "hsperfdata_"
_MAX_FILES = 1 << 14  # names looked at in the directories of one owner
_MAX_FOLDERS = 64  # of one owner in one tmp directory: containers may know that user by other names


class Candidate:
    """A region's file. `pid` is the writer's in our namespace, if it is who the name says; `nspid` the file's name.

    `container`: found through /proc/PID/root, in a tmp directory that is not ours. `runs`: whether there is a
    process `pid`, whoever's; True where that was not asked.
    """

    __slots__ = ("container", "nspid", "path", "pid", "runs", "user")

    def __init__(self, pid: int, nspid: int, user: str, path: str, container: bool) -> None:
        self.pid = pid
        self.nspid = nspid
        self.user = user
        self.path = path
        self.container = container
        self.runs = True

    def __repr__(self) -> str:
        return f"<Candidate {self.pid} {self.path}>"


def candidates(tmp: str = TMP) -> list[Candidate]:
    """Every readable file that may be a region, one for each pid, in the order of jps."""
    return java_order(by_pid(tmp))


def by_pid(tmp: str = TMP) -> dict[int, Candidate]:
    """The candidates that can be read in the order in which they are found, one for each pid.

    Left out is what a user publishes under the pid of another user's process.
    """
    found: dict[int, Candidate] = {}
    for candidate in every(tmp, readable=True):
        found.setdefault(candidate.pid, candidate)
    return found


def java_order(found: dict[int, Candidate], *, more: int = 0) -> list[Candidate]:
    """As a Java HashSet iterates that these pids were added to: by the low bits of the pid.

    `more` others in the set that are not in `found` may make it use more bits.
    """
    buckets = 16
    while len(found) + more > buckets * 3 // 4:
        buckets *= 2
    return sorted(found.values(), key=lambda candidate: (candidate.pid ^ candidate.pid >> 16) & buckets - 1)


def every(tmp: str = TMP, *, readable: bool = False) -> Iterator[Candidate]:
    """All candidates: of one pid there may be several, when users or namespaces left files of the same name.

    With `readable` only those that can be read, and that may be of the user whose process has the pid.
    """
    if sys.platform == "win32":
        for user, path in user_directories(tmp):
            for name in _names(path, _MAX_FILES)[0]:
                if not readable or os.access(f"{path}\\{name}", os.R_OK):
                    yield Candidate(int(name), int(name), user, f"{path}\\{int(name)}", False)
        return
    found = list(_in_folders(tmp, readable))
    running = pids()  # after the files: who writes one runs before it is there
    known = frozenset(running)
    for candidate in found:
        candidate.runs = candidate.pid in known
        yield candidate
    for candidate in _in_containers(tmp, running):
        if not readable or _opens(candidate):
            yield candidate


def _in_folders(tmp: str, readable: bool) -> Iterator[Candidate]:
    """The candidates in our tmp directory."""
    left: dict[int, int] = {}  # names that are still looked at, of each owner of directories
    for user, path, folder in folders(tmp):
        uid = os.fstat(folder).st_uid
        names, seen = _names(folder, left.get(uid, _MAX_FILES))
        left[uid] = left.get(uid, _MAX_FILES) - seen
        for name in names:
            if not readable or _can_be_listed(folder, name, int(name), tmp):
                yield Candidate(int(name), int(name), user, f"{path}/{int(name)}", False)


def _can_be_listed(folder: int, name: str, pid: int, tmp: str) -> bool:
    try:
        fd = place.step(folder, name, place.FILE, tmp)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
    finally:
        os.close(fd)
    return S_ISREG(found.st_mode) and may_be_of(pid, found.st_uid)


def _opens(candidate: Candidate) -> bool:
    try:
        folder = place.open_folder(os.path.dirname(candidate.path))
    except OSError:
        return False
    try:
        return _can_be_listed(folder, str(candidate.nspid), candidate.pid, candidate.path)
    finally:
        os.close(folder)


def _in_containers(tmp: str, running: list[int]) -> Iterator[Candidate]:
    """The candidates in tmp directories that are not ours."""
    ours, own = mounts.root_of("self"), tmp_identity(tmp)
    identities: dict[tuple[str, str], tuple[int, int] | None] = {}  # of the tmp directory below each root
    users: dict[tuple[int, int], list[str]] = {}  # whose directories are in it
    for pid in running:
        root = mounts.root_of(pid)
        if root is None or root == ours:
            continue
        path = f"/proc/{pid}/root{tmp}"
        if root not in identities:
            identities[root] = tmp_identity(path)
        identity = identities[root]
        if identity is None or identity == own:
            continue
        if identity not in users:
            users[identity] = [user for user, _, _ in folders(path)]
        if users[identity]:
            yield from _of_process(pid, path, users[identity])


def _of_process(pid: int, tmp: str, users: list[str]) -> Iterator[Candidate]:
    try:
        nspid = namespace_pids(pid)[-1]
    except VMScopeError:  # it has just ended
        return
    for user in users:
        for number in dict.fromkeys((nspid, pid)):
            yield Candidate(pid, number, user, f"{tmp}/{PREFIX}{user}/{number}", True)


def identity(candidate: Candidate) -> tuple[int, int] | None:
    """Device and inode of its file, which is not opened for that; None where it has gone."""
    if sys.platform == "win32":
        try:
            found = os.stat(candidate.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino
    try:
        folder = place.open_folder(os.path.dirname(candidate.path))
        try:
            fd = place.step(folder, str(candidate.nspid), mounts.THERE, candidate.path)
        finally:
            os.close(folder)
    except OSError:
        return None
    return _identity_of(fd)


def tmp_identity(path: str) -> tuple[int, int] | None:
    """Device and inode, or None where there is no such directory for us."""
    try:
        fd = place.enter(path)
    except OSError:
        return None
    return _identity_of(fd)


def _identity_of(fd: int) -> tuple[int, int]:
    """The descriptor is closed."""
    try:
        found = os.fstat(fd)
    finally:
        os.close(fd)
    return found.st_dev, found.st_ino


def user_directories(tmp: str) -> list[tuple[str, str]]:
    """User and path of each `hsperfdata_<user>` in a tmp directory of Windows, in the directory's order."""
    try:
        names = os.listdir(tmp)
    except OSError:
        return []
    return [(name[len(PREFIX) :], f"{tmp}{os.sep}{name}") for name in names if name.startswith(PREFIX)]


def folders(tmp: str) -> Iterator[tuple[str, str, int]]:
    """User, path and descriptor of each `hsperfdata_<user>` in a tmp directory, in the directory's order.

    The descriptor is closed when the next one is asked for. Of one owner there are _MAX_FOLDERS at most.
    """
    owned: dict[int, int] = {}
    try:
        top = place.enter(tmp)
    except OSError:
        return
    try:
        with os.scandir(top) as entries:
            for entry in entries:
                if not entry.name.startswith(PREFIX):
                    continue
                try:
                    folder = place.step(top, entry.name, place.FOLDER, tmp)
                except OSError:  # no directory, or none that may be entered
                    continue
                try:
                    uid = os.fstat(folder).st_uid
                    owned[uid] = owned.get(uid, 0) + 1
                    if owned[uid] <= _MAX_FOLDERS:
                        yield entry.name[len(PREFIX) :], f"{tmp}/{entry.name}", folder
                finally:
                    os.close(folder)
    except OSError:
        return
    finally:
        os.close(top)


def _names(folder: str | int, most: int) -> tuple[list[str], int]:
    """The names in a directory that are pids', and of files, and how many were looked at, which are `most`.

    The directory is a descriptor, on Windows a path.
    """
    found: list[str] = []
    seen = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if seen == most:
                    break
                seen += 1
                name = entry.name
                if name.isascii() and name.isdigit() and int(name) <= PID_MAX and entry.is_file(follow_symlinks=False):
                    found.append(name)
    except OSError:
        pass
    return found, seen
