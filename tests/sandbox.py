"""Children in surroundings of the test's own: namespaces, small file systems, system calls that are refused."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

# What every child starts with. It imports before anything is mounted, as that may hide the package.
PRELUDE = "from tests.programs.sandbox import *\n"

# What a child that becomes another user must have imported before: it may be unable to enter the package's folder.
PRELOAD = (
    *("json", "subprocess", "vmscope.process_status", "vmscope.runtime"),
    *("vmscope.memory._file", "vmscope.memory._stale", "tests.programs.sandbox"),
)


def program(code: str) -> str:
    return PRELUDE + dedent(code)


def command(code: str, *, mounts: str = "", pid: bool = False) -> list[str]:
    """The command line of a child in a mount namespace (with `pid`, also a pid namespace, in which it is pid 1).

    It imports PRELUDE, runs the shell lines `mounts`, then `code`. Skips where namespaces are not to be had.
    """
    unshare = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs unshare and the right to make namespaces")
    if pid:
        unshare += ["--pid", "--fork", "--kill-child", "--mount-proc"]
    setup = f"subprocess.run(['sh', '-ec', {mounts!r}], check=True)\n" if mounts else ""
    return [*unshare, sys.executable, "-c", PRELUDE + setup + dedent(code)]


def run(code: str, *, mounts: str = "", pid: bool = False, timeout: float = 60) -> str:
    """What the child of `command` prints. AssertionError when it fails or writes to stderr."""
    child = subprocess.run(command(code, mounts=mounts, pid=pid), capture_output=True, text=True, timeout=timeout)
    assert child.returncode == 0, child.stderr
    assert child.stderr == "", child.stderr
    return child.stdout


def plain_command(code: str) -> list[str]:
    """The same without any namespace."""
    return [sys.executable, "-c", program(code)]


def plain(code: str, timeout: float = 60) -> str:
    """What the child of `plain_command` prints."""
    child = subprocess.run(plain_command(code), capture_output=True, text=True, timeout=timeout)
    assert child.returncode == 0, child.stderr
    assert child.stderr == "", child.stderr
    return child.stdout


def answers(code: str, *arguments: str, options: Sequence[str] = (), cwd: Path | str = ".") -> list[Any]:
    """What a plain child gives to `answer`, call by call. Nothing may come on stderr."""
    command = plain_command(f"os.chdir({str(cwd)!r})\n" + dedent(code))
    command[1:1] = options
    child = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=100)
    assert child.stderr == "", child.stdout + child.stderr
    assert child.returncode == 0, child.stdout
    return [json.loads(line) for line in child.stdout.splitlines()]


# -- system calls that are refused ----------------------------------------------------------------

_CALLS = {"x86_64": (0xC000003E, 257, 265), "aarch64": (0xC00000B7, 56, 37)}  # audit arch, openat, linkat
_CLOSE_RANGE = 436  # everywhere
_O_TMPFILE = 0o20000000  # without the O_DIRECTORY that os.O_TMPFILE includes


def can_refuse() -> bool:
    return sys.platform == "linux" and platform.machine() in _CALLS


def refuse(*, tmpfile: int = 0, link: int = 0, close_range: int = 0) -> None:
    """From now on the kernel answers open with O_TMPFILE, link, or close_range, with these errnos in this process.

    EOPNOTSUPP and EPERM are what file systems say that have neither of the first two; ENOSYS a kernel before 5.9.
    """
    arch, openat, linkat = _CALLS[platform.machine()]

    def load(offset: int) -> bytes:
        return struct.pack("=HBBI", 0x20, 0, 0, offset)

    def skip_unless(code: int, value: int, count: int) -> bytes:
        return struct.pack("=HBBI", code, 0, count, value)

    def fail(number: int) -> bytes:
        return struct.pack("=HBBI", 0x06, 0, 0, 0x00050000 | number)  # SECCOMP_RET_ERRNO

    equal, any_bit = 0x15, 0x45
    program = load(4) + struct.pack("=HBBI", equal, 1, 0, arch) + fail(errno.ENOSYS)
    if tmpfile:
        refused = load(32) + skip_unless(any_bit, _O_TMPFILE, 1) + fail(tmpfile)
        program += load(0) + skip_unless(equal, openat, 3) + refused
    if link:
        program += load(0) + skip_unless(equal, linkat, 1) + fail(link)
    if close_range:
        program += load(0) + skip_unless(equal, _CLOSE_RANGE, 1) + fail(close_range)
    program += struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)  # SECCOMP_RET_ALLOW

    instructions = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((38, 1, 0, 0, 0), (22, 2, ctypes.create_string_buffer(head, len(head)), 0, 0)):
        if libc.prctl(*call) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
