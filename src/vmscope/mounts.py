"""What is mounted where other users may have mounted it, looked at so that no other user can hold vmscope up.

Every user may mount a FUSE file system under a name of theirs, as in /tmp, and need not answer: whoever opens a file
in it, or only asks for its size, waits for ever, and cannot even be killed. So a name is opened on the mount that its
folder is on (`native.open_beneath`). Where another is mounted, a socket or a file is taken by another user. A folder
may be mounted there by root: what it is of is looked up in the table of mounts, which asks nothing of the file system.
"""

from __future__ import annotations

import os
from errno import ELOOP, ENOTDIR, ENXIO, EXDEV
from stat import S_ISDIR, S_ISLNK, S_ISREG

THERE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC if os.name != "nt" else 0  # opening it asks nothing of what is mounted
# The kernel itself answers for these. Of others a process does, or another machine: as it likes.
_KERNELS = frozenset(
    b"ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs jfs reiserfs overlay tmpfs ramfs rootfs squashfs erofs iso9660".split()
)
_LIMIT = 16 << 20  # bytes of a table of mounts


def open_beneath(folder: int, name: str | bytes, flags: int, /) -> int:
    """A descriptor of what a directory has under this name.

    OSError: EXDEV where something is mounted there; for a symbolic link ELOOP, or ENOTDIR where a directory is wanted.
    """
    place = os.open(name, THERE, dir_fd=folder)
    try:
        if mount_id(place) != mount_id(folder):
            raise OSError(EXDEV, os.strerror(EXDEV))
        if S_ISLNK(os.fstat(place).st_mode):
            code = ENOTDIR if flags & os.O_DIRECTORY else ELOOP
            raise OSError(code, os.strerror(code))
        return os.open(f"/proc/self/fd/{place}", (flags | os.O_CLOEXEC) & ~os.O_NOFOLLOW)
    finally:
        os.close(place)


def open_mounted(folder: int, name: str, flags: int, pid: str = "self") -> int:
    """The same across a mount, where that answers.

    OSError: EXDEV where it may not, ENXIO for what is neither a file nor a directory.
    """
    place = os.open(name, THERE, dir_fd=folder)
    try:
        if not answers(place, pid):
            raise OSError(EXDEV, "on a file system that may not answer")
    except BaseException:
        os.close(place)
        raise
    return place if flags == THERE else opened(place, flags)


def opened(place: int, flags: int) -> int:
    """A descriptor of the file or directory that `place`, which is closed, only names."""
    try:
        mode = os.fstat(place).st_mode
        if not (S_ISREG(mode) or S_ISDIR(mode)):
            raise OSError(ENXIO, os.strerror(ENXIO))
        return os.open(f"/proc/self/fd/{place}", flags & ~os.O_NOFOLLOW)
    finally:
        os.close(place)


def mount_id(fd: int) -> bytes:
    """The number of the mount that a descriptor is on."""
    info = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(info, 4096)
    finally:
        os.close(info)
    return text.partition(b"mnt_id:")[2].split(None, 1)[0]


def root_of(pid: int | str) -> tuple[str, str] | None:
    """What tells roots apart without a look at any: the mount namespace and the path in it; None where it is hidden."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt"), os.readlink(f"/proc/{pid}/root")
    except OSError:
        return None


_as_root = False


def read_as_root() -> None:
    """From now on the checks are root's: of a process that was root, and has kept the right to read. No file system of
    its present user's is let off: other processes have that uid too."""
    global _as_root
    _as_root = True


def reads_as_root() -> bool:
    return _as_root


def is_kernels(fd: int) -> bool:
    """Whether a descriptor (O_PATH) is on a file system whose owners and modes are the kernel's word."""
    return _mount(fd, "self")[0] in _KERNELS


def answers(fd: int, pid: str = "self", *, root: bool = False) -> bool:
    """Whether a descriptor is on a file system that asks no process of another user's.

    A FUSE file system is let off where root or we have mounted it. Of those that another process sees (`pid`) it is the
    one that its root is, as a container's may be.
    """
    kind, options = _mount(fd, pid)
    if kind is None:
        return False
    if kind.startswith(b"fuse"):
        if pid == "self":
            users = (0,) if _as_root else (0, os.geteuid())
            return any(b",user_id=%d," % user in options for user in users)
        if not (root and b",user_id=0," in options):
            return False
    elif kind != b"overlay":
        return True
    # What was mounted in a user namespace was not by root; and an overlay may have a FUSE file system below.
    return os.readlink(f"/proc/{pid}/ns/user") == os.readlink("/proc/self/ns/user")


def _mount(fd: int, pid: str) -> tuple[bytes | None, bytes]:
    """Type and options of the file system that a descriptor is on; None where the process does not see it."""
    number = mount_id(fd)
    # 36 35 98:0 /part /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    for line in _table(pid).splitlines():
        if line.startswith(number + b" "):
            kind, _, options = line.partition(b" - ")[2].split(b" ", 2)
            return kind, b"," + options + b","
    return None, b""


def _table(pid: str) -> bytes:
    with open(f"/proc/{pid}/mountinfo", "rb") as file:
        return file.read(_LIMIT)
