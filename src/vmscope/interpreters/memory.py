"""Another process's memory, read through /proc, and why it may not be read."""

from __future__ import annotations

import os
import struct

from vmscope.errors import AccessDenied, NoSuchProcess, VMScopeError
from vmscope.reader.process import exists, read_file, user_ids

WORD = 8
_TOP = 1 << 63  # what is above is the kernel's
_PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"  # 0: each user its own processes; 1, 2: root; 3: none


class Unreadable(ValueError):
    """There is no such memory."""


class Memory:
    """The memory of one process, until it ends or executes another program. Close it."""

    __slots__ = ("_fd", "pid")

    def __init__(self, pid: int) -> None:
        """Raises NoSuchProcess, and AccessDenied with what to do."""
        self.pid = pid
        self._fd = -1
        try:
            self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            raise denied(pid) from None
        except (FileNotFoundError, ProcessLookupError):
            raise gone(pid) from None

    def read(self, address: int, size: int) -> bytes:
        """Raises Unreadable, as where there is less of it."""
        if not 0 < address < _TOP - size:
            raise Unreadable(address)
        try:
            data = os.pread(self._fd, size, address)
        except OSError:
            raise Unreadable(address) from None
        if len(data) < size:
            raise Unreadable(address)
        return data

    def word(self, address: int) -> int:
        return int.from_bytes(self.read(address, WORD), "little")

    def words(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}Q", self.read(address, count * WORD))

    def text(self, address: int, limit: int = 200) -> str:
        """The text up to a NUL."""
        data = b""
        while len(data) < limit and b"\0" not in data:
            data += self.read(address + len(data), 8)
        return data.partition(b"\0")[0].decode("utf-8", "replace")

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def gone(pid: int) -> NoSuchProcess:
    return NoSuchProcess(f"Process not found: there is no process {pid}", pid=pid, hint="vmscope ps lists the VMs")


def denied(pid: int) -> VMScopeError:
    """Why this user may not read the memory of a process, and what to do."""
    euid = os.geteuid()
    try:
        if not exists(pid):
            return gone(pid)
        own = set(user_ids(pid)) == {euid}
    except VMScopeError:
        own = False
    if euid != 0 and not own:
        return AccessDenied(
            f"Permission denied: process {pid} belongs to another user", pid=pid, hint="run this as its user or as root"
        )
    try:
        scope = read_file(_PTRACE_SCOPE, 16).strip().decode("ascii", "replace")
    except OSError:  # a kernel without Yama
        scope = "0"
    if scope == "3":
        hint = "no process may until this system is started again with another value"
    elif euid == 0:
        hint = "it takes CAP_SYS_PTRACE, which root does not have in every container: docker run --cap-add SYS_PTRACE"
    elif scope == "0":
        hint = "it hides its memory, as after a change of its user: run this as root"
    elif scope == "1":
        hint = "run this as root, or set kernel.yama.ptrace_scope to 0: sudo sysctl kernel.yama.ptrace_scope=0"
    else:
        hint = "run this as root"
    why = "" if scope == "0" else f" (kernel.yama.ptrace_scope is {scope})"
    return AccessDenied(
        f"Permission denied: this user may not read the memory of process {pid}{why}", pid=pid, hint=hint
    )
