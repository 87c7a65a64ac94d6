"""Directories on the way to a region: nothing that is mounted there, and no link, is entered unseen.

What needs processes of its own.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import programs
from tests.published import cpython, publish
from tests.unit.test_reader_place import folder as folder
from vmscope.reader import attachment

OLD_KERNEL = programs.source("reader_place/old_kernel")


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
