"""The directories on the way to a region, entered only where nobody can hold us up.

Every user may mount a FUSE file system, and need not answer: whoever opens a file in it, or only asks for its size,
waits for ever, and cannot even be killed. So each step is taken on the mount that the step before is on; where
another is mounted, what it is of is looked up first, in a way that asks nothing of the file system itself. A
container's root is such a step too. Symbolic links are not followed.
"""

from __future__ import annotations

import os
from errno import ENOSYS, ENXIO, EPERM, EXDEV
from stat import S_ISDIR, S_ISREG

from vmscope import native
from vmscope.reader.process import read_file

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY  # a fifo or a lease must not hold us up
THROUGH = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
THERE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LIMIT = 16 << 20  # bytes of a table of mounts


def enter(tmp: str, *, flags: int = FOLDER) -> int:
    """A descriptor of a tmp directory: ours, which is trusted, or a process's as `/proc/PID/root/tmp`.

    OSError EXDEV for one that may not answer.
    """
    seer = _seer(tmp)
    if seer == "self":
        return os.open(tmp, flags & ~os.O_NOFOLLOW)
    parts = tmp.split("/")
    fd = os.open("/".join(parts[:4]), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not _answers(fd, seer, root=True):
            raise _unsafe()
        names = [name for name in parts[4:] if name]
        for number, name in enumerate(names, 1):
            fd, before = step(fd, name, flags if number == len(names) else THROUGH, tmp), fd
            os.close(before)
    except OSError:
        os.close(fd)
        raise
    return fd


def step(folder: int, name: str, flags: int, tmp: str) -> int:
    """A descriptor of what a directory, which was reached from `tmp`, has under this name.

    OSError: EXDEV where another file system is mounted that may not answer, ELOOP for a symbolic link, ENXIO where a
    file is asked for and it is none.
    """
    if flags == FILE and _seer(tmp) != "self":  # who mounts what there may mount a device, which must not be opened
        return _opened(step(folder, name, THERE, tmp), flags)
    try:
        return native.open_beneath(folder, name, flags)
    except OSError as error:
        if error.errno in (ENOSYS, EPERM):  # an old kernel, or a sandbox
            from vmscope.native.beneath import open_beneath

            try:
                return open_beneath(folder, name, flags)
            except OSError as again:
                error = again
        if error.errno != EXDEV:
            raise error from None
    place = os.open(name, THERE, dir_fd=folder)
    try:
        answers = _answers(place, _seer(tmp))
    except OSError:
        os.close(place)
        raise
    if not answers:
        os.close(place)
        raise _unsafe()
    return place if flags == THERE else _opened(place, flags)


def _opened(place: int, flags: int) -> int:
    """A descriptor of the file or directory that `place`, which is closed, only names."""
    try:
        mode = os.fstat(place).st_mode
        if not (S_ISREG(mode) or S_ISDIR(mode)):
            raise OSError(ENXIO, os.strerror(ENXIO))
        return os.open(f"/proc/self/fd/{place}", flags & ~os.O_NOFOLLOW)
    finally:
        os.close(place)


def open_folder(path: str) -> int:
    """A descriptor of a directory in a tmp directory. OSError as `step`."""
    tmp, _, name = path.rpartition("/")
    top = enter(tmp, flags=THROUGH)
    try:
        return step(top, name, FOLDER, tmp)
    finally:
        os.close(top)


def open_file(path: str) -> int:
    """A descriptor, for reading, of a file in a directory in a tmp directory. OSError as `step`."""
    parent, _, name = path.rpartition("/")
    folder = open_folder(parent)
    try:
        return step(folder, name, FILE, parent)
    finally:
        os.close(folder)


def _seer(path: str) -> str:
    """The pid of the process through whose root a path goes, which sees what is mounted there; `self`: none's."""
    parts = path.split("/", 4)
    return parts[2] if parts[:2] == ["", "proc"] and parts[3:4] == ["root"] else "self"


def root_of(pid: int | str) -> tuple[str, str] | None:
    """What tells roots apart without a look at any: the mount namespace and the path in it; None where it is hidden."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt"), os.readlink(f"/proc/{pid}/root")
    except OSError:
        return None


def _answers(fd: int, pid: str, *, root: bool = False) -> bool:
    """Whether a descriptor is on a file system that asks no process, or only one of root's, as a container's may."""
    kind, options = _mount(fd, pid)
    if kind is None or (kind.startswith(b"fuse") and not (root and b"user_id=0," in options)):
        return False
    if not kind.startswith(b"fuse") and kind != b"overlay":
        return True
    # What was mounted in a user namespace was not by root; and an overlay may have a FUSE file system below.
    return os.readlink(f"/proc/{pid}/ns/user") == os.readlink("/proc/self/ns/user")


def _mount(fd: int, pid: str) -> tuple[bytes | None, bytes]:
    """Type and options of the file system that a descriptor is on; None where the process does not see it."""
    from vmscope.native.beneath import mount_id

    number = mount_id(fd)
    # 36 35 98:0 /part /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    for line in read_file(f"/proc/{pid}/mountinfo", _LIMIT).splitlines():
        if line.startswith(number + b" "):
            kind, _, options = line.partition(b" - ")[2].split(b" ", 2)
            return kind, options + b","
    return None, b""


def _unsafe() -> OSError:
    return OSError(EXDEV, "on a file system that may not answer")
