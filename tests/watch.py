"""A process watched from outside: its descriptors, threads, sockets, signals and memory, and every file that it makes.

The watch stops a process for each look, so that what is seen together was there together. It is pid 1 of a pid
namespace, with a mount namespace and a /tmp of its own: nobody else's files and processes come in between.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen
from typing import NamedTuple

from tests.support import PATIENCE

TMP, CWD, HOME = "/tmp", "/tmp/work", "/tmp/home"
NAMED = f"{CWD}/named-"  # with a digit behind it: a file that a client names
USER = "root"
INTERVAL = 0.005  # seconds between two looks in the background

_SIGNALS = {each.value: each.name for each in signal.Signals}
_LIBC = ctypes.CDLL(None, use_errno=True)


class Finding(NamedTuple):
    """Something that a process has, or has done to a file. In its name stands `<pid>` for the process's, and so on."""

    kind: str
    name: str


# -- files ----------------------------------------------------------------------------------------

_INIT = 0x1 | 0x2 | 0x10 | 0x400 | 0x800  # CLOEXEC, NONBLOCK, UNLIMITED_QUEUE, REPORT_DIR_FID, REPORT_NAME
_ADD_FILE_SYSTEM = 0x1 | 0x100
_OVERFLOW, _FOLDERS_TOO = 0x4000, 0x40000000
_DONE = {0x8: "written", 0x40: "removed", 0x80: "made", 0x100: "made", 0x200: "removed"}  # a move is both
_EVENT = struct.Struct("=IBBHQii")
_NAMED = 2  # the information that has a folder's handle, and a name in it


