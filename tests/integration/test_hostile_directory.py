"""A /tmp that somebody prepared: what is refused, with which reason, and that nothing of it is touched.

Each child has a /tmp of its own; `vmscope.start()` in it must go on in private memory and say why.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests import programs, sandbox
from tests.conftest import StartPython
from tests.support import User

TMP = "mount -t tmpfs -o mode=1777 tmpfs /tmp\n"
DIRECTORY = TMP + "mkdir -m 755 /tmp/hsperfdata_root\n"

START = programs.source("hostile_directory/start")


def start(mounts: str, before: str = "") -> dict[str, Any]:
    """What START answers as root of a namespace in which `mounts` (shell) and `before` (Python) were done."""
    answer: dict[str, Any] = json.loads(sandbox.run(before + START, mounts=mounts))
    assert answer["running"]
    assert answer["count"] == 4
    return answer


@pytest.mark.parametrize(
    ("mounts", "reason"),
    [
        (TMP + "mkdir /tmp/x; ln -s /tmp/x /tmp/hsperfdata_root", "/tmp/hsperfdata_root is a symbolic link"),
        (TMP + "ln -s /tmp/nowhere /tmp/hsperfdata_root", "/tmp/hsperfdata_root is a symbolic link"),
        (TMP + "ln -s /tmp/hsperfdata_root /tmp/hsperfdata_root", "/tmp/hsperfdata_root is a symbolic link"),
        (TMP + "mkdir -m 775 /tmp/hsperfdata_root", "/tmp/hsperfdata_root can be written by others (mode 0775)"),
        (TMP + "mkdir -m 1777 /tmp/hsperfdata_root", "/tmp/hsperfdata_root can be written by others (mode 1777)"),
        (TMP + "echo precious > /tmp/hsperfdata_root", "/tmp/hsperfdata_root is not a directory"),
        (TMP + "mkfifo /tmp/hsperfdata_root", "/tmp/hsperfdata_root is not a directory"),
    ],
    ids=["symlink", "dangling", "loop", "group-writable", "world-writable", "file", "fifo"],
)
def test_directory(mounts: str, reason: str, implementation: str) -> None:
    answer = start(mounts)
    assert (answer["path"], answer["reason"]) == (None, reason)
    assert answer["untouched"]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        ("os.symlink('/tmp/precious', path)", "is a symbolic link"),
        ("os.symlink('/tmp/nowhere', path)", "is a symbolic link"),
        ("os.link('/tmp/precious', path)", "is a file of 2 hard links"),
        ("os.mkfifo(path)", "is not a plain file"),
        ("os.mkdir(path)", "is not a plain file"),
        ("os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))", "is not a plain file"),
    ],
    ids=["symlink", "dangling", "hard-link", "fifo", "directory", "device"],
)
def test_own_name_in_the_directory(make: str, reason: str) -> None:
    if "mknod" in make and os.geteuid() != 0:
        pytest.skip("only root may make devices")
    before = (
        "path = f'/tmp/hsperfdata_root/{os.getpid()}'\n"
        "with open('/tmp/precious', 'w') as file:\n    file.write('precious')\n"
        f"{make}\n"
        "answer(pid=os.getpid())\n"
    )
    pid, answer = map(json.loads, sandbox.run(before + START, mounts=DIRECTORY).splitlines())
    assert answer["path"] is None
    assert answer["reason"] == f"/tmp/hsperfdata_root/{pid['pid']} {reason}"
    assert answer["count"] == 4
    assert answer["untouched"]


def test_locked_file_of_the_same_pid() -> None:
    """As another container's VM would hold it."""
    before = """
import mmap
path = f'/tmp/hsperfdata_root/{os.getpid()}'
other = open(path, 'w+b')
other.write(IMAGE)
other.flush()
fcntl.flock(other, fcntl.LOCK_EX)
"""
    answer = start(DIRECTORY, before)
    assert answer["path"] is None
    assert "in use by another VM of the same pid" in answer["reason"]
    assert answer["untouched"]


def test_unlocked_file_of_the_same_pid_is_replaced() -> None:
    code = """
        path = f'/tmp/hsperfdata_root/{os.getpid()}'
        with open(path, 'w') as file:
            file.write('a former process of this pid')
        former = os.stat(path).st_ino
        with open(path) as held:
            vmscope.start()
            answer(ours=vmscope.status().path == path, replaced=os.stat(path).st_ino != former, held=held.read())
    """
    answer = json.loads(sandbox.run(code, mounts=DIRECTORY))
    assert answer == {"ours": True, "replaced": True, "held": "a former process of this pid"}


@pytest.mark.parametrize(
    ("mounts", "reason"),
    [
        ("mount -t tmpfs -o ro tmpfs /tmp", "/tmp is read-only"),
        (
            DIRECTORY + "mount -o remount,ro /tmp",
            "cannot make /tmp/hsperfdata_root/{pid}: Read-only file system",
        ),
    ],
    ids=["tmp", "directory"],
)
def test_read_only(mounts: str, reason: str) -> None:
    pid, answer = map(json.loads, sandbox.run("answer(pid=os.getpid())\n" + START, mounts=mounts).splitlines())
    assert (answer["path"], answer["reason"]) == (None, reason.format(**pid))
    assert answer["count"] == 4


def test_read_only_directory_with_stale_files_is_no_harm() -> None:
    mounts = DIRECTORY + "touch /tmp/hsperfdata_root/notes /tmp/hsperfdata_root/4194304\nmount -o remount,ro /tmp"
    answer = start(mounts)
    assert "Read-only file system" in answer["reason"]
    assert answer["untouched"]


