"""The directory that holds one user's region files, `/tmp/hsperfdata_<user>`, opened so that no other user can swap it.

Everything that is done in it afterwards is relative to the descriptor. `/tmp` it is always: the JDK's
tools look nowhere else, whatever TMPDIR says.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat

from vmscope import native
from vmscope.errors import DiskFull, InsecureDirectory, RegionFileError

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class Directory:
    """An open region directory: `fd`, `path` and the `user` whose it is. Close it when the file is made."""

    __slots__ = ("_descriptor", "fd", "path", "user")

    def __init__(self, descriptor: native.Descriptor, path: str, user: str) -> None:
        self._descriptor = descriptor
        self.fd = descriptor.fd
        self.path = path
        self.user = user

    def close(self) -> None:
        """Gives the descriptor back; a second call does nothing."""
        self.fd = -1
        self._descriptor.close()

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open_directory(uid: int | None = None, tmp: str = "/tmp") -> Directory:
    """The region directory of the user `uid` (the effective one), made where it is missing.

    Raises InsecureDirectory for a symbolic link, a directory that others may write to or one that belongs to
    another user (also to root, which HotSpot lets off: its owner could remove root's regions and put others in their
    place); DiskFull; RegionFileError for a user without a passwd entry, and for a temporary directory that is
    missing, read-only or closed to the user.
    """
    if uid is None:
        uid = os.geteuid()
    user = user_name(uid)
    name = f"hsperfdata_{user}"
    path = f"{tmp}/{name}"
    try:
        with native.Descriptor(os.open, tmp, _PLACE) as top:
            try:
                descriptor = _enter(top, name)
            except FileNotFoundError:
                try:
                    os.mkdir(name, 0o755, dir_fd=top)
                except FileExistsError:  # another VM of this user was faster
                    pass
                descriptor = _enter(top, name)
        directory = Directory(descriptor, path, user)
    except OSError as error:
        raise _refusal(error, path, tmp) from error
    try:
        _check(directory.fd, path, uid)
    except BaseException:
        directory.close()
        raise
    return directory


def enter(path: str) -> native.Descriptor:
    """That of a region directory as it stands. OSError: EXDEV where what is mounted there may never answer."""
    tmp, _, name = path.rpartition("/")
    with native.Descriptor(os.open, tmp, _PLACE) as top:
        return _enter(top, name)


def _enter(top: int, name: str) -> native.Descriptor:
    try:
        return native.Descriptor(native.open_beneath, top, name, _OPEN)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    from vmscope.mounts import open_mounted

    return native.Descriptor(open_mounted, top, name, _OPEN)


def user_name(uid: int) -> str:
    """The name that the passwd entry of `uid` gives. Raises RegionFileError where there is none that fits a path."""
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        _check_descriptors(uid)
        raise RegionFileError(
            f"no passwd entry was found for user id {uid}, so its region directory has no name",
            hint=f"add a user with the id {uid} to /etc/passwd",
        ) from None
    if not name or "/" in name:
        raise RegionFileError(
            f"the name {name!r} of user id {uid} cannot be part of a path",
            hint="give the user another name in /etc/passwd",
        )
    return name


def _check_descriptors(uid: int) -> None:
    """Where none is left, nothing can be looked up: RegionFileError. `pwd` takes that for a user who is not there."""
    try:
        native.Descriptor(os.open, "/", _OPEN).close()
    except OSError as error:
        raise RegionFileError(
            f"the user id {uid} cannot be looked up: {error.strerror}", hint="raise the limit of descriptors: ulimit -n"
        ) from error


def _check(fd: int, path: str, uid: int) -> None:
    """What HotSpot asks of the directory, root's too, and that the path still leads to what was opened."""
    opened = os.fstat(fd)
    if opened.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InsecureDirectory(
            f"{path} can be written by others (mode {stat.S_IMODE(opened.st_mode):04o})",
            path=path,
            hint=f"chmod go-w {path}",
        )
    if opened.st_uid != uid:
        hint = f"rm -r {path}" if uid == 0 else f"have its owner remove {path}"
        raise InsecureDirectory(f"{path} belongs to user id {opened.st_uid}, not to {uid}", path=path, hint=hint)
    try:
        named = os.lstat(path)  # after that: no other user may mount over what is this user's
    except FileNotFoundError:
        named = None
    if named is None or not os.path.samestat(named, opened):
        raise InsecureDirectory(f"{path} was replaced while it was being opened", path=path, hint="try again")


def _refusal(error: OSError, path: str, tmp: str) -> RegionFileError | InsecureDirectory:
    """What an errno of mkdir or open means here."""
    if error.errno == errno.EXDEV:
        return InsecureDirectory(
            f"{path} is taken: another user has mounted a file system there, which may never answer",
            path=path,
            hint=f"umount -l {path}, as root",
        )
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        what = "a symbolic link"
        try:
            os.readlink(path)
        except OSError as other:
            if other.errno != errno.EINVAL:
                return RegionFileError(f"{tmp} is not a directory", path=tmp, hint=f"make {tmp} a directory")
            what = "not a directory"
        return InsecureDirectory(f"{path} is {what}", path=path, hint=f"rm {path}")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"no room for the directory {path}", path=path, hint=f"free space in {tmp}")
    if error.errno == errno.ENOENT:
        return RegionFileError(f"{tmp} does not exist", path=tmp, hint=f"mkdir -m 1777 {tmp}")
    if error.errno == errno.EROFS:
        return RegionFileError(f"{tmp} is read-only", path=tmp, hint=f"mount a writable file system at {tmp}")
    return RegionFileError(
        f"cannot open {path}: {error.strerror}", path=path, hint=f"see that this user may make and open {path}"
    )
