"""Opening a region, by pid, as one's own, or from a file, with the checks and errors of HotSpot's attach."""

from __future__ import annotations

import os
import sys
from errno import ELOOP, ENOTDIR, EXDEV
from stat import S_ISDIR, S_ISREG

from vmscope import mounts, native
from vmscope.errors import (
    AccessDenied,
    AccessModeError,
    InsecureDirectory,
    NoRegion,
    NoSuchProcess,
    RegionSizeError,
    VMIdentifierError,
    VMScopeError,
)
from vmscope.reader.discovery import PREFIX, TMP, Candidate, folders, tmp_identity, user_directories
from vmscope.reader.own import own_memory
from vmscope.reader.ownership import may_be_of
from vmscope.reader.process import PAGE_SIZE, PID_MAX, exists, namespace_pids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform == "win32":
    from vmscope.reader import _windows

    _READ = os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT
else:
    from vmscope import mounts
    from vmscope.reader import place

    _READ = place.FILE & ~os.O_NOFOLLOW  # the user's own path may be a link

SCHEME = "file:"
MAX_SIZE = 1 << 30  # bytes: no writer makes a larger region
REACH = 16 << 20  # bytes: a region may grow so large while it is mapped

ROOT = 0

LOOK_CLOSER = "vmscope ps lists the VMs that can be read"


class Attachment:
    """An open region: `mapping` reads it, `found` is the file's stat, `path` its name; "" for this process's memory.

    `pid` is the writer's in our namespace, `nspid` in its own; both are None for a `file:`. `own`: this process's.
    """

    __slots__ = ("found", "mapping", "nspid", "own", "path", "pid", "user")

    def __init__(
        self, path: str, found: os.stat_result, mapping: native.Mapping, pid: int | None, nspid: int | None, user: str
    ) -> None:
        self.path = path
        self.found = found
        self.mapping = mapping
        self.pid = pid
        self.nspid = nspid
        self.user = user
        self.own = pid == os.getpid()

    def close(self) -> None:
        """Detaches. Does nothing to this process's own region, as HotSpot's detach does."""
        if not self.own:
            self.mapping.close()


def attach(
    target: int | str, mode: str = "r", user: str | None = None, size: int | None = None, tmp: str = TMP
) -> Attachment:
    """Opens the region of a pid, of this process (0 or "self"), or of a file ("file:PATH"). This process's is read in
    its memory where it has no file.

    Only mode "r" works, except the own region, where the mode is not looked at. `user` names the directory;
    without it, it is searched for. A `size` that is given is taken as it is.

    Raises AccessModeError, NoSuchProcess, AccessDenied, NoRegion, InsecureDirectory, RegionSizeError, and
    VMIdentifierError for any other target.
    """
    if isinstance(target, str) and target.startswith(SCHEME):
        _check_mode(mode)
        return open_saved(path_of(target), size)
    pid = pid_of(target)
    own = os.getpid()
    if pid in (0, own):
        return _attach_own(own, user, size, tmp)
    _check_mode(mode)
    if not exists(pid):
        raise NoSuchProcess(f"Process not found: there is no process {pid}", pid=pid, hint=LOOK_CLOSER)
    return open_candidate(_locate(pid, user, tmp), size)


def _attach_own(pid: int, user: str | None, size: int | None, tmp: str) -> Attachment:
    """The file, as others see it; the memory where there is none."""
    try:
        return open_candidate(_locate(pid, user, tmp), size)
    except VMScopeError:
        memory = None if sys.platform == "win32" or user or size else own_memory()
        if memory is None:
            raise
        return Attachment("", os.stat("/proc/self"), memory, pid, namespace_pids(pid)[-1], "")


def _check_mode(mode: str) -> None:
    if mode == "rw":
        raise AccessModeError(f"Unsupported access mode: {mode}; a region can be read only", hint='use mode "r"')
    if mode != "r":
        raise AccessModeError(f"Illegal access mode: {mode!r}", hint='use mode "r"')


def pid_of(target: object) -> int:
    """The pid that a target names; 0 is this process. Raises VMIdentifierError, and NoSuchProcess beyond any pid."""
    if isinstance(target, int) and not isinstance(target, bool):
        pid = target
    elif isinstance(target, str) and target.isascii() and target.isdigit() and len(target) < 20:
        pid = int(target)
    elif target == "self":
        pid = 0
    else:
        raise VMIdentifierError(f"{target!r} does not name a VM", hint="give a pid, self, or file:PATH")
    if not 0 <= pid <= PID_MAX:
        raise NoSuchProcess(f"Process not found: no pid can be {pid}", hint=LOOK_CLOSER)
    return pid