@pytest.mark.parametrize(
    ("make", "reason"),
    [("pass", "/tmp does not exist"), ("open('/tmp/jail/tmp', 'w').close()", "/tmp is not a directory")],
    ids=["missing", "file"],
)
def test_no_tmp(make: str, reason: str) -> None:
    """A root directory as minimal container images have it."""
    code = f"""
        os.makedirs("/tmp/jail/etc")
        with open("/tmp/jail/etc/passwd", "w") as passwd:
            passwd.write("root:x:0:0:root:/root:/bin/sh\\n")
        {make}
        os.chroot("/tmp/jail")
        os.chdir("/")
        vmscope.start()
        answer(path=vmscope.status().path, reason=vmscope.status().reason)
    """
    assert json.loads(sandbox.run(code, mounts=TMP)) == {"path": None, "reason": reason}


def test_user_whose_name_fits_no_path() -> None:
    answer = start(TMP + "echo '../../a:x:0:0::/:' > /tmp/passwd\nmount --bind /tmp/passwd /etc/passwd")
    assert answer["path"] is None
    assert answer["reason"] == "the name '../../a' of user id 0 cannot be part of a path"
    assert answer["tree"] == ["/tmp/passwd"]


# -- users ----------------------------------------------------------------------------------------

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become other users")


@needs_root
def test_owner_other_than_the_user_is_refused() -> None:
    """To root too, whom HotSpot lets off. Nothing of that owner's is touched, and clients still reach the process."""
    code = """
        os.mkdir("/tmp/hsperfdata_nobody", 0o755)
        os.mkdir("/tmp/hsperfdata_root", 0o755)
        os.chown("/tmp/hsperfdata_root", 12345, 12345)
        open("/tmp/hsperfdata_root/999999999", "w").close()
        open("/tmp/hsperfdata_root/kept", "w").close()
        vmscope.start()
        status = vmscope.status()
        answer(published=status.path, reason=status.reason, attach=status.attach_path, pid=os.getpid(),
               left=sorted(os.listdir("/tmp/hsperfdata_root")), **refusal(_directory.open_directory))
        vmscope.stop()
        os.setresuid(65534, 65534, 65534)
        answer(**refusal(_directory.open_directory))
    """
    root, nobody = map(json.loads, sandbox.run(code, mounts=TMP).splitlines())
    assert (root["type"], root["hint"]) == ("InsecureDirectory", "rm -r /tmp/hsperfdata_root")
    assert root["message"] == root["reason"] == "/tmp/hsperfdata_root belongs to user id 12345, not to 0"
    assert root["published"] is None
    assert root["left"] == ["999999999", "kept"]
    assert root["attach"] == f"/tmp/.java_pid{root['pid']}"
    assert nobody["type"] == "InsecureDirectory"
    assert nobody["message"] == "/tmp/hsperfdata_nobody belongs to user id 0, not to 65534"
    assert nobody["path"] == "/tmp/hsperfdata_nobody"


@needs_root
def test_user_without_a_passwd_entry() -> None:
    """As in a container that was started with a user id of its own. (Root and nobody may always have one: NSS.)"""
    answer = start(TMP, "os.setresuid(4242424, 4242424, 4242424)\n")
    assert answer["path"] is None
    assert answer["reason"] == "no passwd entry was found for user id 4242424, so its region directory has no name"
    assert answer["tree"] == []


@needs_root
def test_the_effective_user_counts() -> None:
    code = """
        os.setresuid(0, 65534, 0)
        file, _ = publish()
        answer(path=file.path, owner=os.stat(file.path).st_uid, pid=os.getpid())
    """
    answer = json.loads(sandbox.run(code, mounts=TMP))
    assert answer["path"] == f"/tmp/hsperfdata_nobody/{answer['pid']}"
    assert answer["owner"] == 65534


@needs_root
@pytest.mark.parametrize(
    ("mounts", "kind", "message"),
    [
        ("mount -t tmpfs -o mode=755 tmpfs /tmp", "RegionFileError", "cannot open /tmp/hsperfdata_nobody: Permission"),
        (
            TMP + "mkdir -m 700 /tmp/hsperfdata_nobody",
            "RegionFileError",
            "cannot open /tmp/hsperfdata_nobody: Permission denied",
        ),
        (
            TMP + "mkdir -m 500 /tmp/hsperfdata_nobody; chown 65534 /tmp/hsperfdata_nobody",
            "RegionFileError",
            "cannot make /tmp/hsperfdata_nobody/{pid}: Permission denied",
        ),
    ],
    ids=["tmp-not-writable", "directory-closed", "directory-not-writable"],
)
def test_plain_user_without_permission(mounts: str, kind: str, message: str) -> None:
    code = "os.setresuid(65534, 65534, 65534)\nanswer(**refusal(publish), pid=os.getpid(), tree=tree())"
    answer = json.loads(sandbox.run(code, mounts=mounts))
    assert answer["type"] == kind
    assert answer["message"].startswith(message.format(**answer))
    assert answer["hint"]
    assert set(answer["tree"]) <= {"/tmp/hsperfdata_nobody"}


def test_plain_user(private_user: User, start_python: StartPython) -> None:
    """A real account in the real /tmp: its directory, its file, and nothing left of either at the end."""
    code = """
        vmscope.start()
        path = vmscope.status().path
        found = os.stat(path)
        answer(path=path, pid=os.getpid(), uid=found.st_uid, mode=found.st_mode & 0o7777)
        sys.stdin.read()
    """
    child = start_python(sandbox.program(code), user=private_user, preload=sandbox.PRELOAD, ready=False)
    found = json.loads(child.readline())
    assert found["path"] == f"/tmp/hsperfdata_{private_user}/{child.pid}"
    assert (found["uid"], found["mode"]) == (private_user.uid, 0o600)
    assert child.stop() == 0
    assert str(child.pid) not in os.listdir(f"/tmp/hsperfdata_{private_user}")
