"""Attaching: HotSpot's checks, in its order, with its messages."""

from __future__ import annotations

import os
import pickle
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.published import PAGE, cpython, publish
from vmscope.errors import (
    AccessModeError,
    InsecureDirectory,
    NoRegion,
    NoSuchProcess,
    RegionSizeError,
    VMIdentifierError,
)
from vmscope.reader import Attachment, Candidate, candidates
from vmscope.reader.attachment import MAX_SIZE, attach, open_candidate, open_saved, path_of

ME = os.getpid()


@pytest.fixture
def other() -> Iterator[int]:
    """A live process that is no VM."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def opened(found: Attachment) -> str:
    path, text = found.path, found.mapping.read(0, 4)
    found.mapping.close()
    assert text == b"\xca\xfe\xc0\xc0"
    return path


# -- whom -----------------------------------------------------------------------------------------


def test_a_process(tmp_path: Path, other: int) -> None:
    path = publish(tmp_path, other, cpython(other))
    found = attach(other, tmp=str(tmp_path))
    assert (found.pid, found.nspid, found.user, found.own) == (other, other, "someone", False)
    assert found.mapping.size == 8 * PAGE
    assert opened(found) == str(path)
    assert opened(attach(str(other), tmp=str(tmp_path))) == str(path)


@pytest.mark.parametrize("target", [0, "0", "self", ME, str(ME)], ids=["0", "text 0", "self", "pid", "text pid"])
@pytest.mark.parametrize("mode", ["r", "rw", "nonsense", ""])
def test_the_own_region_is_found_before_the_mode_is_looked_at(tmp_path: Path, target: int | str, mode: str) -> None:
    path = publish(tmp_path, ME, cpython(ME))
    found = attach(target, mode, tmp=str(tmp_path))
    assert found.own
    found.close()
    assert not found.mapping.closed  # detaching from oneself does nothing
    assert opened(found) == str(path)


def test_detaching_from_another(tmp_path: Path, other: int) -> None:
    publish(tmp_path, other, cpython(other))
    found = attach(other, tmp=str(tmp_path))
    found.close()
    found.close()
    assert found.mapping.closed


@pytest.mark.parametrize(("mode", "text"), [("rw", "Unsupported access mode"), ("w", "Illegal"), ("", "Illegal")])
def test_other_modes_are_refused(tmp_path: Path, other: int, mode: str, text: str) -> None:
    publish(tmp_path, other, cpython(other))
    for target in (other, f"file:{tmp_path}/x"):
        with pytest.raises(AccessModeError, match=text):
            attach(target, mode, tmp=str(tmp_path))


def test_no_such_process(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    publish(tmp_path, process.pid, cpython(ME))
    with pytest.raises(NoSuchProcess, match=r"^Process not found") as caught:
        attach(process.pid, tmp=str(tmp_path))
    assert caught.value.pid == process.pid
    for target in (2**31, str(2**40), -5):
        with pytest.raises(NoSuchProcess, match=r"^Process not found"):
            attach(target, tmp=str(tmp_path))


@pytest.mark.parametrize(
    "target", ["", "x", "1.5", "-1", "²", "1" * 40, "local://7", "self ", "1\0", 1.5, True, b"1", None]
)
def test_targets_that_do_not_name_a_vm(target: Any) -> None:
    with pytest.raises(VMIdentifierError, match="does not name a VM"):
        attach(target)


def test_a_process_without_a_region(tmp_path: Path, other: int) -> None:
    with pytest.raises(NoRegion, match=r"^Could not map vmid to user name") as caught:
        attach(other, tmp=str(tmp_path))
    assert caught.value.pid == other
    assert "vmscope run" in caught.value.hint


def test_a_user_that_is_named(tmp_path: Path, other: int) -> None:
    publish(tmp_path, other, cpython(other), user="a")
    path = publish(tmp_path, other, cpython(other), user="b")
    assert opened(attach(other, user="b", tmp=str(tmp_path))) == str(path)
    with pytest.raises(NoRegion, match=r"^Process not found: there is no "):
        attach(other, user="c", tmp=str(tmp_path))


def test_without_a_user_the_newest_change_wins(tmp_path: Path, other: int) -> None:
    paths = {}
    for user in "abc":
        paths[user] = publish(tmp_path, other, cpython(other), user=user)
        time.sleep(0.02)  # times of files differ by a tick of the clock
    assert opened(attach(other, tmp=str(tmp_path))) == str(paths["c"])
    os.utime(paths["a"], (0, 0))  # an old mtime, but a new ctime
    assert opened(attach(other, user="", tmp=str(tmp_path))) == str(paths["a"])
    publish(tmp_path, other, b"", user="empty")  # size 0 does not count
    assert opened(attach(other, tmp=str(tmp_path))) == str(paths["a"])


# -- hostile directories and files ----------------------------------------------------------------


def test_a_directory_that_others_may_write(tmp_path: Path, other: int) -> None:
    path = publish(tmp_path, other, cpython(other))
    for mode in (0o775, 0o757, 0o777, 0o1777):
        path.parent.chmod(mode)
        with pytest.raises(InsecureDirectory, match=r"^Process not found") as caught:
            attach(other, tmp=str(tmp_path))
        assert caught.value.path == str(path.parent)
        (candidate,) = candidates(str(tmp_path))  # jps lists it, and cannot read it either
        with pytest.raises(InsecureDirectory):
            open_candidate(candidate)
    path.parent.chmod(0o755)
    opened(attach(other, tmp=str(tmp_path)))


def test_a_directory_that_is_a_symlink(tmp_path: Path, other: int) -> None:
    real = tmp_path / "elsewhere"
    real.mkdir()
    path = publish(real, other, cpython(other))
    (tmp_path / "hsperfdata_someone").symlink_to(path.parent)
    with pytest.raises(InsecureDirectory):
        attach(other, tmp=str(tmp_path))
    with pytest.raises(InsecureDirectory):
        attach(other, user="someone", tmp=str(tmp_path))


def test_a_directory_that_is_a_file(tmp_path: Path, other: int) -> None:
    (tmp_path / "hsperfdata_someone").write_bytes(b"x")
    with pytest.raises(NoRegion, match=r"^Could not map vmid to user name"):
        attach(other, tmp=str(tmp_path))
    with pytest.raises(InsecureDirectory):
        attach(other, user="someone", tmp=str(tmp_path))


def test_a_secure_directory_beside_an_insecure_one(tmp_path: Path, other: int) -> None:
    good = publish(tmp_path, other, cpython(other), user="good")
    time.sleep(0.02)  # the same
    publish(tmp_path, other, cpython(other), user="bad").parent.chmod(0o777)
    assert opened(attach(other, tmp=str(tmp_path))) == str(good)


@pytest.fixture
def public_tmp() -> Iterator[Path]:
    """A directory that every user reaches."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def as_nobody(action: Callable[[], object]) -> str:
    """What the action raises when user 65534 does it: the error's class, or ""."""
    inlet, outlet = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setresuid(65534, 65534, 65534)
        answer = ""
        try:
            action()
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(outlet, answer.encode())
        os._exit(0)
    os.close(outlet)
    with open(inlet, "rb") as file:
        answer = file.read().decode()
    os.waitpid(pid, 0)
    return answer


