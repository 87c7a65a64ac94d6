"""The twin of save.c: a region saved to a file, a pipe or a terminal."""

from __future__ import annotations

import errno
import os
import stat
import sys
from select import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

_STREAM_WAIT = 1.0  # seconds for the reader of a pipe to take some more

if sys.platform == "win32":
    _FLAGS = os.O_WRONLY | os.O_CREAT | os.O_BINARY | os.O_NOINHERIT
    _NO_LINK = 0

    def _is_shared_folder(path: bytes) -> bool:
        return False

    def _is_own(found: os.stat_result) -> bool:
        return True
else:
    _FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK  # of a pipe that nobody reads: ENXIO
    _NO_LINK = os.O_NOFOLLOW

    def _is_shared_folder(path: bytes) -> bool:
        """Whether others can put something under a name in the folder of this path, as in /tmp."""
        try:
            found = os.stat(os.path.dirname(path) or b".")
        except OSError:
            return True
        return bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) or found.st_uid not in (0, os.geteuid())

    def _is_own(found: os.stat_result) -> bool:
        """Whether it is this user's, under one name: in a shared folder nothing else is written to."""
        kind = stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode)
        return kind and found.st_uid == os.geteuid() and found.st_nlink == 1


def save(image: Buffer, path: bytes) -> None:
    """Writes the image to a file (OSError)."""
    shared = _is_shared_folder(path)
    fd = os.open(path, _FLAGS | _NO_LINK if shared else _FLAGS, 0o600)
    try:
        found = os.fstat(fd)
        if shared and not _is_own(found):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if stat.S_ISREG(found.st_mode):
            os.ftruncate(fd, 0)
        _write(fd, memoryview(image))
    finally:
        os.close(fd)


def _write(fd: int, view: memoryview) -> None:
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            if not select([], [fd], [], _STREAM_WAIT)[1]:
                raise
