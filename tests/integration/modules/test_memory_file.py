"""The region's file: its directory, how it appears, its lock, how it goes. One suite for both kinds of lock.

What needs processes of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import sandbox
from tests.unit.test_memory_file import IMAGE, LOCKS, PID, USER, locked
from tests.unit.test_memory_file import directory as directory
from tests.unit.test_memory_file import lock_kind as lock_kind
from vmscope import native
from vmscope.errors import RegionFileError
from vmscope.memory._directory import Directory
from vmscope.memory._file import create
from vmscope.memory._stale import clean


@pytest.mark.parametrize("free", [0, 1])
def test_no_descriptor_left(tmp_path: Path, free: int) -> None:
    code = f"""
        import resource
        limit = len(os.listdir("/proc/self/fd")) - 1 + {free}
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        answer(**refusal(publish, {str(tmp_path)!r}))
    """
    found = json.loads(sandbox.plain(code))
    assert found["type"] == "RegionFileError"
    assert found["message"].endswith("Too many open files")
    assert ("cannot be looked up" in found["message"]) is not bool(free)


def test_a_child_that_is_waited_for_while_it_is_looked_at(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    path = Path(directory.path) / str(pid)
    path.touch()
    kill = os.kill

    def kill_and_wait(pid: int, number: int) -> None:
        kill(pid, number)
        os.waitpid(pid, 0)

    with monkeypatch.context() as patch:
        patch.setattr(os, "kill", kill_and_wait)
        clean(directory, PID)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a file immutable")
def test_file_that_nobody_may_unlink(directory: Directory) -> None:
    path = Path(directory.path) / str(PID)
    path.touch()
    if subprocess.run(["chattr", "+i", path], capture_output=True).returncode != 0:
        pytest.skip("this file system has no immutable files")
    try:
        assert clean(directory, PID) == []
        with pytest.raises(RegionFileError, match="is there and cannot be unlinked"):
            create(directory, PID, IMAGE)
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


def test_file_size_limit_leaves_nothing(tmp_path: Path) -> None:
    code = f"""
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for refused in ({{}}, {{"tmpfile": errno.EOPNOTSUPP}}, {{"tmpfile": errno.EOPNOTSUPP, "link": errno.EPERM}}):
            {"sandbox.refuse(**refused)" if sandbox.can_refuse() else "pass"}
            answer(found=refusal(publish, {str(tmp_path)!r}), tree=tree({str(tmp_path)!r}))
    """
    for line in sandbox.plain(code).splitlines():
        result = json.loads(line)
        assert result["found"]["type"] == "RegionFileError"
        assert "File too large" in result["found"]["message"]
        assert result["tree"] == [f"{tmp_path}/hsperfdata_{USER}"]


FORK = """
    native.lock_mapping = {lock}
    file, _ = publish({tmp!r})
    ready, says = os.pipe()
    if os.fork() == 0:
        {child}
        os.write(says, b"!")
        os.read(0, 1)  # until the test has looked
        os._exit(0)
    os.read(ready, 1)
    answer(path=file.path)
    os.kill(os.getpid(), 9)
"""


def orphan_with_lock_of(kind: str, tmp: Path, child: str) -> Iterator[str]:
    """The path of a region whose writer was killed, while a child that it forked lives."""
    lock = (
        "native.lock_mapping"
        if kind == "c"
        else "__import__('vmscope.native.region.file_lock').native.region.file_lock.lock_mapping"
    )
    code = sandbox.plain_command(FORK.format(lock=lock, tmp=str(tmp), child=child))
    with subprocess.Popen(code, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        path = json.loads(parent.stdout.readline())["path"]
        assert parent.wait(30) == -9
        os.set_blocking(parent.stdout.fileno(), False)
        assert parent.stdout.read(1) is None, "the child holds the other end, so it lives"
        yield path


@pytest.mark.parametrize("kind", sorted(LOCKS))
@pytest.mark.parametrize("child", ["file.abandon()", "pass", "del file"])
def test_lock_of_a_dead_parent_is_free(tmp_path: Path, kind: str, child: str) -> None:
    if kind == "python" and child == "pass":
        pytest.skip("the twin's lock is inherited until abandon()")
    for path in orphan_with_lock_of(kind, tmp_path, child):
        assert os.path.exists(path)
        assert not locked(path)


@pytest.mark.parametrize("kind", sorted(LOCKS))
def test_child_that_abandons_leaves_the_parent_its_file_and_lock(tmp_path: Path, kind: str) -> None:
    lock = (
        "native.lock_mapping"
        if kind == "c"
        else "__import__('vmscope.native.region.file_lock').native.region.file_lock.lock_mapping"
    )
    code = f"""
        native.lock_mapping = {lock}
        file, _ = publish({str(tmp_path)!r})
        child = os.fork()
        if child == 0:
            file.abandon()
            file.unlink()  # no longer its to unlink
            file.abandon()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        fd = os.open(file.path, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            answer(locked=False)
        except BlockingIOError:
            answer(locked=True)
        file.unlink()
        answer(left=os.path.exists(file.path))
    """
    assert sandbox.plain(code).split("\n")[:2] == ['{"locked": true}', '{"left": false}']


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="only the extension's mapping is not inherited")
def test_forked_child_never_unmaps_what_took_the_address(tmp_path: Path) -> None:
    code = f"""
        import mmap
        file, _ = publish({str(tmp_path)!r})
        if os.fork() == 0:
            pages = [mmap.mmap(-1, mmap.PAGESIZE) for _ in range(64)]  # one of them lands where the lock's page was
            for page in pages:
                page[0] = 1
            maps = open("/proc/self/maps").read()
            file.abandon()
            del file
            assert open("/proc/self/maps").read() == maps
            answer(pages=sum(page[0] for page in pages))
            os._exit(0)
        assert os.wait()[1] == 0
        file.unlink()
    """
    assert sandbox.plain(code) == '{"pages": 64}\n'


def test_started_program_does_not_hold_the_lock(lock_kind: str, directory: Directory) -> None:
    file = create(directory, PID, IMAGE)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as program:
        assert locked(file.path)
        file.abandon()  # as if this process had ended
        assert not locked(file.path)
        assert program.poll() is None
