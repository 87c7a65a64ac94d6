"""The keeper of a service: the file in which the totals of its ended processes stand.

`services/NAME` in the region directory, for a service that has a name of its own (`-Dvmscope.service=NAME`). It is in a
folder, because every HotSpot VM that starts unlinks the files there that have no pid's name. The folder's mode is 0700:
whoever may open it could hold its lock.

The totals are replaced as a whole, by a rename. They then have a note of the process whose numbers were added, and only
after that its region is unlinked. A crash before the rename adds nothing; after it, whoever finds the region finds the
note too.

Totals go by themselves a week after the last process of their service: with the next end of a process that adds to any.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from vmscope import native
from vmscope.errors import FormatError, VMScopeError
from vmscope.memory import _directory
from vmscope.memory._directory import Directory
from vmscope.wire import totals
from vmscope.wire.totals import BEGIN_TIME, FOLDER, MOST_BYTES, STACK_START, START_TICKS, Totals, file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from vmscope.wire.totals import Note, Number

KEPT = 7 * 86400  # seconds after which totals go that no process has added to, once the service has no process
PATIENCE = 1.0  # seconds that the end of a process waits for the lock; its region is adopted later
_NEW = ".new"  # of the next totals, until they take the place of the last
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PAUSE = 0.001


class Busy(VMScopeError):
    """Another process is at the totals: try again later."""


def fold(service: str, numbers: Iterable[Number], ended: Note, began: int, patience: float = PATIENCE) -> None:
    """Adds the numbers of a process that ends, once, whoever calls this again for it.

    VMScopeError or OSError where that cannot be now: Busy where it can be later.
    """
    with _directory.open_directory() as directory:
        _fold(directory, service, numbers, ended, began, patience)


def adopt(directory: Directory, fd: int, pid: int) -> None:
    """The same for the region of a process that has ended without that, of which `fd` is the file. Errors as `fold`."""
    size = os.fstat(fd).st_size
    if size > MOST_BYTES or os.fstat(fd).st_uid != os.geteuid():
        return
    data = _read(fd, size)
    if totals.SERVICE.encode() not in data:
        return
    try:
        service, numbers, who = totals.of_region(data)
    except FormatError:
        return
    if service:
        ended = pid, who.get(START_TICKS, 0), who.get(STACK_START, 0)
        _fold(directory, service, numbers, ended, who.get(BEGIN_TIME, 0), 0.0)


def _fold(
    directory: Directory, service: str, numbers: Iterable[Number], ended: Note, began: int, patience: float
) -> None:
    name = file_name(service)
    if not name:
        raise VMScopeError(f"the name of the service {service[:40]}... is too long", hint="give it a shorter one")
    with _open_folder(directory) as folder:
        _lock(folder, patience)
        try:
            kept = _load(folder, name, service)
            if ended not in kept.notes:
                kept.add(numbers, ended, began)
                kept.prune(lambda pid: _is_there(directory, pid))
                _replace(folder, name, kept.encode())
                _forget(directory, folder)
        finally:
            fcntl.flock(folder, fcntl.LOCK_UN)  # a child that was forked meanwhile has it too


def _open_folder(directory: Directory) -> native.Descriptor:
    """That of the keepers; it is made where it is missing. OSError for a folder of another kind, owner or mode."""
    try:
        opened = native.Descriptor(native.open_beneath, directory.fd, FOLDER, _FOLDER)
    except FileNotFoundError:
        try:
            os.mkdir(FOLDER, 0o700, dir_fd=directory.fd)
        except FileExistsError:  # another process was faster
            pass
        opened = native.Descriptor(native.open_beneath, directory.fd, FOLDER, _FOLDER)
    found = os.fstat(opened.fd)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        opened.close()
        raise PermissionError(errno.EPERM, f"{directory.path}/{FOLDER} is not this user's alone")
    return opened


def _lock(folder: int, patience: float) -> None:
    due = time.monotonic() + patience
    while True:
        try:
            native.lock_file(folder)
            return
        except BlockingIOError:
            if time.monotonic() >= due:
                raise Busy("another process is adding to the totals", hint="they are added later") from None
        time.sleep(_PAUSE)


def _load(folder: int, name: str, service: str) -> Totals:
    """The totals as they are; none where there is no keeper yet, or a damaged one. OSError for a file of others."""
    try:
        opened = native.Descriptor(native.open_beneath, folder, name, _READ)
    except FileNotFoundError:
        return Totals(service)
    with opened as fd:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, f"{name} is not a plain file of this user's")
        if found.st_size > MOST_BYTES:
            return Totals(service)
        try:
            kept = totals.decoded(_read(fd, found.st_size))
        except FormatError:
            return Totals(service)
    kept.service = service
    return kept


def _replace(folder: int, name: str, data: bytes) -> None:
    try:
        os.unlink(_NEW, dir_fd=folder)  # of a process that was killed here
    except FileNotFoundError:
        pass
    try:
        with native.Descriptor(os.open, _NEW, _MAKE, 0o600, dir_fd=folder) as fd:
            os.fchmod(fd, 0o600)  # whatever the umask
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
        os.rename(_NEW, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        try:
            os.unlink(_NEW, dir_fd=folder)
        except OSError:
            pass
        raise


def _forget(directory: Directory, folder: int) -> None:
    """Removes the totals of services that have had no process for long."""
    due = time.time() - KEPT
    old = [name for name in os.listdir(folder) if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < due]
    if old:
        found = {_service_of(directory, name) for name in os.listdir(directory.fd) if name.isdigit()}
        for name in set(old) - {file_name(service) for service in found}:
            os.unlink(name, dir_fd=folder)


def _service_of(directory: Directory, name: str) -> str:
    """That of the process whose region this is; "" for none."""
    try:
        with native.Descriptor(native.open_beneath, directory.fd, name, _READ) as fd:
            found = os.fstat(fd)
            if stat.S_ISREG(found.st_mode) and found.st_size <= MOST_BYTES:
                return totals.of_region(_read(fd, found.st_size))[0]
    except (OSError, FormatError):
        pass
    return ""


def _read(fd: int, size: int) -> bytes:
    parts, done = [], 0
    while done < size and (part := os.pread(fd, size - done, done)):
        parts.append(part)
        done += len(part)
    return b"".join(parts)


def _is_there(directory: Directory, pid: int) -> bool:
    try:
        os.stat(str(pid), dir_fd=directory.fd, follow_symlinks=False)
    except OSError:
        return False
    return True
