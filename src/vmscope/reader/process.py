"""Facts about a process, read from /proc: when it started, who it is in its namespaces, what it uses."""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, start_new_thread
from errno import ETIMEDOUT

from vmscope.errors import AccessDenied, NoSuchProcess

if sys.platform == "win32":
    from vmscope import win32

    CLOCK_TICKS = 10_000_000  # a second
    PAGE_SIZE = 4096
    PID_MAX = 2**32 - 1
else:
    CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
    PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
    PID_MAX = 2**31 - 1

_ENDED = "ZXx"  # zombie, dead
_CHUNK = 1 << 16


class Process:
    """One look at /proc/PID/stat; on Windows at what the system reports about a handle.

    `ppid` is its parent's pid, 0 for none that this process sees. `uid` is the effective one, or 0 where the process
    hides its memory, as after a change of users. `name` is at most 15 characters of the program's (on Windows its
    path). `start_ticks`, `user_ticks` and `system_ticks` are clock ticks, the first since boot (on Windows units of
    100 ns, the first since 1601). `stack_start` is an address that exec changes, 0 where it cannot be seen. `rss` is
    in bytes, `threads` a count.
    """

    __slots__ = (
        "name",
        "pid",
        "ppid",
        "rss",
        "stack_start",
        "start_ticks",
        "state",
        "system_ticks",
        "threads",
        "uid",
        "user_ticks",
    )

    def __init__(self, pid: int, uid: int, text: bytes) -> None:
        # The name stands in brackets and may hold any character, brackets and newlines too.
        begin, end = text.index(b"("), text.rindex(b")")
        fields = text[end + 2 :].split(None, 26)  # of about 50, these are looked at
        self.pid = pid
        self.uid = uid
        self.name = text[begin + 1 : end].decode("utf-8", "replace")
        self.state = fields[0].decode("ascii")
        self.ppid = int(fields[1])
        self.user_ticks = int(fields[11])
        self.system_ticks = int(fields[12])
        self.threads = int(fields[17])
        self.start_ticks = int(fields[19])
        self.rss = int(fields[21]) * PAGE_SIZE
        self.stack_start = int(fields[25])

    @property
    def program(self) -> str:
        """What a Python runs, by its command line: a script's name, a module's, or `-c`; else the process's name."""
        try:
            words = [os.fsdecode(word) for word in read_file(f"/proc/{self.pid}/cmdline", _CHUNK).split(b"\0")]
        except OSError:
            return self.name
        for position, word in enumerate(words[1:]):
            if words[position] == "-m" or word == "-c":
                return word
            if word and not word.startswith("-"):
                return os.path.basename(word).removesuffix(".py")
        return self.name

    @property
    def alive(self) -> bool:
        """False for a zombie: it has ended, and its parent has not waited for it."""
        return self.state not in _ENDED

    @property
    def cpu_seconds(self) -> float:
        return (self.user_ticks + self.system_ticks) / CLOCK_TICKS

    @property
    def uptime_seconds(self) -> float:
        if sys.platform == "win32":
            return (time.time_ns() // 1_000_000 - self.start_time) / 1000
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.start_ticks / CLOCK_TICKS

    @property
    def start_time(self) -> int:
        """When it started: ms since the epoch, by today's clock."""
        if sys.platform == "win32":
            return win32.milliseconds(self.start_ticks)
        return time.time_ns() // 1_000_000 - int(self.uptime_seconds * 1000)


def read_file(path: str, limit: int) -> bytes:
    """What a file of /proc holds, `limit` bytes of it at most."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while limit > 0 and (part := os.read(fd, min(limit, _CHUNK))):
            parts.append(part)
            limit -= len(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def read_in_time(path: str, limit: int, seconds: float) -> bytes:
    """As `read_file`; OSError ETIMEDOUT where the kernel waits for that process, which may keep it waiting."""
    done = allocate_lock()
    done.acquire()
    results: list[bytes | OSError] = []

    def read() -> None:
        try:
            results.append(read_file(path, limit))
        except OSError as error:
            results.append(error)
        done.release()

    start_new_thread(read, ())  # one that does not come back ends with this process
    if not done.acquire(timeout=seconds):
        raise OSError(ETIMEDOUT, os.strerror(ETIMEDOUT), path)
    if isinstance(results[0], OSError):
        raise results[0]
    return results[0]


def _proc(pid: int, name: str) -> tuple[bytes, int]:
    """What a file of a process holds, and who owns it."""
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, _CHUNK), os.fstat(
                fd
            ).st_uid  # one read gives all of such a file, as it was at one moment
        finally:
            os.close(fd)
    except (FileNotFoundError, ProcessLookupError):
        raise NoSuchProcess(
            f"Process not found: there is no process {pid}", pid=pid, hint="vmscope ps lists the VMs"
        ) from None
    except PermissionError:
        raise AccessDenied(
            f"Permission denied: process {pid} belongs to another user", pid=pid, hint="run this as its user or as root"
        ) from None


if sys.platform == "win32":

    def _look(pid: int) -> Process:
        try:
            facts = win32.process(pid)
            found = Process.__new__(Process)
            found.state = "R" if win32.runs(pid) else "X"
            found.threads = win32.thread_counts().get(pid, 0)
        except OSError as error:
            raise _refused(pid, error) from None
        found.pid = pid
        found.ppid = 0
        found.uid = 0
        found.name = facts.program
        found.user_ticks = facts.user_time
        found.system_ticks = facts.system_time
        found.start_ticks = facts.started
        found.rss = facts.resident
        found.stack_start = 0
        return found

    def _refused(pid: int, error: OSError) -> NoSuchProcess | AccessDenied:
        if error.winerror == win32.ERROR_ACCESS_DENIED:
            return AccessDenied(
                f"Permission denied: process {pid} belongs to another user (Windows error 5)",
                pid=pid,
                hint="run this as its user or as an administrator",
            )
        return NoSuchProcess(
            f"Process not found: there is no process {pid} (Windows error {error.winerror})",
            pid=pid,
            hint="vmscope ps lists the VMs",
        )


def process(pid: int) -> Process:
    """Raises NoSuchProcess, and AccessDenied where other users' processes are hidden."""
    if sys.platform == "win32":
        return _look(pid)
    text, uid = _proc(pid, "stat")
    return Process(pid, uid, text)


def namespace_pids(pid: int) -> list[int]:
    """The pids of one process, from our namespace to its innermost. Errors as `process`. Windows has no namespaces."""
    if sys.platform == "win32":
        return [pid]
    return [int(word) for word in _status(pid, b"\nNSpid:") or [b"%d" % pid]]


_names: dict[int, str] = {}


def user_name(uid: int) -> str:
    """By the passwd entry; the number where there is none, as of a container's own users."""
    name = _names.get(uid)
    if name is None:
        import pwd

        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            name = str(uid)
        _names[uid] = name
    return name


def user_ids(pid: int) -> list[int]:
    """Real, effective, saved and file system uid. Errors as `process`."""
    return [int(word) for word in _status(pid, b"\nUid:")]


def _status(pid: int, key: bytes) -> list[bytes]:
    text, _ = _proc(pid, "status")
    at = text.find(key)
    return [] if at < 0 else text[at + len(key) : text.index(b"\n", at + 1)].split()


def exists(pid: int) -> bool:
    """A process of this pid, a zombie too. AccessDenied when it is not ours to ask about."""
    if sys.platform == "win32":
        try:
            return win32.runs(pid)
        except OSError as error:
            raise _refused(pid, error) from None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        raise AccessDenied(
            f"Operation not permitted: process {pid} belongs to another user",
            pid=pid,
            hint="run this as its user or as root",
        ) from None
    return True


def pids() -> list[int]:
    """Every process that /proc shows, in its order. On Windows none: no process there has files of its own."""
    if sys.platform == "win32":
        return []
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
