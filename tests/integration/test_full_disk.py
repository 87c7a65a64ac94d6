"""No room: on the file system, in its inode table, in a quota. Seen at once, and nothing is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import programs, sandbox
from tests.support import Child

NO_ROOM = "mount -t tmpfs -o size=48k tmpfs /tmp\n"
DIRECTORY = "mkdir -m 755 /tmp/hsperfdata_root\n"

WAYS = {
    "unnamed": "",
    "beside": "sandbox.refuse(tmpfile=errno.EOPNOTSUPP)\n",
    "in-place": "sandbox.refuse(tmpfile=errno.EOPNOTSUPP, link=errno.EPERM)\n",
}

ways = pytest.mark.parametrize("way", WAYS)


def refuse(way: str) -> str:
    if WAYS[way] and not sandbox.can_refuse():
        pytest.skip("no seccomp filter for this machine")
    return WAYS[way]


@ways
@pytest.mark.parametrize("size", ["4k", "48k", "60k"])
def test_no_room_for_the_file(way: str, size: str) -> None:
    code = refuse(way) + "answer(**refusal(publish), pid=os.getpid(), tree=tree(), room=os.statvfs('/tmp').f_bavail)"
    mounts = f"mount -t tmpfs -o size={size} tmpfs /tmp\n" + DIRECTORY
    answer = json.loads(sandbox.run(code, mounts=mounts))
    assert answer["type"] == "DiskFull"
    assert answer["message"] == f"cannot make /tmp/hsperfdata_root/{answer['pid']}: No space left on device"
    assert answer["path"] == f"/tmp/hsperfdata_root/{answer['pid']}"
    assert answer["hint"] == "free space in /tmp/hsperfdata_root"
    assert answer["tree"] == ["/tmp/hsperfdata_root"]
    assert answer["room"] == int(size.removesuffix("k")) // 4, "all of it was given back"


@ways
def test_no_inode_for_the_file(way: str) -> None:
    code = refuse(way) + "answer(**refusal(publish), tree=tree())"
    mounts = "mount -t tmpfs -o size=1m,nr_inodes=2 tmpfs /tmp\n" + DIRECTORY
    answer = json.loads(sandbox.run(code, mounts=mounts))
    assert answer["type"] == "DiskFull"
    assert answer["tree"] == ["/tmp/hsperfdata_root"]


def test_no_inode_for_the_directory() -> None:
    answer = json.loads(
        sandbox.run("answer(**refusal(publish), tree=tree())", mounts="mount -t tmpfs -o nr_inodes=1 tmpfs /tmp")
    )
    assert answer["type"] == "DiskFull"
    assert answer["message"] == "no room for the directory /tmp/hsperfdata_root"
    assert answer["tree"] == []


@pytest.mark.skipif(not sandbox.can_refuse(), reason="no seccomp filter for this machine")
@pytest.mark.parametrize("call", ["tmpfile", "link"])
@pytest.mark.parametrize("number", ["ENOSPC", "EDQUOT"])
def test_no_room_for_the_name(call: str, number: str) -> None:
    """In the directory, or in the user's quota: the kernel's answer, whichever call it comes from."""
    code = f"sandbox.refuse({call}=errno.{number})\nanswer(**refusal(publish), tree=tree())"
    answer = json.loads(sandbox.run(code, mounts="mount -t tmpfs tmpfs /tmp"))
    assert answer["type"] == "DiskFull"
    assert answer["tree"] == ["/tmp/hsperfdata_root"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a disk")
@ways
def test_ext4(way: str, tmp_path: Path) -> None:
    """A file system that allocates late tells it early all the same."""
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(2 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", disk], check=True)
    # All but 48 KiB is taken by `filler`, of which the region then needs a part.
    mounts = f"""
        mount -o loop {disk} /mnt
        mkdir -m 755 /mnt/hsperfdata_root
        dd if=/dev/zero of=/mnt/filler bs=4k status=none 2>/dev/null || true
        sync
        truncate -s -48k /mnt/filler
        sync
    """
    code = f"""
{refuse(way)}
found = refusal(publish, "/mnt")
left = tree("/mnt")
os.unlink("/mnt/filler")
file, _ = publish("/mnt")
answer(**found, left=left, then=open(file.path, "rb").read() == IMAGE)
file.unlink()
"""
    answer = json.loads(sandbox.run(code, mounts=mounts))
    assert answer["type"] == "DiskFull"
    assert answer["then"] is True
    assert [name for name in answer["left"] if "lost+found" not in name] == ["/mnt/filler", "/mnt/hsperfdata_root"]


def test_program_goes_on_in_private_memory_and_is_warned() -> None:
    code = programs.source("full_disk/private_memory")
    warning, told, after = sandbox.run(code, mounts=NO_ROOM + DIRECTORY).splitlines()
    answer = json.loads(told)
    reason = f"cannot make /tmp/hsperfdata_root/{answer['pid']}: No space left on device"
    assert answer == {"path": None, "reason": reason, "count": 5, "pid": answer["pid"]}
    assert warning.startswith("WARNING vmscope ")
    assert reason in warning
    assert json.loads(after) == {"count": 6, "tree": ["/tmp/hsperfdata_root"]}


def test_run_says_so() -> None:
    """Who starts a program with `vmscope run` is told as a JVM's user is; the program's own output is all the rest."""
    code = """
        command = [sys.executable, "-m", "vmscope", "run", "-c", "print(5)"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        output, errors = process.communicate(timeout=60)
        answer(pid=process.pid, status=process.returncode, output=output, errors=errors)
    """
    found = json.loads(sandbox.run(code, mounts=NO_ROOM + DIRECTORY))
    path = f"/tmp/hsperfdata_root/{found['pid']}"
    said = f"vmscope: cannot make {path}: No space left on device (free space in /tmp/hsperfdata_root)\n"
    assert found == {"pid": found["pid"], "status": 0, "output": "5\n", "errors": said}


@pytest.mark.parametrize(
    "mounts", ["mount -t tmpfs -o ro tmpfs /tmp\n", NO_ROOM + DIRECTORY], ids=["read-only", "full"]
)
def test_the_reason_is_read_from_outside(mounts: str) -> None:
    code = "vmscope.start()\nanswer(reason=vmscope.status().reason)\nsys.stdin.read()"
    command = sandbox.command(code, mounts=mounts)
    with Child(command) as child:
        reason = json.loads(child.readline())["reason"]
        rows = listed("--all")
        assert [(row["state"], row["main"], row["path"]) for row in rows if row["reason"] == reason] == [
            ("unpublished", "-c", None)
        ]
        assert reason not in [row["reason"] for row in listed()]


def listed(*options: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "vmscope", "ps", "--json", *options]
    found: list[dict[str, object]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def test_nothing_is_printed_where_nobody_listens() -> None:
    """sandbox.run asserts that nothing came on stderr."""
    code = "import logging\nvmscope.start()\nvmscope.stop()"
    assert sandbox.run(code, mounts=NO_ROOM + DIRECTORY) == ""


def test_disk_that_fills_later_does_no_harm() -> None:
    """The room was taken when the file was made: the mirror goes on writing."""
    code = programs.source("full_disk/fills_later")
    seen, left = map(json.loads, sandbox.run(code, mounts="mount -t tmpfs -o size=1m tmpfs /tmp").splitlines())
    assert seen == {"full": True, "seen": True}
    assert left == {"tree": ["/tmp/filler", "/tmp/hsperfdata_root"]}
