"""The region's file: its directory, how it appears, its lock, how it goes. One suite for both kinds of lock."""

from __future__ import annotations

import fcntl
import os
import pwd
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vmscope import native
from vmscope.errors import InsecureDirectory, RegionFileError
from vmscope.memory import _directory, _file
from vmscope.memory._directory import Directory, open_directory
from vmscope.memory._file import create
from vmscope.native.region import file_lock

IMAGE = bytes.fromhex("cafec0c001020001") + bytes(24) + bytes(range(256)) * 255 + bytes(224)
PID = 2**22 + 7  # beyond the largest pid of any Linux: nobody's
USER = pwd.getpwuid(os.geteuid()).pw_name
LOCKS: dict[str, Callable[[int, int], _file.Lock]] = {"python": file_lock.lock_mapping}
if native.IMPLEMENTATION == "c":
    LOCKS["c"] = native.lock_mapping


@pytest.fixture(params=sorted(LOCKS))
def lock_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which `lock_mapping` the file uses."""
    kind = str(request.param)
    monkeypatch.setattr(native, "lock_mapping", LOCKS[kind])
    return kind


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    with open_directory(tmp=str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    try:
        yield os.umask
    finally:
        os.umask(before)


def locked(path: str) -> bool:
    """Whether somebody holds the file's lock."""
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def descriptors() -> dict[str, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the listing's own
            continue
    return found


# -- the directory --------------------------------------------------------------------------------


def test_directory_is_made_with_mode_755(tmp_path: Path, umask: Callable[[int], int]) -> None:
    umask(0)
    with open_directory(tmp=str(tmp_path)) as directory:
        assert directory.path == f"{tmp_path}/hsperfdata_{USER}"
        assert directory.user == USER
        assert stat.S_IMODE(os.stat(directory.path).st_mode) == 0o755
        assert os.path.samestat(os.fstat(directory.fd), os.stat(directory.path))
        assert not os.get_inheritable(directory.fd)


def test_directory_keeps_what_the_umask_takes_from_others(tmp_path: Path, umask: Callable[[int], int]) -> None:
    umask(0o077)
    with open_directory(tmp=str(tmp_path)) as directory:
        assert stat.S_IMODE(os.stat(directory.path).st_mode) == 0o700


def test_directory_that_is_there_is_opened(tmp_path: Path) -> None:
    open_directory(tmp=str(tmp_path)).close()
    before = os.stat(tmp_path / f"hsperfdata_{USER}")
    with open_directory(tmp=str(tmp_path)) as directory:
        assert os.path.samestat(before, os.fstat(directory.fd))


def test_closing_the_directory_twice_gives_one_descriptor_back(tmp_path: Path) -> None:
    before = descriptors()
    directory = open_directory(tmp=str(tmp_path))
    fd = directory.fd
    directory.close()
    with open(os.devnull) as other:
        os.dup2(other.fileno(), fd)  # what has its number now
        try:
            directory.close()
            assert os.fstat(fd)
        finally:
            os.close(fd)
    assert descriptors() == before


def test_tmpdir_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with open_directory() as directory:
        assert directory.path == f"/tmp/hsperfdata_{USER}"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o720, 0o1777])
def test_directory_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / f"hsperfdata_{USER}"
    path.mkdir()
    path.chmod(mode)
    before = descriptors()
    with pytest.raises(InsecureDirectory, match=f"can be written by others .mode {mode:04o}.") as refused:
        open_directory(tmp=str(tmp_path))
    assert refused.value.path == str(path)
    assert refused.value.hint == f"chmod go-w {path}"
    assert descriptors() == before


def test_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / f"hsperfdata_{USER}"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InsecureDirectory, match="is a symbolic link"):
        open_directory(tmp=str(tmp_path))


def test_dangling_symbolic_link_is_refused_and_not_filled(tmp_path: Path) -> None:
    (tmp_path / f"hsperfdata_{USER}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InsecureDirectory, match="is a symbolic link"):
        open_directory(tmp=str(tmp_path))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo], ids=["file", "fifo"])
def test_what_is_no_directory_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / f"hsperfdata_{USER}")
    with pytest.raises(InsecureDirectory, match="is not a directory"):
        open_directory(tmp=str(tmp_path))