def path_of(uri: str) -> str:
    """The path in `file:PATH`, `file:///PATH` or `file://localhost/PATH`, its percent escapes undone."""
    rest = uri[len(SCHEME) :]
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise VMIdentifierError(f"{uri!r} names a file of another host", hint="give file:PATH")
        rest = slash + path
    if "%" in rest:
        from urllib.parse import unquote

        rest = unquote(rest, errors="surrogateescape")
    if sys.platform == "win32" and rest[2:3] == ":":
        rest = rest.removeprefix("/")  # file:///C:/region
    if not rest or "\0" in rest:
        raise VMIdentifierError(f"{uri!r} names no file", hint="give file:PATH")
    return rest


# -- where a pid's file is ------------------------------------------------------------------------


def _locate(pid: int, user: str | None, tmp: str) -> Candidate:
    """The region file of a process. Raises NoRegion, InsecureDirectory, AccessDenied, NoSuchProcess."""
    insecure = ""
    for place_of, number, container in _places(pid, tmp):
        if user:
            return Candidate(pid, number, user, os.sep.join((place_of, PREFIX + user, str(number))), container)
        newest: tuple[int, str] | None = None
        for name, directory, found, secure in _named(place_of, number):
            if not S_ISREG(found.st_mode) or found.st_size == 0 or not may_be_of(pid, found.st_uid):
                continue
            if not secure:
                insecure = directory
            elif newest is None or found.st_ctime_ns > newest[0]:
                newest = found.st_ctime_ns, name
        if newest is not None:
            path = os.sep.join((place_of, PREFIX + newest[1], str(number)))
            return Candidate(pid, number, newest[1], path, container)
    if insecure := insecure or _linked(pid, tmp):
        raise _insecure(insecure, pid)
    raise NoRegion(
        f"Could not map vmid to user name: process {pid} publishes no region",
        pid=pid,
        hint="start it with vmscope run, or java without -XX:-UsePerfData",
    )


def _places(pid: int, tmp: str) -> list[tuple[str, int, bool]]:
    """Where a process's file may be: tmp directory, the file's name in it, and whether that is a container's."""
    nspid = namespace_pids(pid)[-1]
    if sys.platform == "win32":
        return [(tmp, nspid, False)]
    if mounts.root_of(pid) == mounts.root_of("self"):
        return [(tmp, nspid, False)]
    root = f"/proc/{pid}/root{tmp}"
    identity = tmp_identity(root)
    if identity not in (None, tmp_identity(tmp)):
        return [(root, nspid, True), (root, pid, True)]
    places = [(tmp, nspid, False)]
    if nspid != pid and identity is None:
        places.append((root, nspid, True))  # a container that we may not look into: its open says why
    return places


def _named(tmp: str, number: int) -> Iterator[tuple[str, str, os.stat_result, bool]]:
    """Each file of this name in a directory of tmp's: user, directory, what it is, and whether none can tamper."""
    if sys.platform == "win32":
        for user, directory in user_directories(tmp):
            try:
                yield user, directory, _windows.stat(f"{directory}{os.sep}{number}"), _windows.is_secure(directory)
            except OSError:
                continue
        return
    for user, directory, folder in folders(tmp):
        try:
            fd = place.step(folder, str(number), mounts.THERE, tmp)
        except OSError:
            continue
        try:
            found = os.fstat(fd)
        finally:
            os.close(fd)
        yield user, directory, found, is_secure(os.fstat(folder))


def _linked(pid: int, tmp: str) -> str:
    """A symbolic link of the process's user where a directory should be; "" where there is none."""
    if sys.platform != "win32":
        with os.scandir(tmp) as entries:
            for entry in entries:
                linked = entry.name.startswith(PREFIX) and entry.is_symlink()
                if linked and may_be_of(pid, entry.stat(follow_symlinks=False).st_uid):
                    return entry.path
    return ""


def _reader() -> int:
    """The uid whose regions are read."""
    return ROOT if mounts.reads_as_root() else os.geteuid()


def is_secure(found: os.stat_result) -> bool:
    """Not a symlink, writable for no other user, and this user's; root may read every user's."""
    return S_ISDIR(found.st_mode) and not found.st_mode & 0o022 and _reader() in (ROOT, found.st_uid)


def _insecure(directory: str, pid: int | None) -> InsecureDirectory:
    return InsecureDirectory(
        f"Process not found: {directory} could have been tampered with by others",
        pid=pid,
        path=directory,
        hint="it must be a directory of the reading user, no symlink, and not writable for group or others",
    )


# -- opening --------------------------------------------------------------------------------------


