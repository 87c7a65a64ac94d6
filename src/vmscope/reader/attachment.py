"""Opening a region, by pid, as one's own, or from a file, with the checks and errors of HotSpot's attach."""

from __future__ import annotations

import os
import sys
from errno import ELOOP, ENOTDIR
from stat import S_ISDIR, S_ISREG

from vmscope import native
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
from vmscope.reader.discovery import PREFIX, TMP, Candidate, tmp_identity, user_directories
from vmscope.reader.process import PAGE_SIZE, PID_MAX, exists, namespace_pids

if sys.platform == "win32":
    from vmscope import win32
    from vmscope.reader import _windows

    _READ = os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT
else:
    _READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY  # NONBLOCK: a fifo must not hold us up

SCHEME = "file:"
MAX_SIZE = 1 << 30  # bytes: no writer makes a larger region

LOOK_CLOSER = "vmscope ps lists the VMs that can be read"


class Attachment:
    """An open region: `mapping` reads it, `found` is the file's stat, `path` its name.

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
    """Opens the region of a pid, of this process (0 or "self"), or of a file ("file:PATH").

    Only mode "r" works, but for the own region, where the mode is not looked at. `user` names the directory;
    without it, it is searched for. A `size` that is given is taken as it is.

    Raises AccessModeError, NoSuchProcess, AccessDenied, NoRegion, InsecureDirectory, RegionSizeError, and
    VMIdentifierError for a target that is none of these.
    """
    if isinstance(target, str) and target.startswith(SCHEME):
        _check_mode(mode)
        return open_saved(path_of(target), size)
    pid = pid_of(target)
    own = os.getpid()
    if pid in (0, own):
        return open_candidate(_locate(own, user, tmp), size)
    _check_mode(mode)
    if not exists(pid):
        raise NoSuchProcess(f"Process not found: there is no process {pid}", pid=pid, hint=LOOK_CLOSER)
    return open_candidate(_locate(pid, user, tmp), size)


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
    nspid = namespace_pids(pid)[-1]
    root = f"/proc/{pid}/root{tmp}"
    places = [(tmp, nspid, False)]
    if tmp_identity(root) not in (None, tmp_identity(tmp)):
        places = [(root, nspid, True), (root, pid, True)]
    elif nspid != pid and tmp_identity(root) is None:
        places.append((root, nspid, True))  # a container that we may not look into: its open says why
    insecure = ""
    for place, number, container in places:
        if user:
            return Candidate(pid, number, user, os.sep.join((place, PREFIX + user, str(number))), container)
        newest: tuple[int, str] | None = None
        for name, directory in user_directories(place):
            try:
                found = _stat(f"{directory}{os.sep}{number}")
            except OSError:
                continue
            if not S_ISREG(found.st_mode) or found.st_size == 0:
                continue
            if not _is_secure_path(directory):
                insecure = directory
            elif newest is None or found.st_ctime_ns > newest[0]:
                newest = found.st_ctime_ns, name
        if newest is not None:
            path = os.sep.join((place, PREFIX + newest[1], str(number)))
            return Candidate(pid, number, newest[1], path, container)
    if insecure:
        raise _insecure(insecure, pid)
    raise NoRegion(
        f"Could not map vmid to user name: process {pid} publishes no region",
        pid=pid,
        hint="start it with vmscope run, or java without -XX:-UsePerfData",
    )


def _stat(path: str) -> os.stat_result:
    if sys.platform == "win32":
        return _windows.stat(path)
    return os.stat(path, follow_symlinks=False)


def _is_secure_path(directory: str) -> bool:
    if sys.platform == "win32":
        try:
            return not win32.insecurity(directory)
        except OSError:  # it has just gone, or Windows does not tell
            return False
    return is_secure(os.stat(directory, follow_symlinks=False))


def is_secure(found: os.stat_result) -> bool:
    """No symlink, nobody else may write, and it is ours; root may read anybody's."""
    euid = os.geteuid()
    return S_ISDIR(found.st_mode) and not found.st_mode & 0o022 and (euid == 0 or found.st_uid == euid)


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
    fd = open_secure(path, pid)
    try:
        found, size = _checked(fd, path, pid, size, whole_pages=True)
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
        found, size = _checked(fd, path, None, size, whole_pages=False)
        return Attachment(path, found, _map(fd, size, path, None), None, None, "")
    finally:
        os.close(fd)


def open_secure(path: str, pid: int) -> int:
    """A descriptor of a file in a secure directory; no symlink is followed. Errors as `open_candidate`."""
    directory, _, name = path.rpartition("/")
    try:
        parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (ELOOP, ENOTDIR):
            raise _insecure(directory, pid) from None
        raise _refused(error, path, pid) from None
    try:
        if not is_secure(os.fstat(parent)):
            raise _insecure(directory, pid)
        return os.open(name, _READ | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        if isinstance(error, VMScopeError):
            raise
        raise _refused(error, path, pid) from None
    finally:
        os.close(parent)


def _refused(error: OSError, path: str, pid: int | None) -> VMScopeError:
    if isinstance(error, FileNotFoundError):
        text = "Process not found" if pid is not None else "File not found"
        return NoRegion(f"{text}: there is no {path}", pid=pid, path=path, hint=LOOK_CLOSER)
    if isinstance(error, PermissionError):
        return AccessDenied(f"Permission denied: {path}", pid=pid, path=path, hint="run this as its user or as root")
    return NoRegion(f"{error.strerror}: {path}", pid=pid, path=path, hint="a region is a regular file")


def _checked(fd: int, path: str, pid: int | None, size: int | None, *, whole_pages: bool) -> tuple[os.stat_result, int]:
    try:
        found = os.fstat(fd)
    except OSError as error:
        raise RegionSizeError(
            f"Could not determine PerfMemory size: {path}: {error.strerror}", pid=pid, path=path
        ) from None
    return found, _size(found, path, pid, size, whole_pages=whole_pages)


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
            f"Invalid PerfMemory size: {path} has {size} bytes", pid=pid, path=path, hint="it is no region's file"
        )
    return size


def _map(fd: int, size: int, path: str, pid: int | None) -> native.Mapping:
    try:
        return native.Mapping(fd, size)
    except OSError as error:
        raise NoRegion(f"Could not map PerfMemory: {path}: {error.strerror}", pid=pid, path=path) from None