def test_directory_swapped_after_it_was_opened_is_refused(tmp_path: Path) -> None:
    with open_directory(tmp=str(tmp_path)) as directory:
        os.rename(directory.path, f"{directory.path}.old")
        with pytest.raises(InsecureDirectory, match="was replaced"):
            _directory._check(directory.fd, directory.path, os.geteuid())
        os.mkdir(directory.path)
        with pytest.raises(InsecureDirectory, match="was replaced"):
            _directory._check(directory.fd, directory.path, os.geteuid())


def test_tmp_that_is_missing_or_no_directory(tmp_path: Path) -> None:
    with pytest.raises(RegionFileError, match="nowhere does not exist"):
        open_directory(tmp=f"{tmp_path}/nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(RegionFileError, match="file is not a directory"):
        open_directory(tmp=f"{tmp_path}/file")


def test_user_without_a_passwd_entry(tmp_path: Path) -> None:
    nobody = 3_999_999_999
    with pytest.raises(RegionFileError, match=f"no passwd entry was found for user id {nobody}") as refused:
        open_directory(uid=nobody, tmp=str(tmp_path))
    assert refused.value.hint
    assert not list(tmp_path.iterdir())


# -- the file -------------------------------------------------------------------------------------


def test_file_is_whole_private_and_locked(lock_kind: str, directory: Directory, umask: Callable[[int], int]) -> None:
    for mask in (0, 0o777):
        umask(mask)
        file = create(directory, PID, IMAGE)
        assert file.path == f"{directory.path}/{PID}"
        status = os.lstat(file.path)
        assert stat.S_ISREG(status.st_mode)
        assert stat.S_IMODE(status.st_mode) == 0o600
        assert status.st_nlink == 1
        assert (status.st_dev, status.st_ino, status.st_size) == (file.device, file.inode, file.size)
        assert status.st_blocks * 512 >= len(IMAGE), "all of its room is taken"
        assert Path(file.path).read_bytes() == IMAGE
        assert locked(file.path)
        file.unlink()
        assert os.listdir(directory.fd) == []


@pytest.mark.parametrize("form", [bytearray, memoryview], ids=["bytearray", "memoryview"])
def test_any_buffer_is_an_image(directory: Directory, form: Callable[[bytes], bytearray | memoryview]) -> None:
    file = create(directory, PID, form(IMAGE))
    assert Path(file.path).read_bytes() == IMAGE
    file.unlink()


def test_file_costs_no_descriptor(lock_kind: str, directory: Directory) -> None:
    before = descriptors()
    file = create(directory, PID, IMAGE)
    added = {fd: path for fd, path in descriptors().items() if fd not in before}
    if lock_kind == "python" and sys.version_info < (3, 13):
        assert len(added) == 1, "mmap keeps one"
        assert not os.get_inheritable(int(next(iter(added))))
    else:
        assert added == {}
    file.unlink()
    assert descriptors() == before


@pytest.mark.parametrize("others", [False, True], ids=["free", "taken by another file"])
def test_a_thread_with_descriptors_of_its_own_needs_no_second_name(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    """As where a region is made a moment after an autostart or a fork. What the program has under the number of the
    thread's descriptor is not looked at."""
    monkeypatch.setattr(_file, "_beside", lambda *_: pytest.fail("by a temporary name"))
    numbers = [os.open(__file__, os.O_RDONLY) for _ in range(40 if others else 0)]
    made: list[_file.RegionFile] = []
    done = threading.Event()

    def make() -> None:
        try:
            with open_directory(tmp=os.path.dirname(directory.path)) as opened:
                made.append(create(opened, PID, IMAGE))
        finally:
            done.set()

    native.call_later(0, make)
    assert done.wait(30)
    assert native.cancel_call()
    for number in numbers:
        os.close(number)
    assert Path(made[0].path).read_bytes() == IMAGE
    assert locked(made[0].path)
    made[0].unlink()


def test_nobody_ever_reads_half_a_file(directory: Directory) -> None:
    path = f"{directory.path}/{PID}"
    images = {IMAGE, bytes(reversed(IMAGE))}
    done = threading.Event()
    read: list[bytes] = []

    def watch() -> None:
        while not done.is_set():
            try:
                with open(path, "rb", buffering=0) as file:
                    read.append(file.read(len(IMAGE) + 1))
            except FileNotFoundError:
                continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for _ in range(200):
            for image in images:
                create(directory, PID, image).unlink()
        final = create(directory, PID, IMAGE)
        while not read:
            pass
    finally:
        done.set()
        watcher.join()
    assert set(read) <= images
    final.unlink()


def make_symlink(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def make_hard_link(path: Path) -> None:
    (path.parent / "other").write_bytes(b"precious")
    path.hardlink_to(path.parent / "other")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (make_symlink, "is a symbolic link"),
        (make_hard_link, "is a file of 2 hard links"),
        (Path.mkdir, "is not a plain file"),
        (os.mkfifo, "is not a plain file"),
        (make_socket, "is not a plain file"),
    ],
    ids=["symlink", "hard-link", "directory", "fifo", "socket"],
)
@pytest.mark.parametrize("in_place", [False, True], ids=["linked", "in-place"])
def test_name_that_is_taken_is_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], what: str, in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_place:
        for way in ("_unnamed", "_beside"):
            monkeypatch.setattr(_file, way, lambda *_: None)
    with open_directory(tmp=str(tmp_path)) as directory:
        path = Path(directory.path) / str(PID)
        make(path)
        before, tree = os.lstat(path), sorted(os.listdir(directory.path))
        with pytest.raises(RegionFileError, match=what) as refused:
            create(directory, PID, IMAGE)
        assert refused.value.path == str(path)
        assert str(path) in refused.value.hint
        after = os.lstat(path)
        assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)
        assert sorted(os.listdir(directory.path)) == tree
        assert [entry.name for entry in tmp_path.iterdir()] == [f"hsperfdata_{USER}"]


