"""The twin of save.c: a region saved to a file, a pipe or a terminal."""

from __future__ import annotations

import errno
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

_STREAM_WAIT = 1000  # ms for the reader of a pipe to take some more

if sys.platform == "win32":
    _FLAGS = os.O_WRONLY | os.O_CREAT | os.O_BINARY | os.O_NOINHERIT

    def open_own(path: bytes | str, flags: int, mode: int) -> int:
        return os.open(path, flags, mode)

    def _has_room(fd: int) -> bool:
        return True
else:
    from select import POLLOUT, poll

    _FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK  # of a pipe without a reader: ENXIO

    def open_own(path: bytes | str, flags: int, mode: int) -> int:
        """A descriptor of a file to write to, of which nothing is truncated here.

        Where others can put something under a name, as in /tmp, no link is followed, and what is another user's, or has
        other names, is a FileExistsError. The folder is looked at once: others could make it another one meanwhile.
        """
        place, name = os.path.split(os.fsencode(path))
        folder = os.open(place or b".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            found = os.fstat(folder)
            shared = bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) or found.st_uid not in (0, os.geteuid())
            fd = os.open(name, flags | os.O_NOFOLLOW if shared else flags, mode, dir_fd=folder)
        finally:
            os.close(folder)
        if shared and not _is_own(os.fstat(fd)):
            os.close(fd)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return fd

    def _is_own(found: os.stat_result) -> bool:
        kind = stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode)
        return kind and found.st_uid == os.geteuid() and found.st_nlink == 1

    def _has_room(fd: int) -> bool:
        polled = poll()
        polled.register(fd, POLLOUT)
        return bool(polled.poll(_STREAM_WAIT))


def save(image: Buffer, path: bytes) -> None:
    """Writes the image to a file (OSError)."""
    fd = open_own(path, _FLAGS, 0o600)
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            os.ftruncate(fd, 0)
        _write(fd, memoryview(image))
    finally:
        os.close(fd)


def _write(fd: int, view: memoryview) -> None:
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            if not _has_room(fd):
                raise
