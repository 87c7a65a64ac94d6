"""Opening a region on Windows: the mapping by its name, of which the file's path and size tell."""

from __future__ import annotations

import os
import sys

assert sys.platform == "win32"

from vmscope import win32
from vmscope.errors import AccessDenied, InsecureDirectory, NoRegion, RegionSizeError, VMScopeError
from vmscope.native.region.mapping import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.reader.discovery import Candidate


class MappedView(Mapping):
    """A region's mapping, read-only: as native.Mapping, and it cannot be cut short."""

    __slots__ = ("_view",)

    def __init__(self, view: memoryview) -> None:
        self._fd = -1
        self.size = self._reach = len(view)
        self._view: memoryview | None = view

    @property
    def closed(self) -> bool:
        return self._view is None

    def read(self, offset: int, length: int) -> bytes:
        self._check(offset, length)
        if self._view is None:
            raise ValueError("the mapping is closed")
        return bytes(self._view[offset : offset + length])

    def close(self) -> None:
        self._view = None


def find(candidate: Candidate) -> os.stat_result:
    """The stat of a region's file, with the size it has. Raises NoRegion, InsecureDirectory, AccessDenied."""
    path, pid = candidate.path, candidate.pid
    directory = os.path.dirname(path)
    try:
        if what := win32.insecurity(directory):
            raise InsecureDirectory(
                f"Process not found: {directory} is {what}",
                pid=pid,
                path=directory,
                hint="it must be a directory of the reading user",
            )
        return stat(path)
    except VMScopeError:
        raise
    except OSError as error:
        raise refused(error, path, pid) from None


def is_secure(directory: str) -> bool:
    """Whether no other user can have tampered with it."""
    try:
        return not win32.insecurity(directory)
    except OSError:  # it has just gone, or Windows does not tell
        return False


def stat(path: str) -> os.stat_result:
    """Of a file, with the size it has: what its directory says may be old."""
    found = os.stat(path, follow_symlinks=False)
    if found.st_size:
        return found
    try:
        win32.flush(path)
        return os.stat(path, follow_symlinks=False)
    except OSError:  # in use by a process that lets no other write: then there is nothing to flush
        return found


def open_view(candidate: Candidate, size: int) -> MappedView:
    """Raises NoRegion, AccessDenied, and RegionSizeError where the mapping is smaller than the file."""
    path, pid = candidate.path, candidate.pid
    name = "_".join(path.rsplit("\\", 2)[-2:])
    try:
        handle = win32.open_mapping(name)
    except OSError as error:
        raise refused(error, path, pid, f"there is no mapping {name}") from None
    try:
        try:
            return MappedView(win32.view(handle, size, writable=False))
        finally:
            win32.close(handle)
    except OSError as error:
        if error.winerror == win32.ERROR_ACCESS_DENIED:
            raise RegionSizeError(
                f"Invalid PerfMemory size: {path} has {size} bytes, its mapping fewer", pid=pid, path=path
            ) from None
        raise refused(error, path, pid) from None


def refused(error: OSError, path: str, pid: int, missing: str = "") -> VMScopeError:
    """What one of Windows' errors means here; its number stands in the message."""
    number = error.winerror or error.errno
    if isinstance(error, FileNotFoundError):
        what = missing or f"there is no {path}"
        return NoRegion(
            f"Process not found: {what} (Windows error {number})", pid=pid, path=path, hint="its process has ended"
        )
    if isinstance(error, PermissionError):
        return AccessDenied(
            f"Permission denied: {path} (Windows error {number})",
            pid=pid,
            path=path,
            hint="run this as its user or as an administrator",
        )
    return NoRegion(
        f"Could not map PerfMemory: {path}: {error.strerror} (Windows error {number})",
        pid=pid,
        path=path,
        hint="vmscope ps lists the VMs that can be read",
    )