def open_candidate(candidate: Candidate, size: int | None = None) -> Attachment:
    """Opens the file of a candidate. Raises NoRegion, InsecureDirectory, AccessDenied, RegionSizeError."""
    path, pid = candidate.path, candidate.pid
    if sys.platform == "win32":
        found = _windows.find(candidate)
        size = _size(found, path, pid, size, whole_pages=True)
        return Attachment(path, found, _windows.open_view(candidate, size), pid, pid, candidate.user)
    fd, found = open_secure(path, pid)
    try:
        size = _size(found, path, pid, size, whole_pages=True)
        return Attachment(path, found, _map(fd, size, path, pid), pid, candidate.nspid, candidate.user)
    finally:
        os.close(fd)


def open_saved(path: str, size: int | None = None) -> Attachment:
    """Opens a saved region, of any size. Raises NoRegion, AccessDenied, RegionSizeError."""
    try:
        fd = os.open(path, _READ)
    except OSError as error:
        raise _refused(error, path, None) from None
    try:
        found = _stat(fd, path, None)
        size = _size(found, path, None, size, whole_pages=False)
        return Attachment(path, found, _map(fd, size, path, None), None, None, "")
    finally:
        os.close(fd)


def open_secure(path: str, pid: int) -> tuple[int, os.stat_result]:
    """Descriptor and stat of a file in a secure directory; no symlink is followed. Errors as `open_candidate`."""
    directory, _, name = path.rpartition("/")
    try:
        parent = place.open_folder(directory)
    except OSError as error:
        if error.errno in (ELOOP, ENOTDIR):
            raise _insecure(directory, pid) from None
        raise _refused(error, path, pid) from None
    try:
        folder = os.fstat(parent)
        if not is_secure(folder):
            raise _insecure(directory, pid)
        fd = place.step(parent, name, place.FILE, directory)
    except OSError as error:
        if isinstance(error, VMScopeError):
            raise
        raise _refused(error, path, pid) from None
    finally:
        os.close(parent)
    try:
        found = _stat(fd, path, pid)
    except RegionSizeError:
        os.close(fd)
        raise
    trusted = folder.st_uid in (ROOT, _reader(), found.st_uid) or (found.st_uid == 0 and found.st_nlink == 1)
    if not trusted:
        os.close(fd)
        raise InsecureDirectory(
            f"Process not found: {path} belongs to another user than its directory, who may have linked it there",
            pid=pid,
            path=path,
            hint="a region stands in its own user's directory",
        )
    return fd, found


def _refused(error: OSError, path: str, pid: int | None) -> VMScopeError:
    if error.errno == EXDEV:
        return InsecureDirectory(
            f"{path} is on a file system that another user serves and that may never answer",
            pid=pid,
            path=path,
            hint="a region is on a file system of the kernel's own",
        )
    if isinstance(error, FileNotFoundError):
        text = "Process not found" if pid is not None else "File not found"
        return NoRegion(f"{text}: there is no {path}", pid=pid, path=path, hint=LOOK_CLOSER)
    if isinstance(error, PermissionError):
        return AccessDenied(f"Permission denied: {path}", pid=pid, path=path, hint="run this as its user or as root")
    return NoRegion(f"{error.strerror}: {path}", pid=pid, path=path, hint="a region is a regular file")


def _stat(fd: int, path: str, pid: int | None) -> os.stat_result:
    try:
        return os.fstat(fd)
    except OSError as error:
        raise RegionSizeError(
            f"Could not determine PerfMemory size: {path}: {error.strerror}", pid=pid, path=path
        ) from None


def _size(found: os.stat_result, path: str, pid: int | None, size: int | None, *, whole_pages: bool) -> int:
    if not S_ISREG(found.st_mode):
        raise NoRegion(f"Not a regular file: {path}", pid=pid, path=path, hint="a region is a regular file")
    if size is not None:
        if size <= 0:
            raise RegionSizeError(f"Invalid PerfMemory size: {size} bytes asked for", pid=pid, path=path)
        return size
    size = found.st_size
    if size == 0 or size > MAX_SIZE or (whole_pages and size % PAGE_SIZE):
        raise RegionSizeError(
            f"Invalid PerfMemory size: {path} has {size} bytes", pid=pid, path=path, hint="it is not a region's file"
        )
    return size


def _map(fd: int, size: int, path: str, pid: int | None) -> native.Mapping:
    try:
        return native.Mapping(fd, size, REACH)
    except OSError as error:
        raise NoRegion(f"Could not map PerfMemory: {path}: {error.strerror}", pid=pid, path=path) from None
