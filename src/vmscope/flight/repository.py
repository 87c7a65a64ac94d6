"""Where finished chunks are until they are dumped: a folder of this process's own; and how chunks become one file."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from errno import EINVAL, EIO, ENOENT, ENOSYS, EOPNOTSUPP, EPERM, ETXTBSY, EXDEV
from typing import NamedTuple

from vmscope.drafts import Draft
from vmscope.errors import OptionError

BASE = "/tmp"  # TMPDIR or not: the JVM's recorder looks nowhere else
_PIECE = 1 << 20  # bytes
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class Chunk(NamedTuple):
    """A finished one, which is a whole recording file: in the repository, or in memory."""

    name: str | None
    begin: int  # ns since 1970
    end: int
    size: int
    data: bytes | None

    @property
    def key(self) -> tuple[str | None, int, int]:
        return self.name, self.begin, self.end


class Repository:
    """A new folder that no other user may enter."""

    def __init__(self, base: str) -> None:
        """OSError where none can be made, OptionError in a folder whose files others may rename."""
        os.makedirs(base, exist_ok=True)
        base = os.path.realpath(base)
        found = os.stat(base)
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
            raise OptionError(f"{base}: others may rename what is in it", path=base)
        if found.st_uid not in (0, os.geteuid()):
            raise OptionError(f"{base} belongs to another user", path=base)
        name = os.path.join(base, f"{time.strftime('%Y_%m_%d_%H_%M_%S')}_{os.getpid()}")
        self.path, number = name, 0
        while True:
            try:
                os.mkdir(self.path, 0o700)
                break
            except FileExistsError:
                number += 1
                if number == 1_000:
                    raise
                self.path = f"{name}_{number}"
        self._pid = os.getpid()
        made = os.lstat(self.path)
        self._identity = made.st_dev, made.st_ino

    def open(self) -> int:
        """Its descriptor. OSError where it is gone, or another folder has its name."""
        fd = os.open(self.path, _FOLDER)
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) != self._identity:
            os.close(fd)
            raise FileNotFoundError(ENOENT, "the repository was replaced by another folder", self.path)
        return fd

    def remove(self) -> None:
        """With all that is in it; a forked child's is its parent's."""
        if os.getpid() != self._pid:
            return
        try:
            fd = self.open()
        except OSError:
            return
        try:
            for name in os.listdir(fd):
                os.unlink(name, dir_fd=fd)
            os.rmdir(self.path)
        except OSError:  # what is not ours stays
            pass
        finally:
            os.close(fd)


def write(path: str, chunks: Iterable[Chunk], repository: Repository | None) -> int:
    """Chunks one behind the other, as one file; its size. OSError, and no file."""
    draft = Draft(path, overwrite=True)
    folder = -1
    size = 0
    try:
        for chunk in chunks:
            if chunk.data is not None:
                size += _write(draft.fd, chunk.data)
                continue
            assert repository is not None
            assert chunk.name is not None
            if folder < 0:
                folder = repository.open()
            size += _append(draft.fd, folder, chunk.name)
        os.fsync(draft.fd)
        draft.publish()
    finally:
        if folder >= 0:
            os.close(folder)
        draft.close()
    return size


def _write(fd: int, data: bytes | memoryview) -> int:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
    return len(data)


def _append(fd: int, folder: int, name: str) -> int:
    """A whole file. The kernel copies it where it can: without the GIL, and without a copy in memory."""
    source = os.open(name, _CHUNK, dir_fd=folder)
    try:
        left = size = os.fstat(source).st_size
        while left:
            try:
                count = os.copy_file_range(source, fd, left)
            except OSError as error:
                if error.errno not in _NOT_COPIED:
                    raise
                count = _write(fd, os.read(source, _PIECE))
            if not count:
                raise OSError(EIO, "a chunk was cut short", name)
            left -= count
        return size
    finally:
        os.close(source)


_NOT_COPIED = {EPERM, EXDEV, EINVAL, ETXTBSY, ENOSYS, EOPNOTSUPP}  # between these files
