"""What the kernel knows of this process's native threads."""

from __future__ import annotations

import os
import time

FOLDER = "/proc/self/task"
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Task:
    """One native thread as of now; of one that has ended, or where there is no /proc, nothing but its number."""

    __slots__ = ("cpu", "elapsed", "name", "native_id", "nice", "running", "stack", "there")

    def __init__(self, native_id: int, now: float) -> None:
        self.native_id = native_id
        self.name = ""
        self.cpu = 0  # ns
        self.elapsed = 0.0  # s
        self.nice = 0
        self.running = False
        self.stack = 0  # where its stack's pointer is, where it waits in the kernel
        text = read(f"{FOLDER}/{native_id}/stat")
        self.there = bool(text)
        if text:
            head, _, rest = text.rpartition(")")
            fields = rest.split()
            self.name = head.partition("(")[2]
            self.running = fields[0] == "R"
            self.nice = int(fields[16])
            self.elapsed = max(0.0, now - int(fields[19]) / _TICKS)
        try:
            self.cpu = time.clock_gettime_ns(~native_id << 3 | 6)  # the clock that Linux has for a thread's number
        except OSError:
            self.there = False


def read(path: str) -> str:
    """A small file of /proc; "" where it is not there any more."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, 4096).decode(errors="replace")
    except OSError:  # the thread has ended meanwhile
        return ""
    finally:
        os.close(fd)


def native_ids() -> list[int]:
    """Of all native threads, the oldest first."""
    try:
        return sorted(int(name) for name in os.listdir(FOLDER))
    except OSError:
        return []
