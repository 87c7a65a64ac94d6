"""Files that get their name when they are whole."""

from __future__ import annotations

import os
import stat
from errno import EEXIST

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Draft:
    """A file that gets its name when it is whole. Until then it stands beside it, under one that cannot be guessed.

    The folder is found once: whoever may change its path could have it lead elsewhere between two looks.
    """

    __slots__ = ("_folder", "_name", "_overwrite", "_path", "_temporary", "fd")

    def __init__(self, path: str, overwrite: bool = False) -> None:
        """OSError where it cannot be; FileExistsError for a name that is taken, with `overwrite` by no file."""
        folder, name = os.path.split(path)
        self._path, self._name, self._overwrite = path, name or ".", overwrite
        self._temporary = f"{name}.{os.urandom(8).hex()}.partial"
        self.fd = -1
        self._folder = os.open(folder or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._refuse()
            self.fd = os.open(self._temporary, _NEW, 0o600, dir_fd=self._folder)
            os.fchmod(self.fd, 0o600)  # whatever the umask
        except BaseException:
            self.close()
            raise

    def _refuse(self) -> None:
        try:
            found = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return
        if not self._overwrite:
            raise FileExistsError(EEXIST, "File exists; -overwrite replaces it", self._path)
        if not stat.S_ISREG(found.st_mode):
            raise FileExistsError(EEXIST, "it is not a file, and nothing else is replaced", self._path)

    def publish(self) -> None:
        """Gives the whole file its name, which never takes another's away unless that was asked for."""
        self._end()
        both = {"src_dir_fd": self._folder, "dst_dir_fd": self._folder}
        if self._overwrite:
            os.replace(self._temporary, self._name, **both)
            return
        try:
            os.link(self._temporary, self._name, **both, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            self._refuse()
            os.rename(self._temporary, self._name, **both)

    def _end(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def close(self) -> None:
        """Takes away what has no name."""
        folder, self._folder = self._folder, -1
        try:
            self._end()
        finally:
            if folder >= 0:
                try:
                    os.unlink(self._temporary, dir_fd=folder)
                except OSError:  # it was renamed, or never there
                    pass
                os.close(folder)
