"""Each way in which a region's file can come about, on a kernel or file system that allows no other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

import pytest

from tests import programs, sandbox

TMP = "mount -t tmpfs -o mode=1777 tmpfs /tmp\n"

# Which names are linked and opened for writing, seen by an audit hook; then publication twice, and an end.
CODE = """
links, opened = [], []
def watch(event, arguments):
    if event == "os.link":
        links.append(arguments[0].replace(str(os.getpid()), "PID"))
    if event == "open" and arguments[2] & os.O_CREAT:
        opened.append(arguments[0].replace(str(os.getpid()), "PID"))
sys.addaudithook(watch)
{refuse}
os.umask(0o777 if os.geteuid() == 0 else 0o022)
file, removed = publish()
os.umask(0o022)
found = os.lstat(file.path)
with open(file.path, "rb") as other:
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        answer(locked=True)
answer(whole=open(file.path, "rb").read() == IMAGE, mode=oct(found.st_mode), hard_links=found.st_nlink, removed=removed,
       same=(found.st_dev, found.st_ino, found.st_size) == (file.device, file.inode, file.size),
       second=refusal(publish)["message"].replace(str(os.getpid()), "PID"), blocks=found.st_blocks, tree=len(tree()),
       links=links, opened=opened)
file.unlink()
answer(left=[path for path in tree() if "hsperfdata" not in os.path.basename(path)])
"""

UNNAMED, BESIDE = "/proc/thread-self/fd/", "/tmp/.vmscope-PID-"


def publish(refuse: str = "", mounts: str = TMP) -> dict[str, Any]:
    """What CODE finds, checked for what is the same whichever way was taken."""
    if refuse and not sandbox.can_refuse():
        pytest.skip("no seccomp filter for this machine")
    lock, first, last = map(json.loads, sandbox.run(CODE.replace("{refuse}", refuse), mounts=mounts).splitlines())
    answer: dict[str, Any] = first
    assert lock["locked"]
    assert answer["whole"]
    assert answer["same"]
    assert answer["mode"] == "0o100600"
    assert answer["hard_links"] == 1
    assert answer["removed"] == []
    assert answer["second"].startswith("/tmp/hsperfdata_root/PID is in use by another VM")
    assert answer["tree"] == 2, "the directory and the file"
    assert last["left"] == []
    return answer


def test_unnamed() -> None:
    answer = publish()
    assert len(answer["links"]) == 2
    assert [link for link in answer["links"] if not link.startswith(UNNAMED)] == []
    assert answer["opened"] == []


def test_no_o_tmpfile() -> None:
    answer = publish("sandbox.refuse(tmpfile=errno.EOPNOTSUPP)")
    assert len(answer["links"]) == 2
    assert [link for link in answer["links"] if not link.startswith(BESIDE)] == []
    assert [path for path in answer["opened"] if not path.startswith(BESIDE)] == []


def test_no_proc() -> None:
    """An unnamed file can be made but not linked."""
    answer = publish(mounts=TMP + "mount -t tmpfs tmpfs /proc")
    assert [link[:9] for link in answer["links"]] == [UNNAMED[:9], BESIDE[:9]] * 2
    assert len(answer["opened"]) == 2


def test_no_links() -> None:
    """As on FAT."""
    answer = publish("sandbox.refuse(link=errno.EPERM)")
    assert "PID" in answer["opened"]


def test_neither_o_tmpfile_nor_links() -> None:
    assert "PID" in publish("sandbox.refuse(tmpfile=errno.EOPNOTSUPP, link=errno.EPERM)")["opened"]


def test_directory_on_a_file_system_of_its_own() -> None:
    mounts = TMP + "mkdir /tmp/hsperfdata_root\nmount -t tmpfs -o mode=755 tmpfs /tmp/hsperfdata_root\n"
    assert [link for link in publish(mounts=mounts)["links"] if not link.startswith(UNNAMED)] == []
    answer = publish("sandbox.refuse(tmpfile=errno.EOPNOTSUPP)", mounts)  # nothing beside it is on the same one
    assert answer["links"][0].startswith(BESIDE)
    assert "PID" in answer["opened"]


def test_in_place_region_opens_when_it_is_whole() -> None:
    """Readers wait while the region says that it is not accessible."""
    code = programs.source("file_ways/in_place")
    assert json.loads(sandbox.run(code, mounts=TMP)) == {"before": ["", "00"], "after": 1, "count": 32}


def test_in_place_takes_over_what_a_dead_process_left() -> None:
    """Where clean-up was not allowed to: the file is emptied first, as HotSpot does."""
    code = """
        sandbox.refuse(tmpfile=errno.EOPNOTSUPP, link=errno.EPERM)
        with _directory.open_directory() as directory:
            path = f"{directory.path}/{os.getpid()}"
            with open(path, "wb") as former:
                former.write(b"x" * 100_000)
            os.chmod(path, 0o644)
            inode = os.stat(path).st_ino
            file = _file.create(directory, os.getpid(), IMAGE)
        answer(whole=open(path, "rb").read() == IMAGE, same=os.stat(path).st_ino == inode, mode=os.stat(path).st_mode)
    """
    if not sandbox.can_refuse():
        pytest.skip("no seccomp filter for this machine")
    assert json.loads(sandbox.run(code, mounts=TMP)) == {"whole": True, "same": True, "mode": 0o100600}


def mountable(mounts: str) -> str:
    """`mounts`, if this kernel can."""
    probe = subprocess.run(sandbox.command("pass", mounts=mounts), capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"cannot be mounted here: {probe.stderr.splitlines()[0]}")
    return mounts


def test_ramfs() -> None:
    answer = publish(mounts=mountable("mount -t ramfs -o mode=1777 ramfs /tmp"))
    assert [link for link in answer["links"] if not link.startswith(UNNAMED)] == []


@pytest.mark.parametrize("implementation", ["0", "1"])
def test_overlay(implementation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What /tmp is on in most containers. A mapping there holds the file below and not the lock: the mirror does."""
    monkeypatch.setenv("VMSCOPE_NATIVE", implementation)
    mounts = (
        TMP
        + """
        mkdir -m 1777 /tmp/upper
        mkdir /tmp/lower /tmp/work /tmp/merged
        mount -t overlay -o lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work overlay /tmp/merged
        mount --bind /tmp/merged /tmp
    """
    )
    code = programs.source("file_ways/overlay")
    locks, last = map(json.loads, sandbox.run(code, mounts=mountable(mounts)).splitlines())
    assert locks == {"held": True, "free": True}
    assert last == {"removed": True}


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("bindfs") is None, reason="needs root and bindfs")
@pytest.mark.parametrize("options", ["attr_timeout=0", "attr_timeout=0,no-allow-other", "attr_timeout=0,multithreaded"])
def test_file_system_without_o_tmpfile(options: str) -> None:
    """FUSE, as sshfs and many a container's storage are: two names are two files to it, with a lock each."""
    code = programs.source("file_ways/without_tmpfile")
    # As a pid namespace ends, so does the daemon in it.
    mounts = f"mount -t tmpfs -o mode=1777 tmpfs /mnt\nmount -t tmpfs tmpfs /tmp\nbindfs -o {options} /mnt /tmp"
    vm, after = map(json.loads, sandbox.run(code, mounts=mounts, pid=True).splitlines())
    assert vm["whole"]
    assert len(vm["links"]) == 1
    assert vm["links"][0].startswith("/tmp/.vmscope-")
    assert vm["tree"] == 2
    assert after == {"removed": True, "tree": ["/tmp/hsperfdata_root"]}
