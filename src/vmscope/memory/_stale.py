"""Which files in a region directory were left by VMs that have ended, and may go.

HotSpot's rule, for HotSpot's files and ours alike. A name that is not a process id is never a region's and is
unlinked. A file goes if its process is gone and no process holds its lock. A lock says that a VM lives which this
process may be unable to see, as one of another pid namespace that shares the directory; so a lock outweighs a
dead pid. A live pid outweighs a missing lock: VMs of the JDK 8 era take none.

What a process of a named service has counted is added to the service's totals before (`keeper.py`).
"""

from __future__ import annotations

import errno
import os
import stat

from vmscope import native
from vmscope.errors import VMScopeError
from vmscope.memory._directory import Directory

TEMPORARY = ".vmscope-"  # then the pid, "-", and random letters: a file that is to become that pid's region
_MOST_NAMES = 16384  # of /tmp are looked at: whoever may make files there must not hold up a start
_LARGEST_PID = 2**31 - 1  # of pid_t; a number beyond is not a pid, and must not wrap round to one
_ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT  # it stays for whoever waits for it
_HEAD = 1 << 20  # bytes of a region that has to name its service early
_SERVICE = b"vmscope.service\0"  # the name of an entry, before its text
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: a fifo must not hold us up


def clean(directory: Directory, own_pid: int) -> list[str]:
    """Unlinks what ended VMs left in `directory`; the names that went. What cannot be judged or unlinked stays.

    A file of `own_pid` without a lock is a former process's. Only plain files of one link are ever taken for
    regions: links, fifos, sockets and directories under a pid's name are left alone.
    """
    removed: list[str] = []
    try:
        names = os.listdir(directory.fd)
    except OSError:  # it can be entered but not listed: then no file can be judged
        return removed
    for name in names:
        try:
            if _clean_one(directory, name, own_pid):
                removed.append(name)
        except OSError:
            continue  # gone already, a directory, or not ours to judge
    return removed


def clean_temporary(directory: Directory, own_pid: int) -> None:
    """Unlinks what VMs of this user left beside `directory` that were killed in `_file`'s second way.

    The region's own name may be there already: a second link to the file, which `clean` does not take for a region.
    """
    with native.Descriptor(os.open, os.path.dirname(directory.path), _FOLDER) as tmp:
        with os.scandir(tmp) as entries:
            names = [entry.name for _, entry in zip(range(_MOST_NAMES), entries, strict=False)]
        for name in names:
            if name.startswith(TEMPORARY):
                try:
                    _clean_pair(directory.fd, tmp, name, own_pid)
                except OSError:
                    continue


def _clean_pair(directory_fd: int, tmp: int, temporary: str, own_pid: int) -> None:
    name = temporary.split("-")[1]
    pid = int(name) if name.isascii() and name.isdigit() else 0
    if pid == 0 or (pid != own_pid and _lives(pid)):
        return
    with native.Descriptor(native.open_beneath, tmp, temporary, _OPEN) as fd:
        opened = os.fstat(fd)
        if not stat.S_ISREG(opened.st_mode) or opened.st_uid != os.geteuid():
            return
        native.lock_file(fd)
        try:
            if os.path.samestat(os.stat(name, dir_fd=directory_fd, follow_symlinks=False), opened):
                os.unlink(name, dir_fd=directory_fd)
        except FileNotFoundError:  # killed before the link
            pass
        os.unlink(temporary, dir_fd=tmp)


def _clean_one(directory: Directory, name: str, own_pid: int) -> bool:
    directory_fd = directory.fd
    pid = int(name) if name.isascii() and name.isdigit() else 0
    if pid == 0:
        os.unlink(name, dir_fd=directory_fd)
        return True
    if pid != own_pid and _lives(pid):
        return False
    with native.Descriptor(os.open, name, _OPEN, dir_fd=directory_fd) as fd:
        opened = os.fstat(fd)
        if not stat.S_ISREG(opened.st_mode) or opened.st_nlink != 1:
            return False
        native.lock_file(fd)
        # Looked at again under the lock: a new process of this pid may have made a file of its own meanwhile.
        if pid != own_pid and _lives(pid):
            return False
        named = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
        if not os.path.samestat(named, opened):
            return False
        if not _adopt(directory, fd, pid):
            return False
        if pid != own_pid and pid <= _LARGEST_PID:
            _clean_socket(directory, pid)  # first: a start that is killed here leaves the region to the next one
        os.unlink(name, dir_fd=directory_fd)
        return True


def _adopt(directory: Directory, fd: int, pid: int) -> bool:
    """What a process of a service has counted goes to the service's totals. False where that can be done later only."""
    head = os.pread(fd, _HEAD, 0)
    place = head.find(_SERVICE)
    if place < 0 or not head[place + len(_SERVICE) : place + len(_SERVICE) + 1].strip(b"\0"):
        return True  # its service has no name of its own
    from vmscope.memory import keeper

    try:
        keeper.adopt(directory, fd, pid)
    except keeper.Busy:
        return False
    except VMScopeError:
        return True
    except OSError as error:
        return error.errno not in (errno.ENOSPC, errno.EDQUOT)
    return True


def _clean_socket(directory: Directory, pid: int) -> None:
    """A VM that was killed left the socket too that its clients attached to."""
    native.remove_left_socket(os.fsencode(os.path.dirname(directory.path)), pid)


def _lives(pid: int) -> bool:
    """Whether `pid` is a process that could have written here: another user's could not, nor can a child that has ended
    and that its parent has not waited for."""
    if pid > _LARGEST_PID:
        return False
    try:
        if os.waitid(os.P_PID, pid, _ENDED) is not None:
            return False
    except ChildProcessError:  # not of this process
        pass
    try:
        os.kill(pid, 0)  # afterwards: the program may have waited for it in between
    except (ProcessLookupError, PermissionError):
        return False
    return True