@pytest.mark.skipif(not ROOT, reason="needs root to give files to other users")
@pytest.mark.parametrize(("owner", "secure"), [(65534, True), (0, False), (1, False)])
def test_a_directory_of_another_owner(public_tmp: Path, other: int, owner: int, secure: bool) -> None:
    """Root reads it; another user reads only directories of their own, whatever the files' modes."""
    path = publish(public_tmp, other, cpython(other), mode=0o644)
    os.chown(path.parent, owner, owner)
    opened(attach(other, tmp=str(public_tmp)))
    answer = as_nobody(lambda: open_candidate(Candidate(other, other, "someone", str(path), False)))
    assert answer.startswith("" if secure else "InsecureDirectory: Process not found")
    assert bool(answer) != secure


@pytest.mark.skipif(not ROOT, reason="needs root to give files to other users")
def test_a_file_that_may_not_be_read(public_tmp: Path, other: int) -> None:
    path = publish(public_tmp, other, cpython(other))
    os.chown(path.parent, 65534, 65534)
    answer = as_nobody(lambda: open_candidate(Candidate(other, other, "someone", str(path), False)))
    assert answer == f"AccessDenied: Permission denied: {path}"
    answer = as_nobody(lambda: attach(other, tmp=str(public_tmp)))
    assert answer.startswith("AccessDenied: Operation not permitted")


def test_a_file_that_is_a_symlink(tmp_path: Path, other: int) -> None:
    real = publish(tmp_path, "real", cpython(other))
    (real.parent / str(other)).symlink_to(real)
    with pytest.raises(NoRegion, match=r"^Could not map vmid to user name"):
        attach(other, tmp=str(tmp_path))
    with pytest.raises(NoRegion, match="symbolic links"):
        attach(other, user="someone", tmp=str(tmp_path))


