"""The twin of socket.c: the name that clients know, and who they are."""

from __future__ import annotations

import _socket
import errno
import os
import stat
from struct import unpack


def bind(path: bytes, temporary: bytes, backlog: int) -> tuple[_socket.socket, tuple[int, int]]:
    """Under another name, closed to others from the first, and renamed when it listens. With its device and inode."""
    if len(max(path, temporary)) > 107:
        raise ValueError("a path that is too long for a socket")
    if is_taken(path):
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), path)
    made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        os.fchmod(made.fileno(), 0o600)
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
    return made, (found.st_dev, found.st_ino)


def peer(socket: _socket.socket) -> tuple[int, int]:
    pid, uid, _ = unpack("3i", socket.getsockopt(1, 17, 12))  # SOL_SOCKET, SO_PEERCRED
    return pid, uid


def remove(path: bytes) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def is_taken(path: bytes) -> bool:
    """Whether somebody answers there: a VM of the same pid in another pid namespace, which shares the folder."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
    except OSError:
        return False
    probe = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        probe.setblocking(False)
        probe.connect(path)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        probe.close()
    return True
