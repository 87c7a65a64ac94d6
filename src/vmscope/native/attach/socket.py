"""The twin of socket.c and stale_sockets.c: the name that clients know, who they are, and what killed VMs have left."""

from __future__ import annotations

import _socket
import errno
import os
import stat
from struct import unpack
from time import time

from vmscope.mounts import THERE, open_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LEAST_AGE = 60  # seconds
_MOST_NAMES = 16384  # are looked at: whoever may make files there must not hold up a start
_SO_PASSRIGHTS = 83


class Socket(_socket.socket):
    """One of vmscope's, and which file it is: the program may close it, and have another under its number."""

    def __init__(self, fileno: int) -> None:
        super().__init__(fileno=fileno)
        self.setblocking(False)
        self._file = _file(fileno)

    def is_there(self) -> bool:
        try:
            return _file(self.fileno()) == self._file
        except OSError:
            return False

    def finish(self) -> None:
        """Closes a connection. Unread input would take the reply from the client, as a reset."""
        try:
            if self.is_there():
                self.shutdown(1)
                self.recv(1 << 16)
        except OSError:
            pass
        self.close()

    def close(self) -> None:
        if self.is_there():
            super().close()
        else:
            self.detach()


def _file(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def pair() -> tuple[Socket, Socket]:
    one, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    return Socket(one.detach()), Socket(other.detach())


def bind(path: bytes, temporary: bytes, backlog: int) -> tuple[Socket, tuple[int, int]]:
    """Under another name, closed to others from the first, and renamed when it listens. With its device and inode."""
    if len(max(path, temporary)) > 107:
        raise ValueError("a path that is too long for a socket")
    check_free(path)
    made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        os.fchmod(made.fileno(), 0o600)
        try:  # no client can hand us descriptors, of which the last close may wait for a network or a disk
            made.setsockopt(_socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)
        except OSError:  # before Linux 6.16
            pass
        remove(temporary)
        made.bind(temporary)
        try:
            made.listen(backlog)
            found = os.lstat(temporary)
            os.rename(temporary, path)
        except BaseException:
            remove(temporary)
            raise
    except BaseException:
        made.close()
        raise
    return Socket(made.detach()), (found.st_dev, found.st_ino)


def is_named(path: bytes, inode: tuple[int, int]) -> bool:
    try:
        place = _open_named(path)
    except OSError:
        return False
    try:
        return _file(place) == inode
    finally:
        os.close(place)


def _open_named(path: bytes) -> int:
    """A descriptor, as a place only, of what stands at a path whose last name may be anybody's.

    OSError: EXDEV where a file system is mounted there.
    """
    folder = os.open(os.path.dirname(path) or b".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return open_beneath(folder, os.path.basename(path), THERE)
    finally:
        os.close(folder)


def peer(socket: _socket.socket) -> tuple[int, int, int]:
    """The client's pid, user and group."""
    pid, uid, gid = unpack("iII", socket.getsockopt(1, 17, 12))  # SOL_SOCKET, SO_PEERCRED
    return pid, uid, gid


def remove_stale_sockets(folder: bytes, is_stopping: Callable[[], object]) -> None:
    """Unlinks the sockets that killed VMs of this user have left there, and whose regions are gone too."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for _, entry in zip(range(_MOST_NAMES), entries, strict=False)]
    except OSError:
        return
    for name in names:
        if is_stopping():
            return
        pid = _pid_of(name)
        if pid and _is_dead(pid):
            _remove_if_stale(folder + b"/" + name, pid, _is_dead, _LEAST_AGE)


def remove_left_socket(folder: bytes, pid: int, /) -> None:
    """Unlinks the socket that a VM of this user's left, unless a process listens."""
    _remove_if_stale(b"%s/.java_pid%d" % (folder, pid), pid, lambda _: True, 0)


def _remove_if_stale(path: bytes, pid: int, is_over: Callable[[int], bool], least_age: int) -> None:
    try:
        place = _open_named(path)
    except OSError:
        return
    try:
        found = os.fstat(place)
        left = _is_left(found, least_age) and _connect(place) == errno.ECONNREFUSED
        # a new process of the pid may have come meanwhile, and have made its own
        if left and is_named(path, (found.st_dev, found.st_ino)) and is_over(pid):
            remove(path)
    finally:
        os.close(place)


def _pid_of(name: bytes) -> int:
    """That of `.java_pidN`, or of `.java_pidN.tmp`, under which it is made; 0: another name."""
    digits = name.removeprefix(b".java_pid").removesuffix(b".tmp")
    whole = name.startswith(b".java_pid") and digits.isdigit() and len(digits) < 11 and not digits.startswith(b"0")
    return int(digits) if whole and int(digits) < 1 << 31 else 0


def _is_dead(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _is_left(found: os.stat_result, least_age: int) -> bool:
    """A socket of vmscope's that is old enough."""
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid() and time() - found.st_mtime >= least_age


def _connect(place: int) -> int:
    """0, or the errno of connecting to what the descriptor is: ECONNREFUSED where no process listens."""
    probe = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        probe.setblocking(False)
        return probe.connect_ex(f"/proc/self/fd/{place}")
    finally:
        probe.close()


def remove(path: bytes) -> None:
    """Unlinks it, where this process may: it may have another user by now."""
    try:
        os.unlink(path)
    except OSError:
        pass


def check_free(path: bytes) -> None:
    """OSError where the name cannot be had: EADDRINUSE where a process answers there, EXDEV where something is mounted.

    A VM of the same pid in another pid namespace, which shares the folder, answers. What is looked at is what is
    connected to: the name may be another user's, and lead elsewhere by then.
    """
    try:
        place = _open_named(path)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path) from None
        return
    try:
        taken = stat.S_ISSOCK(os.fstat(place).st_mode) and _connect(place) in (0, errno.EAGAIN)
    finally:
        os.close(place)
    if taken:
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), path)
