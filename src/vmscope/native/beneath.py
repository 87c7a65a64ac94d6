"""The twin of beneath.c, for kernels before 5.6 too: what stands in a directory, on the same mount."""

from __future__ import annotations

import os
from errno import ELOOP, EXDEV
from stat import S_ISLNK

__all__ = ["open_beneath"]


def open_beneath(folder: int, name: str, flags: int, /) -> int:
    """A descriptor of what a directory has under this name. OSError: EXDEV where something is mounted there."""
    # Opened as a place only: that asks nothing of a file system that is mounted there.
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if mount_id(place) != mount_id(folder):
            raise OSError(EXDEV, os.strerror(EXDEV))
        if S_ISLNK(os.fstat(place).st_mode):
            raise OSError(ELOOP, os.strerror(ELOOP))
        return os.open(f"/proc/self/fd/{place}", (flags | os.O_CLOEXEC) & ~os.O_NOFOLLOW)
    finally:
        os.close(place)


def mount_id(fd: int) -> bytes:
    """The number of the mount that a descriptor is on."""
    info = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(info, 4096)
    finally:
        os.close(info)
    return text.partition(b"mnt_id:")[2].split(None, 1)[0]
