"""The totals of the ended processes of a service, which stand beside the regions of those that live.

They are opened as regions are: no link is followed, folder and file are of one owner, and no other user may write
there.
"""

from __future__ import annotations

import os
import sys
from stat import S_ISREG

from vmscope.errors import VMScopeError
from vmscope.reader.attachment import is_secure
from vmscope.wire import totals

if sys.platform != "win32":
    from vmscope.reader import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.wire.totals import Totals

MOST_BYTES = 16 << 20  # of another user's too: a larger file is left out


class TotalsFile:
    """The file of a service, read again and again: `totals` as it is now, or None."""

    __slots__ = ("_folder", "_name", "_seen", "totals")

    def __init__(self, folder: str, service: str) -> None:
        self._folder = folder
        self._name = totals.file_name(service)
        self._seen: tuple[int, ...] = ()
        self.totals: Totals | None = None

    def refresh(self) -> bool:
        """Whether it is another one than before. A file is written once: what changes has another identity."""
        before = self._seen
        try:
            self._read()
        except (OSError, VMScopeError):
            self._seen, self.totals = (), None
        return self._seen != before

    def _read(self) -> None:
        fd = open_file(self._folder, self._name)
        try:
            found = os.fstat(fd)
            seen = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
            if seen != self._seen:
                data = os.pread(fd, MOST_BYTES, 0)
                self.totals = totals.decoded(data)
                self._seen = seen
        finally:
            os.close(fd)


def open_file(folder: str, name: str) -> int:
    """A descriptor of the totals called `name` in a region directory. OSError where there are none to be trusted."""
    if not name or sys.platform == "win32":
        raise FileNotFoundError
    top = place.open_folder(folder)
    try:
        outer = os.fstat(top)
        owner = outer.st_uid
        inner = place.step(top, totals.FOLDER, place.FOLDER, folder)
    finally:
        os.close(top)
    try:
        found = os.fstat(inner)
        if not (is_secure(outer) and is_secure(found)) or found.st_uid != owner:
            raise PermissionError
        fd = place.step(inner, name, place.FILE, folder)
    finally:
        os.close(inner)
    try:
        found = os.fstat(fd)
        plain = S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == owner
        if not plain or found.st_mode & 0o022 or found.st_size > MOST_BYTES:
            raise PermissionError
    except OSError:
        os.close(fd)
        raise
    return fd
