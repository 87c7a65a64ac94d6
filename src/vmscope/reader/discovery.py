"""Which region files stand on this host, and whose they say they are.

What the JDK's jps lists, in its order, and without a look at whether the writer still lives.
"""

from __future__ import annotations

import os
import sys
from stat import S_ISDIR, S_ISREG

from vmscope.errors import VMScopeError
from vmscope.reader.process import PID_MAX, namespace_pids, pids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform == "win32":
    from vmscope import win32

    try:
        TMP = win32.temporary_folder().rstrip("\\")
    except OSError:  # then nobody can publish anything either
        TMP = ""
else:
    TMP = "/tmp"

PREFIX = "hsperfdata_"
_MAX_FILES = 1 << 16  # looked at in one directory


class Candidate:
    """A region's file. `pid` is the writer's in our namespace, if it is who the name says; `nspid` the file's name.

    `container`: found through /proc/PID/root, in a tmp directory that is not ours.
    """

    __slots__ = ("container", "nspid", "path", "pid", "user")

    def __init__(self, pid: int, nspid: int, user: str, path: str, container: bool) -> None:
        self.pid = pid
        self.nspid = nspid
        self.user = user
        self.path = path
        self.container = container

    def __repr__(self) -> str:
        return f"<Candidate {self.pid} {self.path}>"


def candidates(tmp: str = TMP) -> list[Candidate]:
    """Every readable file that may be a region, one for each pid, in the order of jps."""
    return java_order(by_pid(tmp))


def by_pid(tmp: str = TMP) -> dict[int, Candidate]:
    """The candidates in the order in which they are found, one for each pid."""
    found: dict[int, Candidate] = {}
    for candidate in every(tmp):
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


def every(tmp: str = TMP) -> Iterator[Candidate]:
    """All candidates: of one pid there may be several, when users or namespaces left files of the same name."""
    for user, path in user_directories(tmp):
        for number in _numbers(path):
            yield Candidate(number, number, user, f"{path}{os.sep}{number}", False)
    own = tmp_identity(tmp)
    foreign: dict[tuple[int, int], list[str]] = {}  # a container's tmp, and the users' directories in it
    for pid in pids():
        root = f"/proc/{pid}/root{tmp}"
        identity = tmp_identity(root)
        if identity is None or identity == own:
            continue
        users = foreign.get(identity)
        if users is None:
            users = foreign[identity] = [user for user, _ in user_directories(root)]
        if users:
            yield from _of_process(pid, root, users)


def _of_process(pid: int, root: str, users: list[str]) -> Iterator[Candidate]:
    try:
        nspid = namespace_pids(pid)[-1]
    except VMScopeError:  # it has just ended
        return
    for user in users:
        for number in (nspid, pid) if nspid != pid else (nspid,):
            path = f"{root}/{PREFIX}{user}/{number}"
            if _readable(path):
                yield Candidate(pid, number, user, path, True)


def tmp_identity(path: str) -> tuple[int, int] | None:
    """Device and inode, or None where there is no such directory for us."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if S_ISDIR(found.st_mode) else None


def user_directories(tmp: str) -> list[tuple[str, str]]:
    """User and path of each `hsperfdata_<user>` in a tmp directory, in the directory's order."""
    try:
        names = os.listdir(tmp)
    except OSError:
        return []
    return [(name[len(PREFIX) :], f"{tmp}{os.sep}{name}") for name in names if name.startswith(PREFIX)]


def _numbers(directory: str) -> Iterator[int]:
    """The pids that are names of readable files in a directory."""
    left = _MAX_FILES
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = entry.name
                if not (name.isascii() and name.isdigit() and int(name) <= PID_MAX):
                    continue
                if entry.is_file() and os.access(entry.path, os.R_OK):
                    yield int(name)
                    left -= 1
                    if not left:
                        return
    except OSError:
        return


def _readable(path: str) -> bool:
    try:
        return S_ISREG(os.stat(path).st_mode) and os.access(path, os.R_OK)
    except OSError:
        return False
