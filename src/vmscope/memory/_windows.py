"""The region's file and mapping on Windows: `hsperfdata_<user>\\<pid>` in the temporary folder, and the mapping's name.

Readers open the mapping by its name, `hsperfdata_<user>_<pid>`; the file tells them of it and how large it is. Windows
removes both: the name with its last handle, the file with that and the last view, however this process ends.
"""

from __future__ import annotations

import os
import sys

assert sys.platform == "win32"

from vmscope import flags, win32
from vmscope.errors import DiskFull, InsecureDirectory, RegionFileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope import native

# What the owner, Everyone (WD) and Administrators (BA) may do, as access masks. The descriptors are protected, so that
# nothing is inherited; put anew on what exists, they take the place of all that was allowed there before.
_ALL_OF_A_FILE = 0x1F01FF  # FILE_ALL_ACCESS, in which STANDARD_RIGHTS_ALL is
_DIRECTORY = (_ALL_OF_A_FILE, 0x1200A9, _ALL_OF_A_FILE)  # Everyone: FILE_GENERIC_READ, which lists, and FILE_TRAVERSE
# Everyone: READ_CONTROL, FILE_READ_ATTRIBUTES and FILE_READ_EA. Not FILE_READ_DATA: a region is its user's alone.
_FILE = (_ALL_OF_A_FILE, 0x020088, _ALL_OF_A_FILE)
_MAPPING = (0x0F001F, 0x020000, 0x1F001F)  # FILE_MAP_ALL_ACCESS; READ_CONTROL; STANDARD_RIGHTS_ALL as well

PREFIX = "hsperfdata_"
_FULL = (win32.ERROR_DISK_FULL, win32.ERROR_HANDLE_DISK_FULL)
_BYPASS = "PerfBypassFileSystemCheck"
_LARGEST_PID = 2**32 - 1


class RegionFile:
    """A region's file under its name: `path`, `size`; `notes` on what did not go well, for the log."""

    __slots__ = ("_handles", "notes", "path", "size")

    def __init__(self) -> None:
        self.path = ""
        self.size = 0
        self.notes: tuple[str, ...] = ()
        self._handles: tuple[int, ...] = ()  # the mapping's, then the file's

    def publish(self, mirror: native.Mirror, pid: int) -> None:
        """Makes the region's file and mapping, whole, and tells the mirror.

        Raises InsecureDirectory for a folder that others could tamper with, or a volume that does not keep access
        rights; DiskFull; RegionFileError, with Windows' own error, for what else fails. Nothing of the attempt stays.
        """
        user = user_name()
        tmp = temporary_folder()
        if not flags.in_force.on(_BYPASS):
            _check_volume(tmp)
        directory = f"{tmp}\\{PREFIX}{user}"
        clean(directory, pid)
        sid = _sid()
        note = _open_directory(directory, sid, tmp)
        image, used = mirror.copy()  # another thread may append meanwhile
        self.path, self.size, self.notes = f"{directory}\\{pid}", len(image), (note,) if note else ()
        mirror.set_view(self._make(image, sid, f"{PREFIX}{user}_{pid}"), used)

    def _make(self, image: bytes, sid: str, name: str) -> memoryview:
        path = self.path
        try:
            with win32.SecurityDescriptor(rights_text(sid, _FILE)) as rights:
                self._handles = (rights.make_file(path),)
        except OSError as error:
            raise failure(f"cannot make {path}", error, path) from error
        try:
            # Written before the mapping has its name: a reader finds it whole, and a full disk shows now.
            win32.write(self._handles[0], image)
            with win32.SecurityDescriptor(rights_text(sid, _MAPPING)) as rights:
                self._handles = rights.make_mapping(self._handles[0], len(image), name), *self._handles
            return win32.view(self._handles[0], len(image), writable=True)
        except OSError as error:
            self.unlink()
            if error.winerror == win32.ERROR_ALREADY_EXISTS:
                raise RegionFileError(
                    f"cannot map {path}: another process has a mapping of the name {name}",
                    path=path,
                    hint="end the process that holds it",
                ) from error
            raise failure(f"cannot map {path}", error, path) from error

    def unlink(self) -> None:
        """Gives the name away, and the file as soon as no process reads it; a second call does nothing."""
        handles, self._handles = self._handles, ()
        _close(handles, self.path)

    def abandon(self) -> None:
        """For a process that has inherited this: here none does."""


def _close(handles: tuple[int, ...], path: str) -> None:
    """Closes them all. RegionFileError where one cannot be closed."""
    failed = None
    for handle in handles:
        try:
            win32.close(handle)
        except OSError as error:
            failed = error
    try:
        if failed is not None:
            raise failure(f"cannot close {path}", failed, path) from failed
    finally:
        failed = None  # whose traceback has this frame: a cycle, which would keep the view