class Files:
    """What is made, removed or written to, on every file system that fanotify can watch."""

    def __init__(self, needed: str) -> None:
        """OSError where the file system of `needed`, a folder, cannot be watched."""
        self.events: list[tuple[int, str, str]] = []  # who did what to which path
        self._folders: dict[bytes, str] = {}  # by handle: they may be gone by now
        self._mounts: dict[bytes, int] = {}
        self._fd = _call("fanotify_init", _INIT, os.O_RDONLY)
        self._mark(needed)
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            with contextlib.suppress(OSError):
                self._mark(line.split()[4])

    def _mark(self, path: str) -> None:
        mask = sum(_DONE) | _FOLDERS_TOO
        _call("fanotify_mark", self._fd, _ADD_FILE_SYSTEM, ctypes.c_uint64(mask), -100, os.fsencode(path))
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._mounts[os.fstatvfs(fd).f_fsid.to_bytes(8, sys.byteorder)] = fd

    def read(self) -> None:
        """Takes what has happened since."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._take(os.read(self._fd, 1 << 16))

    def _take(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            length, _, _, head, mask, _, pid = _EVENT.unpack_from(data, at)
            assert not mask & _OVERFLOW, "the kernel has lost events"
            path = self._path(data[at + head : at + length])
            self.events += [(pid, done, path) for bit, done in _DONE.items() if mask & bit]
            at += length

    def _path(self, record: bytes) -> str:
        kind, size = record[0], int.from_bytes(record[12:16], sys.byteorder)
        assert kind == _NAMED, f"an event without a name: {kind}"
        mount, handle, name = record[4:12], record[12 : 20 + size], record[20 + size :].partition(b"\0")[0]
        if mount + handle not in self._folders:
            self._folders[mount + handle] = self._open(mount, handle)
        return f"{self._folders[mount + handle]}/{os.fsdecode(name)}"

    def _open(self, mount: bytes, handle: bytes) -> str:
        try:
            fd = _call("open_by_handle_at", self._mounts[mount], handle, os.O_PATH)
        except OSError:  # it has gone
            return "?"
        try:
            return os.readlink(f"/proc/self/fd/{fd}").rstrip("/")
        finally:
            os.close(fd)


def _call(name: str, *arguments: object) -> int:
    result = int(getattr(_LIBC, name)(*arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


# -- names ----------------------------------------------------------------------------------------


def plain(path: str, pid: int | None = None) -> str:
    """A path without what differs from one process to the next; without a pid every number is taken for its own."""
    path = path.removesuffix(" (deleted)")
    path = re.sub(rf"{NAMED}\d", "<file>", path)
    path = path.replace(f"hsperfdata_{USER}", "hsperfdata_<user>").replace(CWD, "<cwd>").replace(HOME, "<home>")
    path = re.sub(r"\b[0-9a-f]{16}\b", "<random>", path)
    path = re.sub(r"/#\d+\b", "/#<n>", path)
    path = re.sub(r"^\?/\d{6}\b", "/tmp/<date>_<pid>/<n>", path)  # its folder is gone
    path = re.sub(r"\b\d{4}(?:_\d\d){5}_(\d+)/\d{6}\b", r"<date>_\1/<n>", path)
    path = re.sub(r"\b\d{4}(?:_\d\d){5}_", "<date>_", path)
    if pid is not None:
        path = re.sub(rf"(?<![\d<]){pid}(?!\d)", "<pid>", path)
    return re.sub(r"(?<=_pid)\d+|(?<=hsperfdata_<user>/)\d+", "<pid>" if pid is None else "<ended>", path)


# -- processes ------------------------------------------------------------------------------------


def _state(pid: int, task: str) -> str:
    return Path(f"/proc/{pid}/task/{task}/stat").read_text().rpartition(") ")[2][0]


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """While all its threads stand still. OSError when it has ended."""
    os.kill(pid, signal.SIGSTOP)
    try:
        end = time.monotonic() + PATIENCE
        while not all(_state(pid, task) in "tT" for task in os.listdir(f"/proc/{pid}/task")):
            if _state(pid, str(pid)) in "ZX":
                raise ProcessLookupError(pid)
            assert time.monotonic() < end, f"process {pid} does not stop"
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _sockets(pid: int) -> tuple[dict[str, str], set[str]]:
    """What each socket of its network namespace is, by inode; the names that Unix sockets have, and open ports."""
    found: dict[str, str] = {}
    names: set[str] = set()
    for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split(None, 7)
        kind = {"0001": "stream", "0002": "datagram", "0005": "packet"}.get(fields[4], fields[4])
        name = plain(fields[7]) if len(fields) > 7 else ""
        listens = "listening" if int(fields[3], 16) & 0x10000 else ""
        found[fields[6]] = " ".join(word for word in ("unix", kind, "socket", listens, name) if word)
        names |= {name} - {""}
    for protocol in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(f"/proc/{pid}/net/{protocol}").read_text().splitlines()[1:]:
                fields = line.split()
                found[fields[9]] = f"{protocol} socket"
                names.add(f"{protocol} port {int(fields[1].rpartition(':')[2], 16)}")
    return found, names


def _descriptors(folder: str, pid: int, sockets: dict[str, str]) -> Iterator[str]:
    for number in os.listdir(f"{folder}/fd"):
        target = os.readlink(f"{folder}/fd/{number}")
        flags = int(re.findall(r"flags:\s*(\d+)", Path(f"{folder}/fdinfo/{number}").read_text())[0], 8)
        kind, _, inode = target.rstrip("]").partition(":[")
        how = ("read", "write", "both")[flags & 3]
        if kind == "socket":
            name = sockets.get(inode, "socket of another kind")
        elif not target.startswith("/"):
            name = target if kind == "anon_inode" else kind
        elif how == "read" and not target.startswith(TMP):
            name = "<system> read"
        else:
            name = f"{plain(target, pid)} {how}"
        yield name if flags & os.O_CLOEXEC else f"{name} inheritable"


def _look(pid: int) -> Iterator[Finding]:
    sockets, names = _sockets(pid)
    yield from (Finding("socket name", name) for name in names)
    tasks = f"/proc/{pid}/task"
    program = Path(f"{tasks}/{pid}/comm").read_text()
    own = sorted(_descriptors(f"{tasks}/{pid}", pid, sockets))
    yield from (Finding("descriptor", f"program: {each}") for each in own)
    for task in set(os.listdir(tasks)) - {str(pid)}:
        name = Path(f"{tasks}/{task}/comm").read_text()
        name = "program" if name == program else name.rstrip("\n")
        yield Finding("thread", name)
        found = sorted(_descriptors(f"{tasks}/{task}", pid, sockets))
        if found != own:  # a table of the thread's own
            yield from (Finding("descriptor", f"{name}: {each}") for each in found)
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        _, rights, _, _, _, *path = line.split(None, 5)
        if "w" in rights and "x" in rights:
            yield Finding("memory", f"{rights} {plain(''.join(path), pid)}".rstrip())
        elif rights.endswith("s"):
            yield Finding("memory", f"{plain(''.join(path), pid)} {rights[:3]}")
    caught = int(re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())[0], 16)
    for number in {*range(1, 32), *range(signal.SIGRTMIN, signal.SIGRTMAX + 1)}:  # the others are the C library's
        if caught >> number - 1 & 1:
            yield Finding("signal", _SIGNALS.get(number, str(number)))


def look(pid: int) -> set[Finding]:
    """What a process has now; nothing once it has ended."""
    try:
        with stopped(pid):
            return set(_look(pid))
    except (FileNotFoundError, ProcessLookupError):
        return set()


# -- the watch ------------------------------------------------------------------------------------


class Watch:
    """Looks at every process of the namespace, and at all that they do to files, until it is closed.

    Clients, which it starts itself, are not looked at.
    """

    def __init__(self) -> None:
        self.strangers: set[int] = {0, os.getpid()}  # 0: outside of the namespace
        self.seen: dict[Finding, str] = {}  # and in which phase first
        self.phase = ""
        self.files = Files(TMP)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._go_on)
        self._thread.start()

    def start(self, command: Sequence[str], **environment: str) -> Popen[str]:
        """A program to watch."""
        variables = {**os.environ, "HOME": HOME, "PYTHONDONTWRITEBYTECODE": "1", **environment}
        with self._lock:  # no look comes before it is another program
            return Popen(command, stdin=PIPE, stdout=PIPE, text=True, cwd=CWD, env=variables)

    def client(self, *command: str) -> Popen[str]:
        with self._lock:  # no look comes before it is known
            made = Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, text=True)
            self.strangers.add(made.pid)
        return made

    def _go_on(self) -> None:
        try:
            while not self._over.wait(INTERVAL):
                for name in os.listdir("/proc"):
                    if name.isdigit():
                        self.look(int(name))
                self.files.read()
        except BaseException as error:
            self._error = error

    def look(self, pid: int) -> set[Finding]:
        """What a process has now."""
        with self._lock:
            found = set() if pid in self.strangers else look(pid)
            for each in found:
                self.seen.setdefault(each, self.phase)
            return found

    def wait_for(self, pid: int, right: Callable[[set[Finding]], object], patience: float = PATIENCE) -> set[Finding]:
        """Looks until that is right; what it has seen last."""
        end = time.monotonic() + patience
        while not right(found := self.look(pid)) and time.monotonic() < end:
            time.sleep(INTERVAL)  # what is seen last is compared, if it is never right
        return found

    def close(self) -> set[tuple[str, str]]:
        """What has been done to which files."""
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        self.files.read()
        return {(done, plain(path, pid)) for pid, done, path in self.files.events if pid not in self.strangers}
