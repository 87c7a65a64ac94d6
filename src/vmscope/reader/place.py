"""The directories on the way to a region, entered only where no other user can hold vmscope up.

Each step is taken on the mount that the step before is on; where another is mounted, what it is of is looked up first
(`mounts.py`). A container's root is such a step too. Symbolic links are not followed.
"""

from __future__ import annotations

import os
from errno import EXDEV

from vmscope import mounts, native
from vmscope.mounts import THERE

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY  # a fifo or a lease must not hold us up
THROUGH = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
        if not mounts.answers(fd, seer, root=True):
            raise OSError(EXDEV, "on a file system that may not answer")
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
        return mounts.opened(step(folder, name, THERE, tmp), flags)
    try:
        return native.open_beneath(folder, name, flags)
    except OSError as error:
        if error.errno != EXDEV:
            raise
    return mounts.open_mounted(folder, name, flags, _seer(tmp))


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