# -- names ----------------------------------------------------------------------------------------


def user_name() -> str:
    """USERNAME, or the account's name where that is unset or empty. RegionFileError where neither fits a path."""
    try:
        name = win32.user_name()
    except OSError as error:
        raise RegionFileError(
            f"the user has no name: {_reason(error)}", hint="set the environment variable USERNAME"
        ) from error
    if not name or any(character in '\\/:*?"<>|' for character in name):
        raise RegionFileError(
            f"the user's name {name!r} cannot be part of a path", hint="set the environment variable USERNAME"
        )
    return name


def temporary_folder() -> str:
    """The folder for temporary files, without a backslash at its end. RegionFileError where none is named."""
    try:
        return win32.temporary_folder().rstrip("\\")
    except OSError as error:
        raise RegionFileError(
            f"there is no temporary folder: {_reason(error)}", hint="set the environment variable TMP"
        ) from error


def _check_volume(tmp: str) -> None:
    """Whether the volume keeps access rights, and does not compress what is written."""
    hint = f"set TMP to a folder on an NTFS volume, or use -XX:+{_BYPASS}"
    if tmp[1:2] != ":":
        raise InsecureDirectory(f"{tmp} is not on a drive, so it is not known who may read there", path=tmp, hint=hint)
    try:
        found = win32.volume_flags(f"{tmp[:2]}\\")
    except OSError as error:
        raise InsecureDirectory(
            f"the volume of {tmp} does not tell what it can do: {_reason(error)}", path=tmp, hint=hint
        ) from error
    if not found & win32.FILE_PERSISTENT_ACLS:
        raise InsecureDirectory(f"the volume of {tmp} keeps no access rights", path=tmp, hint=hint)
    if found & win32.FILE_VOLUME_IS_COMPRESSED:
        raise InsecureDirectory(f"the volume of {tmp} is compressed", path=tmp, hint=hint)


# -- the directory --------------------------------------------------------------------------------


def clean(directory: str, own_pid: int) -> list[str]:
    """Removes what ended VMs left: the names that went. What is in use, or not ours to remove, stays."""
    removed: list[str] = []
    try:
        if win32.insecurity(directory):
            return removed
        names = os.listdir(directory)
    except OSError:  # there is none yet
        return removed
    for name in names:
        pid = int(name) if name.isascii() and name.isdigit() else 0
        if pid not in (0, own_pid) and _lives(pid):
            continue
        try:
            os.unlink(f"{directory}\\{name}")
        except OSError:
            continue
        removed.append(name)
    return removed


def _lives(pid: int) -> bool:
    """Whether `pid` is a process that could have written here: another user's could not."""
    if pid > _LARGEST_PID:
        return False
    try:
        return win32.runs(pid)
    except OSError:
        return False


def _open_directory(directory: str, sid: str, tmp: str) -> str:
    """Makes it, or gives it its access rights anew; what is to be said of that."""
    try:
        with win32.SecurityDescriptor(rights_text(sid, _DIRECTORY)) as rights:
            try:
                rights.make_directory(directory)
            except FileExistsError:
                pass
            else:
                return ""
            if what := win32.insecurity(directory):
                raise InsecureDirectory(f"{directory} is {what}", path=directory, hint=f"remove {directory}")
            try:
                rights.apply(directory)
            except OSError as error:
                return f"{directory} keeps its access rights, which may not be right: {_reason(error)}"
            return ""
    except InsecureDirectory:
        raise
    except FileNotFoundError as error:
        raise RegionFileError(f"{tmp} does not exist", path=tmp, hint=f"mkdir {tmp}, or set TMP") from error
    except OSError as error:
        raise failure(f"cannot open {directory}", error, directory) from error


# -- access rights --------------------------------------------------------------------------------


def _sid() -> str:
    try:
        return win32.user_sid()
    except OSError as error:
        raise RegionFileError(f"this process's user is not known: {_reason(error)}") from error


def rights_text(sid: str, masks: tuple[int, int, int]) -> str:
    """The descriptor, in SDDL: what the user, Administrators and Everyone may do, in this order, and no other user."""
    owner, everyone, administrators = masks
    return f"D:P(A;;{owner:#x};;;{sid})(A;;{administrators:#x};;;BA)(A;;{everyone:#x};;;WD)"


# -- what went wrong ------------------------------------------------------------------------------


def _reason(error: OSError) -> str:
    number = error.winerror or error.errno
    return f"{error.strerror} (Windows error {number})"


def failure(what: str, error: OSError, path: str) -> RegionFileError:
    text = f"{what}: {_reason(error)}"
    if error.winerror in _FULL:
        return DiskFull(text, path=path, hint="free space on the volume")
    return RegionFileError(text, path=path, hint="see that this user may write there")
