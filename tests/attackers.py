"""Users who want to hold root's tools up: processes of theirs, the regions they make, a file system that never answers.

For code that runs on a machine of its own (tests/oracle/isolated.py), as its root.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import pwd
import select
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import vmscope
import vmscope.runtime  # the user may be unable to enter the package's folder
from vmscope.wire import encode

ATTACKER = 1001  # a uid
HONEST = pwd.getpwnam("nobody").pw_uid  # who has a name, as a user must whose VMs publish regions

_libc = ctypes.CDLL(None, use_errno=True)


def process_of(uid: int, body: Callable[[], object]) -> int:
    """A process of a user's, which has done `body` and stays; its pid. The end of this process is its end too."""
    ready, write_ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(ready)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            _libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, as a process of that user's own is
            _libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
            body()
            os.write(write_ready, b".")
            while True:
                signal.pause()
        except BaseException as error:
            sys.stderr.write(f"process of {uid}: {error!r}\n")
        finally:
            os._exit(status)
    os.close(write_ready)
    told = os.read(ready, 1)
    os.close(ready)
    if not told:
        raise RuntimeError(f"the process of {uid} has failed")
    return pid


def honest_vm(uid: int = HONEST) -> int:
    """A VM of another user's, as it should be."""
    return process_of(uid, vmscope.start)


# -- regions --------------------------------------------------------------------------------------


def publish(content: bytes, *, size: int = 0, user: str = "attacker", name: str = "", lock: bool = True) -> int:
    """Makes a region's file of this process's, which then has the lock on it; gives back its descriptor."""
    folder = f"/tmp/hsperfdata_{user}"
    os.makedirs(folder, mode=0o755, exist_ok=True)
    fd = os.open(f"{folder}/{name or os.getpid()}", os.O_RDWR | os.O_CREAT, 0o644)
    if lock:
        fcntl.flock(fd, fcntl.LOCK_EX)
    os.ftruncate(fd, size or len(content) + -len(content) % 4096)
    os.pwrite(fd, content, 0)
    return fd


def identity(main: str = "evil.py") -> list[bytes]:
    """The entries that say what a VM is."""
    texts = {
        "java.property.java.vm.name": "CPython",
        "java.property.java.vm.version": "3.13.0",
        "sun.rt.javaCommand": main,
    }
    return [encode.entry(name, units=5, variability=1, value=text.encode()) for name, text in texts.items()]


def region(entries: list[bytes], *, used: int = 0, count: int = 0, accessible: int = 1) -> bytes:
    """Its first bytes, whatever the prologue is to say."""
    body = b"".join(entries)
    head = encode.prologue(used=used or 32 + len(body), num_entries=count or len(entries), accessible=accessible)
    return head + body


LARGE = 48 << 20


def sparse() -> None:
    """48 MiB are said to be used, and 2^31 - 1 entries: there are three."""
    publish(region(identity(), used=LARGE - 64, count=2**31 - 1), size=LARGE)


def dense() -> None:
    """48 MiB of entries."""
    entry = encode.entry("n", units=1, variability=3, value=1)
    body = entry * ((LARGE - 4096) // len(entry))
    publish(region([*identity(), body], count=2**31 - 1), size=LARGE)


def restless() -> None:
    """The number of entries changes all the time."""
    fd = publish(region(identity(), used=LARGE - 64, count=2**31 - 1), size=LARGE)
    if os.fork() == 0:
        _libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        number = 0
        while True:
            number += 1
            os.pwrite(fd, struct.pack("=i", 2**31 - 1 - number % 1000), 28)


def long_name() -> None:
    """A name and a text of megabytes, the first of all entries."""
    long = encode.entry("x" * (4 << 20), units=1, variability=3, value=1)
    text = encode.entry("text", units=5, variability=1, value="😀".encode() * (1 << 20))
    publish(region([long, text, *identity()]))


def long_main() -> None:
    """What every list shows of it has megabytes, in the place where lists look for it."""
    publish(region(identity("m" * 100_000)))


def half() -> None:
    """An entry that is never finished."""
    broken = bytearray(encode.entry("broken", units=1, variability=3, value=1))
    broken[12] = 0
    publish(region([*identity(), bytes(broken), *identity()], used=LARGE - 64), size=LARGE)


def broken() -> None:
    """No entry of it can be read."""
    publish(region([struct.pack("=i", 40) + bytes(36)]))


def version_1() -> None:
    """Of the time of JDK 1.4, and full of entries."""
    entry = struct.pack("=iii4B", 24, 2, 0, 11, 0, 1, 1) + b"n\0" + bytes(6)
    head = bytes.fromhex("cafec0c0") + struct.pack("=3Bxiiq", 1, 1, 0, LARGE - 64, 0, 1)
    publish(head + entry * (LARGE // len(entry) - 1), size=LARGE)


def starting() -> None:
    """It never says that it can be read."""
    publish(region(identity(), accessible=0))


KINDS = (sparse, dense, restless, long_name, long_main, half, broken, version_1, starting)


# -- tools ----------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """What a tool did, and what it took: seconds of processor time, bytes of memory."""

    status: int
    output: str
    error: str
    cpu: float
    memory: int


def ours(*arguments: str, timeout: float = 100) -> Ran:
    """Runs one of vmscope's tools. TimeoutExpired where it does not come back; then it may stay for ever."""
    command = [sys.executable, "-m", "vmscope", *arguments]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as error:
        pid = os.posix_spawn(
            command[0],
            command,
            {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), 1), (os.POSIX_SPAWN_DUP2, error.fileno(), 2)],
        )
        pidfd = os.pidfd_open(pid)
        try:
            if not select.select([pidfd], [], [], timeout)[0]:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(command, timeout)
        finally:
            os.close(pidfd)
        _, status, usage = os.wait4(pid, 0)
        output.seek(0)
        error.seek(0)
        return Ran(
            os.waitstatus_to_exitcode(status),
            output.read().decode(),
            error.read().decode(),
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss << 10,
        )


# -- a file system that never answers -------------------------------------------------------------

_INIT, _HEADER, _ANSWER = 26, struct.Struct("=IIQQIIII"), struct.Struct("=IiQ")


@contextmanager
def silent_file_system(path: str, uid: int = ATTACKER) -> Iterator[None]:
    """A FUSE file system of this user's that all may use, mounted at a path: from its first request on it is silent.

    Whoever asks it for anything cannot even be killed, until it goes.
    """
    fd = os.open("/dev/fuse", os.O_RDWR)
    kind = 0o40000 if os.path.isdir(path) else 0o100000
    options = f"fd={fd},rootmode={kind:o},user_id={uid},group_id={uid},allow_other"
    if _libc.mount(b"silent", path.encode(), b"fuse", 0, options.encode()) != 0:
        number = ctypes.get_errno()
        os.close(fd)
        raise OSError(number, os.strerror(number), path)
    pid = os.fork()
    if pid == 0:
        _libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        while True:
            try:
                request = os.read(fd, 1 << 20)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    os._exit(0)
                continue
            _, operation, unique, *_ = _HEADER.unpack_from(request)
            if operation == _INIT:
                answer = struct.pack("=IIIIHHIIHH8I", 7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1, 32, 0, *[0] * 8)
                os.write(fd, _ANSWER.pack(_ANSWER.size + len(answer), 0, unique) + answer)
    os.close(fd)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        _libc.umount2(path.encode(), 2)  # MNT_DETACH


def can_be_silent() -> bool:
    return os.path.exists("/dev/fuse") and os.geteuid() == 0
