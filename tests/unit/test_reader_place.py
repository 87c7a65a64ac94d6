"""Directories on the way to a region: nothing that is mounted there, and no link, is entered unseen."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.implementations import both
from tests.published import cpython, publish
from vmscope import mounts, native
from vmscope.cli import _jvmstat, jps
from vmscope.reader import candidates, discovery, place
from vmscope.reader.snapshot import Reader

MOUNTED = "proc"  # in the root directory


@pytest.fixture(params=both())
def form(request: pytest.FixtureRequest) -> Any:
    return request.param


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


def refusal(function: Callable[..., int], *arguments: object) -> int | None:
    """The number of its error."""
    try:
        os.close(function(*arguments))
    except OSError as error:
        return error.errno
    return None


# -- open_beneath ---------------------------------------------------------------------------------


def test_what_a_directory_has_is_opened(form: Any, folder: int) -> None:
    fd = form.open_beneath(folder, "file", place.FILE)
    assert os.read(fd, 100) == b"content"
    assert not os.get_inheritable(fd)
    os.close(fd)
    for name, flags in (("directory", place.FOLDER), ("file", mounts.THERE), ("directory", place.THROUGH)):
        fd = form.open_beneath(folder, name, flags)
        assert not os.get_inheritable(fd)
        os.close(fd)


def test_a_fifo_holds_nobody_up(form: Any, folder: int) -> None:
    os.close(form.open_beneath(folder, "fifo", place.FILE))


@pytest.mark.parametrize(
    ("name", "flags", "number"),
    [
        ("none", place.FILE, errno.ENOENT),
        ("link", place.FILE, errno.ELOOP),
        ("loop", place.FILE, errno.ELOOP),
        ("file", place.FOLDER, errno.ENOTDIR),
        ("x" * 300, place.FILE, errno.ENAMETOOLONG),
    ],
)
def test_what_cannot_be_opened(form: Any, folder: int, name: str, flags: int, number: int) -> None:
    assert refusal(form.open_beneath, folder, name, flags) == number


def test_what_is_mounted_is_not_opened(form: Any) -> None:
    root = os.open("/", os.O_RDONLY)
    try:
        for flags in (place.FOLDER, place.THROUGH, mounts.THERE):
            assert refusal(form.open_beneath, root, MOUNTED, flags) == errno.EXDEV
    finally:
        os.close(root)


def test_no_descriptor_is_left(form: Any, folder: int) -> None:
    before = os.listdir("/proc/self/fd")
    for name in ("none", "link", "fifo", "x" * 300):
        try:
            os.close(form.open_beneath(folder, name, place.FILE))
        except OSError:
            pass
    assert os.listdir("/proc/self/fd") == before


# -- place ----------------------------------------------------------------------------------------


@pytest.fixture(params=["kernel", "twin"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By openat2, or without it."""
    if request.param == "twin":
        monkeypatch.setattr(native, "open_beneath", mounts.open_beneath)


@pytest.mark.usefixtures("kernel")
def test_a_mount_of_the_kernels_own_is_entered() -> None:
    root = os.open("/", os.O_RDONLY)
    try:
        fd = place.step(root, MOUNTED, place.FOLDER, "/")
    finally:
        os.close(root)
    assert "self" in os.listdir(fd)
    os.close(fd)


@pytest.mark.usefixtures("kernel")
def test_our_own_root_as_a_process_s(tmp_path: Path) -> None:
    publish(tmp_path, 7, b"content")
    for tmp in (str(tmp_path), f"/proc/self/root{tmp_path}"):
        fd = place.open_file(f"{tmp}/hsperfdata_someone/7")
        assert os.read(fd, 100) == b"content"
        os.close(fd)
        assert discovery.tmp_identity(tmp) == (tmp_path.stat().st_dev, tmp_path.stat().st_ino)
        assert [found[:2] for found in discovery.folders(tmp)] == [("someone", f"{tmp}/hsperfdata_someone")]
    with pytest.raises(FileNotFoundError):
        place.enter(f"/proc/self/root{tmp_path}/none")
    assert discovery.tmp_identity("/proc/2147483647/root/tmp") is None


