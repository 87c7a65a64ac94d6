"""Directories on the way to a region: nothing that is mounted there, and no link, is entered unseen.

What needs processes of its own.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.published import cpython, publish
from vmscope.reader import attachment


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


OLD_KERNEL = """
import ctypes, errno, os, struct, sys
from vmscope import native
libc = ctypes.CDLL(None, use_errno=True)
# Of all system calls openat2 (437 everywhere) is refused, as by an old kernel or a sandbox.
program = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x50000 | int(sys.argv[1])), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
filters = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filters, 0, 0) == 0, os.strerror(ctypes.get_errno())
def refusal(folder, name, flags):
    try:
        os.close(native.open_beneath(folder, name, flags))
    except OSError as error:
        return error.errno
folder, root = os.open(sys.argv[2], os.O_RDONLY), os.open("/", os.O_PATH)
before = os.listdir("/proc/self/fd")
fd = native.open_beneath(folder, "file", os.O_RDONLY)
assert os.read(fd, 100) == b"content" and not os.get_inheritable(fd)
os.close(fd)
os.close(native.open_beneath(folder, "directory", os.O_RDONLY | os.O_DIRECTORY))
found = [refusal(folder, "none", 0), refusal(folder, "link", 0), refusal(folder, "link", os.O_PATH),
         refusal(folder, "file", os.O_DIRECTORY), refusal(root, "proc", os.O_PATH), refusal(root, "proc", 0)]
assert found == [errno.ENOENT, errno.ELOOP, errno.ELOOP, errno.ENOTDIR, errno.EXDEV, errno.EXDEV], found
assert os.listdir("/proc/self/fd") == before
"""


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM], ids=["old kernel", "sandbox"])
def test_without_openat2(number: int, implementation: str, folder: int) -> None:
    path = os.readlink(f"/proc/self/fd/{folder}")
    run = subprocess.run(
        [sys.executable, "-c", OLD_KERNEL, str(number), path], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_a_file_whose_pid_nobody_has_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vmscope import reader

    opened: list[int] = []
    real = attachment.open_candidate

    def watched(candidate: reader.Candidate) -> reader.Attachment:
        opened.append(candidate.pid)
        return real(candidate)

    monkeypatch.setattr(reader, "open_candidate", watched)
    gone = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(gone, 0)
    publish(tmp_path, gone, cpython(os.getpid()))
    publish(tmp_path, os.getpid(), cpython(os.getpid()))
    for vm in reader.vms(tmp=str(tmp_path)):
        vm.close()
    assert opened == [os.getpid()]
    for vm in reader.vms(tmp=str(tmp_path), stale=True):
        vm.close()
    assert sorted(opened[1:]) == sorted([os.getpid(), gone])
