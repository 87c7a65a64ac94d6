"""The file that this process's region is in: made whole before it has a name, and unlinked at exit.

No reader ever meets a half-made region: the file is made unnamed, locked and filled, and only then linked to
its name, which never replaces another's file. Three ways, the first that works:

1. an unnamed file in the region directory (O_TMPFILE); being killed before the link leaves nothing;
2. a temporary name beside the region directory, where there is no O_TMPFILE or no /proc to link it through.
   Never in the directory: every HotSpot VM that starts unlinks what has no pid's name there;
3. HotSpot's own order, in place, where files cannot be linked: until the last byte is written the region
   says that it is not accessible yet, and readers wait.

The lock tells every VM that starts that this region is in use. It hangs on a mapping (`native.lock_mapping`),
not on a descriptor, so the program neither sees nor closes it, and a forked child does not keep it. On overlayfs
a mapping does not hold it (HotSpot's lock is lost there): the mirror's thread takes it when it opens the file.
"""

from __future__ import annotations

import errno
import os
import stat

from vmscope import native
from vmscope.errors import DiskFull, RegionFileError, VMScopeError
from vmscope.memory import _directory, _stale
from vmscope.memory._directory import Directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from typing_extensions import Buffer

    class Lock(Protocol):
        def close(self) -> None: ...


_ACCESSIBLE = 7  # offset of the prologue's flag: wire.layout, spelt here because start-up pays for each import
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMED = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_IN_PLACE = _NAMED | os.O_CREAT


class RegionFile:
    """A region's file under its name: `path`, `size`, and the identity (`device`, `inode`) that the name may lose.

    It knows its file before that has a name: whatever interrupts `publish`, `unlink` leaves nothing behind.
    """

    __slots__ = ("_identity", "_lock", "device", "inode", "path", "size")
    notes = ()

    def __init__(self) -> None:
        self.path = ""
        self.size = self.device = self.inode = 0
        self._identity: os.stat_result | None = None
        self._lock: Lock | None = None

    def publish(self, mirror: native.Mirror, pid: int) -> None:
        """Makes the file, after what ended VMs left is gone, and tells the mirror. Raises VMScopeError."""
        with _directory.open_directory() as directory:
            _stale.clean(directory, pid)
            image, used = mirror.copy()  # another thread may append meanwhile
            create(directory, pid, image, self)
        mirror.set_file(os.fsencode(self.path), self.device, self.inode, used, len(image))

    def become(self, path: str, fd: int) -> None:
        """From now on this is the file that `fd` is; `path` is what it is called, or will be."""
        found = os.fstat(fd)
        self.path = path
        self.size, self.device, self.inode = found.st_size, found.st_dev, found.st_ino
        self._identity = found

    def hold(self, fd: int) -> None:
        """Keeps the lock that `fd` has."""
        self._lock = native.lock_mapping(fd, 1)

    def unlink(self) -> None:
        """Takes the name away if it still is this file's, and gives the lock back; a second call does nothing.

        Raises RegionFileError where the file is there and cannot be unlinked.
        """
        identity = self._identity
        if identity is None:
            return
        try:
            head, _, name = self.path.rpartition("/")
            with _directory.enter(head) as directory_fd:
                _unlink(directory_fd, name, identity)
        except (FileNotFoundError, NotADirectoryError):
            pass  # a cleaner of /tmp was here before
        except OSError as error:
            self.abandon()
            raise _failure(f"cannot unlink {self.path}", error, self.path) from error
        self.abandon()  # not where something else interrupts this: the next call does it

    def abandon(self) -> None:
        """In a forked child: forgets the file, which is the parent's, as is its lock."""
        if self._lock is not None:
            self._lock.close()
        self._lock = self._identity = None


def clean() -> None:
    """Removes what ended VMs left, where that is allowed."""
    try:
        with _directory.open_directory() as directory:
            _stale.clean(directory, 0)
    except VMScopeError:  # another user's by now, or gone
        pass


def create(directory: Directory, pid: int, image: Buffer, file: RegionFile | None = None) -> RegionFile:
    """Publishes `image`, a whole region, as the file of `pid` in `directory`: mode 0600, locked, with all its room.

    Raises DiskFull, and RegionFileError where the name is taken (by a VM that holds its lock, a link or whatever
    `clean` leaves alone) or the file system refuses. Nothing of the attempt stays behind.
    """
    file = RegionFile() if file is None else file
    name = str(pid)
    path = f"{directory.path}/{name}"
    place = (directory, name, path, image, file)
    try:
        if not (_unnamed(*place) or _beside(*place)):
            _in_place(*place)
        return file
    except FileExistsError as error:
        raise _taken(directory, name, path) from error
    except OSError as error:
        raise _failure(f"cannot make {path}", error, path) from error


# -- the three ways; False: this one does not work here --------------------------------------------


def _unnamed(directory: Directory, name: str, path: str, image: Buffer, file: RegionFile) -> bool:
    flags = os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC
    try:
        opened = native.Descriptor(os.open, ".", flags, 0o600, dir_fd=directory.fd)
    except OSError as error:
        if error.errno in _FULL:
            raise
        return False
    with opened as fd:
        _fill(fd, image)
        file.become(path, fd)
        file.hold(fd)
        if _linked(f"/proc/thread-self/fd/{fd}", fd, directory, name):
            return True
    file.abandon()
    return False