def test_a_hard_link_is_read(tmp_path: Path, other: int) -> None:
    """Only the writer has to mind them: reading one harms nobody."""
    real = publish(tmp_path, "real", cpython(other))
    (real.parent / str(other)).hardlink_to(real)
    opened(attach(other, tmp=str(tmp_path)))


def test_a_fifo_named_as_a_pid_holds_nobody_up(tmp_path: Path, other: int) -> None:
    publish(tmp_path, "x", b"")
    os.mkfifo(tmp_path / "hsperfdata_someone" / str(other))
    begin = time.monotonic()
    with pytest.raises(NoRegion, match=r"^Could not map vmid to user name"):
        attach(other, tmp=str(tmp_path))
    with pytest.raises(NoRegion, match=r"^Not a regular file"):
        attach(other, user="someone", tmp=str(tmp_path))
    with pytest.raises(NoRegion, match=r"^Not a regular file"):
        attach(f"file:{tmp_path}/hsperfdata_someone/{other}")
    assert time.monotonic() - begin < 5


def test_a_directory_named_as_a_pid(tmp_path: Path, other: int) -> None:
    publish(tmp_path, "x", b"").parent.joinpath(str(other)).mkdir()
    with pytest.raises(NoRegion, match=r"^Not a regular file"):
        attach(other, user="someone", tmp=str(tmp_path))


# -- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 5000, PAGE - 1, PAGE + 1])
def test_sizes_that_no_region_has(tmp_path: Path, other: int, size: int) -> None:
    publish(tmp_path, other, cpython(other)[:size])
    with pytest.raises(RegionSizeError, match=r"^Invalid PerfMemory size") as caught:
        attach(other, user="someone", tmp=str(tmp_path))
    assert str(size) in str(caught.value)
    found = attach(other, user="someone", size=32, tmp=str(tmp_path))  # a size that is given is taken as it is
    assert found.mapping.size == 32
    found.close()


def test_a_size_that_is_given_must_be_one(tmp_path: Path, other: int) -> None:
    publish(tmp_path, other, cpython(other))
    for size in (0, -1):
        with pytest.raises(RegionSizeError, match=r"^Invalid PerfMemory size"):
            attach(other, size=size, tmp=str(tmp_path))


def test_a_huge_file_is_refused(tmp_path: Path, other: int) -> None:
    path = publish(tmp_path, other, cpython(other))
    os.truncate(path, MAX_SIZE)
    opened(attach(other, tmp=str(tmp_path)))
    os.truncate(path, MAX_SIZE + PAGE)
    with pytest.raises(RegionSizeError, match=r"^Invalid PerfMemory size"):
        attach(other, tmp=str(tmp_path))


# -- saved regions --------------------------------------------------------------------------------


def test_saved_regions(tmp_path: Path) -> None:
    path = tmp_path / "with space%41"
    path.write_bytes(cpython(ME)[:5001])
    for uri in (f"file:{path}", f"file://{path}", f"file://localhost{path}"):
        found = attach(uri.replace("%", "%25").replace(" ", "%20"))
        assert (found.pid, found.nspid, found.own, found.mapping.size) == (None, None, False, 5001)
        assert opened(found) == str(path)
    path.write_bytes(b"")
    with pytest.raises(RegionSizeError):
        open_saved(str(path))
    with pytest.raises(NoRegion, match=r"^File not found"):
        attach(f"file:{tmp_path}/none")
    with pytest.raises(NoRegion, match=r"^Not a regular file"):
        attach("file:/dev/null")
    with pytest.raises(NoRegion, match=r"^Not a regular file"):
        attach(f"file:{tmp_path}")


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file:a/b", "a/b"),
        ("file:/a%20b%2Fc", "/a b/c"),
        ("file:/%FF", "/\udcff"),
        ("file:/a%zz", "/a%zz"),
    ],
)
def test_paths_in_uris(uri: str, path: str) -> None:
    assert path_of(uri) == path


@pytest.mark.parametrize("uri", ["file:", "file://", "file://host/x", "file:/a%00b"])
def test_uris_that_name_no_file_here(uri: str) -> None:
    with pytest.raises(VMIdentifierError):
        path_of(uri)


def test_errors_pickle_with_what_they_carry(tmp_path: Path, other: int) -> None:
    with pytest.raises(NoRegion) as caught:
        attach(other, user="x", tmp=str(tmp_path))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.pid, again.path, again.hint) == (
        str(caught.value),
        other,
        str(tmp_path / "hsperfdata_x" / str(other)),
        caught.value.hint,
    )