def test_locked_file_of_the_same_pid_is_never_touched(lock_kind: str, directory: Directory) -> None:
    first = create(directory, PID, IMAGE)
    with pytest.raises(RegionFileError, match="in use by another VM of the same pid"):
        create(directory, PID, bytes(len(IMAGE)))
    assert Path(first.path).read_bytes() == IMAGE
    first.unlink()


# -- its end --------------------------------------------------------------------------------------


def test_unlink_takes_only_its_own_file(directory: Directory) -> None:
    file = create(directory, PID, IMAGE)
    os.unlink(file.path)  # a cleaner of /tmp
    Path(file.path).write_bytes(b"another container's")
    file.unlink()
    assert Path(file.path).read_bytes() == b"another container's"


def test_unlink_gives_the_lock_back_and_works_once(lock_kind: str, directory: Directory, tmp_path: Path) -> None:
    file = create(directory, PID, IMAGE)
    os.link(file.path, tmp_path / "kept")
    assert locked(str(tmp_path / "kept"))
    file.unlink()
    assert not locked(str(tmp_path / "kept"))
    Path(file.path).touch()
    file.unlink()
    assert os.path.exists(file.path)


@pytest.mark.parametrize("gone", ["file", "directory", "tmp"])
def test_unlink_of_what_is_gone_is_no_error(tmp_path: Path, gone: str) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    with open_directory(tmp=str(tmp)) as directory:
        file = create(directory, PID, IMAGE)
    os.unlink(file.path)
    if gone != "file":
        os.rmdir(os.path.dirname(file.path))
    if gone == "tmp":
        os.rmdir(tmp)
        tmp.touch()
    file.unlink()


def test_unlink_follows_no_link_to_another_directory(tmp_path: Path) -> None:
    with open_directory(tmp=str(tmp_path)) as directory:
        file = create(directory, PID, IMAGE)
    os.rename(directory.path, tmp_path / "moved")
    os.symlink(tmp_path / "moved", directory.path)
    file.unlink()
    assert (tmp_path / "moved" / str(PID)).exists()


# -- the lock and forked children -----------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(LOCKS))
def test_lock_mapping(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(8192))
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mapping = LOCKS[kind](file.fileno(), 8192)
    assert locked(str(path))
    assert "r--s" in next(line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(path)))
    mapping.close()
    assert not locked(str(path))
    assert str(path) not in Path("/proc/self/maps").read_text()
    mapping.close()


@pytest.mark.parametrize("kind", sorted(LOCKS))
def test_lock_mapping_of_what_cannot_be_mapped(kind: str, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        with pytest.raises((OSError, ValueError)):
            LOCKS[kind](file.fileno(), 4096)
    with pytest.raises((OSError, ValueError)):
        LOCKS[kind](99999, 1)
    with pytest.raises((OverflowError, ValueError)):
        LOCKS[kind](0, -1)


@pytest.mark.parametrize("kind", sorted(LOCKS))
def test_lock_mapping_leaks_nothing(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(4096))
    with path.open("rb") as file:
        for _ in range(300):
            LOCKS[kind](file.fileno(), 4096)  # dropped without close()
    assert str(path) not in Path("/proc/self/maps").read_text()
    assert str(path) not in descriptors().values()