def _beside(directory: Directory, name: str, path: str, image: Buffer, file: RegionFile) -> bool:
    temporary = f"{os.path.dirname(directory.path)}/{_stale.TEMPORARY}{name}-{os.urandom(8).hex()}"
    try:
        try:
            _stale.clean_temporary(directory, int(name))
            opened = native.Descriptor(os.open, temporary, _NEW, 0o600)
        except OSError as error:
            if error.errno in _FULL:
                raise
            return False
        with opened as fd:
            _fill(fd, image)
            file.become(path, fd)
            if not _linked(temporary, fd, directory, name):
                return False
        _lock_by_name(directory, name, path, file)
        return True
    finally:
        try:
            os.unlink(temporary)
        except OSError:  # there is none, or a cleaner of /tmp was faster
            pass


def _lock_by_name(directory: Directory, name: str, path: str, file: RegionFile) -> None:
    """Many a FUSE server takes two names for two files, each with locks of its own: the lock has to be this one's.

    For the moment without a lock the live pid protects the file.
    """
    with native.Descriptor(os.open, name, _NAMED, dir_fd=directory.fd) as fd:
        try:
            if not _locked(fd) or os.fstat(fd).st_nlink == 0:
                raise FileExistsError
            file.become(path, fd)
            file.hold(fd)
        except BaseException:
            _unlink(directory.fd, name, os.fstat(fd))
            raise


def _in_place(directory: Directory, name: str, path: str, image: Buffer, file: RegionFile) -> None:
    try:
        opened = native.Descriptor(os.open, name, _IN_PLACE, 0o600, dir_fd=directory.fd)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):  # a link, a directory, a socket
            raise FileExistsError from error
        raise
    with opened as fd:
        if not _locked(fd):
            raise FileExistsError
        found = os.fstat(fd)  # after the lock: until then another VM's clean-up may have unlinked it
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise FileExistsError
        try:
            os.ftruncate(fd, 0)
            closed = bytearray(image)
            accessible, closed[_ACCESSIBLE] = closed[_ACCESSIBLE], 0
            _fill(fd, closed)
            os.pwrite(fd, bytes((accessible,)), _ACCESSIBLE)
            file.become(path, fd)
            file.hold(fd)
        except BaseException:
            _unlink(directory.fd, name, found)
            raise


# -- parts ----------------------------------------------------------------------------------------


def _linked(source: str, fd: int, directory: Directory, name: str) -> bool:
    """Links the file that `fd` is, `source`, to its name; False where that cannot be, or comes out as another file."""
    try:
        os.link(source, name, dst_dir_fd=directory.fd, follow_symlinks=source.startswith("/proc/"))
    except OSError as error:
        if error.errno == errno.EEXIST or error.errno in _FULL:
            raise
        return False
    if os.path.samestat(os.stat(name, dir_fd=directory.fd, follow_symlinks=False), os.fstat(fd)):
        return True
    os.unlink(name, dir_fd=directory.fd)
    return False


def _fill(fd: int, image: Buffer) -> None:
    """Locks the file and writes every byte, so that a full disk shows now and not at a later write."""
    os.fchmod(fd, 0o600)  # whatever the umask
    native.lock_file(fd)
    _write(fd, image)


def _write(fd: int, image: Buffer) -> None:
    with memoryview(image) as whole, whole.cast("B") as view:
        done = 0
        while done < len(view):
            done += os.write(fd, view[done:])


def _locked(fd: int) -> bool:
    try:
        native.lock_file(fd)
    except BlockingIOError:
        return False
    return True


def _unlink(directory_fd: int, name: str, identity: os.stat_result) -> None:
    """Takes `name` away if it still is the file of that device and inode."""
    try:
        found = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
        if os.path.samestat(found, identity):
            os.unlink(name, dir_fd=directory_fd)
    except FileNotFoundError:  # a cleaner of /tmp was faster
        pass


# -- what went wrong ------------------------------------------------------------------------------


def _taken(directory: Directory, name: str, path: str) -> RegionFileError:
    """Why the name `path` is not to be had: what stands there."""
    hint = f"rm -r {path}"
    try:
        found = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            what = "is a symbolic link"
        elif not stat.S_ISREG(found.st_mode):
            what = "is not a plain file"
        elif found.st_nlink > 1:
            what = f"is a file of {found.st_nlink} hard links"
        elif _is_locked(directory, name):
            what = "is in use by another VM of the same pid, as in a container that shares the directory"
            hint = "give each container a /tmp of its own, or the host's pid namespace"
        else:
            what = "is there and cannot be unlinked"
    except FileNotFoundError:
        what, hint = "was another's for a moment", "start again"
    return RegionFileError(f"{path} {what}", path=path, hint=hint)


def _is_locked(directory: Directory, name: str) -> bool:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with native.Descriptor(os.open, name, flags, dir_fd=directory.fd) as fd:
            return not _locked(fd)
    except PermissionError:  # a file that its owner closed to himself: no VM's
        return False


def _failure(what: str, error: OSError, path: str) -> RegionFileError:
    if error.errno in _FULL:
        return DiskFull(f"{what}: {error.strerror}", path=path, hint=f"free space in {os.path.dirname(path) or '.'}")
    if error.errno == errno.EROFS:
        return RegionFileError(f"{what}: {error.strerror}", path=path, hint="mount the file system writable")
    return RegionFileError(f"{what}: {error.strerror}", path=path, hint="see that this user may write there")