@pytest.mark.usefixtures("kernel")
def test_links_are_not_followed(tmp_path: Path) -> None:
    publish(tmp_path, 7, b"content", user="real")
    (tmp_path / "hsperfdata_link").symlink_to("hsperfdata_real")
    (tmp_path / "hsperfdata_real" / "8").symlink_to("7")
    for path in ("hsperfdata_link/7", "hsperfdata_real/8"):
        assert refusal(place.open_file, f"{tmp_path}/{path}") in (errno.ELOOP, errno.ENOTDIR)
    assert [(found.user, found.pid) for found in candidates(str(tmp_path))] == [("real", 7)]


def test_a_table_of_mounts_names_the_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of them are entered: where, and who could mount them."""
    fd = os.open("/", os.O_PATH)
    number = native_mount(fd)
    own, other = "user:[1]", "user:[2]"

    def answers(kind: str, options: str, users: str, *, root: bool) -> bool:
        line = f"{number} 1 0:50 / / rw shared:1 - {kind} none rw,{options}\n"
        monkeypatch.setattr(mounts, "_table", lambda _: b"1 2 0:3 / / rw - ext4 none rw\n" + line.encode())
        monkeypatch.setattr(os, "readlink", lambda path: own if "self" in path else users)
        return mounts.answers(fd, "7", root=root)

    for kind, options, users, as_root, below in (
        ("tmpfs", "size=1k", other, True, True),
        ("ext4", "errors=continue", own, True, True),
        ("fuse", "user_id=1001,group_id=1001,allow_other", own, False, False),
        ("fuse.sshfs", "user_id=0,group_id=0", own, True, False),
        ("fuse.sshfs", "user_id=0,group_id=0", other, False, False),
        ("overlay", "lowerdir=/a", own, True, True),
        ("overlay", "lowerdir=/a", other, False, False),
    ):
        assert answers(kind, options, users, root=True) == as_root, (kind, options)
        assert answers(kind, options, users, root=False) == below, (kind, options)
    monkeypatch.setattr(mounts, "_table", lambda _: b"")
    assert not mounts.answers(fd, "7", root=True)  # a mount that the process does not see
    os.close(fd)


def test_who_mounted_a_fuse_file_system_where_we_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's and our own are entered: who else mounts one in a folder for all may keep us waiting."""
    fd = os.open("/", os.O_PATH)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for options, expected in (
        ("rw,user_id=0,group_id=0,allow_other", True),
        ("rw,user_id=1000,group_id=1000", True),
        ("rw,user_id=1001,group_id=1000,allow_other", False),
        ("rw,user_id=10,group_id=0,allow_other", False),
        ("rw,user_id=10000", False),
        ("rw", False),
    ):
        line = f"{native_mount(fd)} 1 0:50 / / rw shared:1 - fuse.any none {options}\n"
        monkeypatch.setattr(mounts, "_table", lambda _, line=line: line.encode())
        assert mounts.answers(fd) == expected, options
    os.close(fd)


def native_mount(fd: int) -> str:
    return mounts.mount_id(fd).decode()


# -- very many, and none that may live ------------------------------------------------------------


def test_of_one_owner_so_many_names_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_MAX_FILES", 30)
    monkeypatch.setattr(discovery, "_MAX_FOLDERS", 4)
    for folder in range(6):
        for pid in range(10):
            publish(tmp_path, 1000 + folder * 10 + pid, b"x", user=f"u{folder}")
    assert len(candidates(str(tmp_path))) == 30
    monkeypatch.setattr(discovery, "_MAX_FILES", 1000)
    assert len(candidates(str(tmp_path))) == 40


def test_vms_that_are_starting_are_waited_for_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a list as long as one."""
    waited: list[float] = []

    def wait(self: Reader, seconds: float) -> bool:
        waited.append(seconds)
        clock[0] += max(seconds, 0.0)
        return False

    clock = [100.0]
    monkeypatch.setattr(_jvmstat, "monotonic", lambda: clock[0])
    monkeypatch.setattr(Reader, "wait_accessible", wait)
    for number in range(3):
        publish(tmp_path, os.getpid() if number == 0 else 1 + number, cpython(os.getpid()))
    until = _jvmstat.patience()
    for candidate in candidates(str(tmp_path)):
        jps.line(candidate, frozenset("l"), until)
    assert waited
    assert sum(seconds for seconds in waited if seconds > 0) <= _jvmstat.PATIENCE
