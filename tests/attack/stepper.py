"""A debugger that stops one thread at each of its system calls: what comes between two of them is no longer luck.

    for call in Stepper(pid):            # each call that names a path, as it is about to be made
        if call.path.endswith("4711"): swap()

The thread goes on when the next call is asked for. Linux on x86-64 and AArch64, as root or for processes of one's own.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

_ALL = 0x40000000  # __WALL: threads of others too
_DETACH, _CONTINUE, _SEIZE, _INTERRUPT, _LISTEN, _SYSCALL_INFO = 17, 24, 0x4206, 0x4207, 0x4208, 0x420E  # PTRACE_*
_SYSCALL_STOPS = 1  # PTRACE_O_TRACESYSGOOD
_EVENT_STOP = 128
_ENTRY = 1
_LONGEST = 4096

# Name and number of the calls with a path, which is their first or, after a folder's or a socket's descriptor, second
# argument.
_CALLS = {
    "x86_64": (
        "open 2 stat 4 stat 6 access 21 rename 82 mkdir 83 rmdir 84 link 86 unlink 87 readlink 89 chmod 90 chown 92",
        "connect 42 bind 49 open 257 mkdir 258 chown 260 stat 262 unlink 263 rename 264 link 265 readlink 267 "
        "chmod 268 access 269 rename 316 stat 332 open 437 access 439 chmod 452",
    ),
    "aarch64": (
        "",
        "mkdir 34 unlink 35 link 37 rename 38 access 48 chmod 53 chown 54 open 56 readlink 78 stat 79 bind 200 "
        "connect 203 rename 276 stat 291 open 437 access 439 chmod 452",
    ),
}
_ADDRESSES = ("bind", "connect")  # a path behind the family
_WITHOUT_PATH = {"x86_64": {247: "waitid"}, "aarch64": {95: "waitid"}}


def _calls() -> dict[int, tuple[str, int]]:
    """By their numbers: their names, and which argument the path is."""
    found = {}
    for place, text in enumerate(_CALLS.get(platform.machine(), ())):
        words = text.split()
        found.update({int(number): (name, place) for name, number in zip(words[::2], words[1::2], strict=True)})
    return found


class Call(NamedTuple):
    name: str
    path: str


class Stepper:
    """Stops the thread `tid` of a process from now on. Skips where that cannot be.

    Of calls without a path it stops at those that `also` names; their path is "".
    """

    def __init__(self, tid: int, also: str = "") -> None:
        self._calls = _calls()
        self._also = {number for number, name in _WITHOUT_PATH.get(platform.machine(), {}).items() if name == also}
        if not self._calls:
            pytest.skip(f"the numbers of the system calls of {platform.machine()} are not known here")
        self._tid = tid
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        try:
            self._ptrace(_SEIZE, 0, _SYSCALL_STOPS)
        except PermissionError:
            pytest.skip("may not trace processes")
        self._ptrace(_INTERRUPT)

    def _ptrace(self, request: int, address: int = 0, data: int = 0) -> None:
        if self._libc.ptrace(request, self._tid, address, data) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def __iter__(self) -> Iterator[Call]:
        """Each call with a path, until the thread ends. What is left by `break` goes on by itself."""
        try:
            while self._wait():
                call = self._call()
                if call is not None:
                    yield call
                self._ptrace(_CONTINUE)
        except ProcessLookupError:
            pass
        finally:
            self.leave()

    def leave(self) -> None:
        try:
            self._ptrace(_DETACH)
        except ProcessLookupError:  # it has ended, or runs
            pass

    def _wait(self) -> bool:
        """Until it stops at a system call; signals are passed on. False: it has ended."""
        while True:
            try:
                _, status = os.waitpid(self._tid, _ALL)
            except ChildProcessError:
                return False
            if not os.WIFSTOPPED(status):
                return False
            number = os.WSTOPSIG(status)
            if number == signal.SIGTRAP | 0x80:
                return True
            if status >> 16 == _EVENT_STOP:
                self._ptrace(_CONTINUE if number == signal.SIGTRAP else _LISTEN)
            else:
                self._ptrace(_CONTINUE, 0, number)

    def _call(self) -> Call | None:
        """That which it is about to make; None: it returns from one, or it has no path."""
        data = ctypes.create_string_buffer(88)
        self._libc.ptrace(_SYSCALL_INFO, self._tid, len(data), ctypes.addressof(data))
        kind, number, *arguments = struct.unpack_from("=B23xQ6Q", data)
        if kind == _ENTRY and number in self._also:
            return Call(_WITHOUT_PATH[platform.machine()][number], "")
        name, place = self._calls.get(number, ("", 0))
        if kind != _ENTRY or not name:
            return None
        return Call(name, self._text(arguments[place] + (2 if name in _ADDRESSES else 0)))

    def _text(self, address: int) -> str:
        with open(f"/proc/{self._tid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            try:
                text = memory.read(_LONGEST)
            except OSError:  # up to the end of the mapping
                return ""
        return text.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def thread(pid: int, name: str) -> int:
    """The tid of a process's thread of that name."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise AssertionError(f"process {pid} has no thread {name!r}")
