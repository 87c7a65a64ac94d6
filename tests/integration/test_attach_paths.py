"""Root asks a process of another user, who chooses its directories, its root, its mounts, and what stands in them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import programs
from tests.conftest import StartPython
from tests.support import BECOME, PATIENCE, Child, User
from vmscope import errors
from vmscope.attach.client import connect
from vmscope.attach.note import Note
from vmscope.attach.rights import Rights
from vmscope.attach.script import Script
from vmscope.attach.target import Target

LARGEST_PID = 1 << 22  # Linux's

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="needs root, and becomes other users"
)

# A process that is taken for a JVM, as it catches SIGQUIT and maps a libjvm.so, and that never opens a socket. It says
# when the signal comes, and what notes it sees in its working directory and in /tmp then.
PRETENDER = """
import json, mmap, os, signal, sys
with open({library!r}, "rb") as file:
    library = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
name = f".attach_pid{{os.getpid()}}"
def tell(*_):
    found = {{}}
    for place in (".", "/tmp"):
        try:
            status = os.lstat(f"{{place}}/{{name}}")
            found[place] = [status.st_uid, status.st_gid, status.st_mode]
        except OSError:
            pass
    print(json.dumps(found), flush=True)
signal.signal(signal.SIGQUIT, tell)
{setup}
print("ready", flush=True)
while sys.stdin.readline():
    pass
"""


PRELOAD = ["ctypes", "json", "mmap", "signal"]


class Places:
    """Folders that all may enter: `victim` is root's, as /etc/cron.d is; `theirs` is the other user's."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.top = Path(tempfile.mkdtemp(prefix="vmscope-paths-", dir="/var/tmp"))
        self.top.chmod(0o755)
        self.library = self.top / "libjvm.so"
        self.library.write_bytes(b"\0" * 4096)
        self.victim, self.theirs = self.top / "victim", self.top / "theirs"
        self.victim.mkdir(mode=0o755)
        self.theirs.mkdir(mode=0o755)
        os.chown(self.theirs, user.uid, user.gid)


@pytest.fixture
def places(private_user: User) -> Iterator[Places]:
    made = Places(private_user)
    yield made
    shutil.rmtree(made.top)


Pretend = Callable[..., Child]


@pytest.fixture
def pretend(start_python: StartPython, places: Places) -> Pretend:
    """`pretend(code)`: such a process of the other user's, after it has run `code` as that user."""

    def start(setup: str = "os.chdir('/')", *, user: User | None = places.user) -> Child:
        code = PRETENDER.format(library=str(places.library), setup=setup)
        child = start_python(code, user=user, preload=PRELOAD)
        assert Target(child.pid).catches
        return child

    return start


def note_of(pid: int, place: str = "/tmp") -> Path:
    return Path(f"{place}/.attach_pid{pid}")


class Client:
    """A `vmscope cmd` of root's that goes on until somebody answers, or it gives up."""

    def __init__(self, pid: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vmscope", "cmd", str(pid), "VM.version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


# -- where the note is, and whose -----------------------------------------------------------------


def test_root_s_note_is_the_user_s_own_and_not_in_its_working_directory(places: Places, pretend: Pretend) -> None:
    """Not even while the process is asked; nor is anything left when it ends then."""
    target = pretend(f"os.chdir({str(places.victim)!r})")
    with Client(target.pid) as client:
        seen = json.loads(target.readline())
        assert os.listdir(places.victim) == []
        assert seen == {"/tmp": [places.user.uid, places.user.gid, stat.S_IFREG | 0o600]}
        target.kill()
        status, said = client.end()
    assert (status, "ended while it was asked" in said) == (1, True)
    assert os.listdir(places.victim) == []
    assert not note_of(target.pid).exists()


def test_a_working_directory_that_is_swapped(places: Places, pretend: Pretend) -> None:
    """The process changes it when it is asked: what has the note's name in the new one stays."""
    target = pretend(
        f"""
os.chdir({str(places.theirs)!r})
told = tell
def tell(*_):
    os.chdir({str(places.victim)!r})
    told()
signal.signal(signal.SIGQUIT, tell)
"""
    )
    kept = note_of(target.pid, str(places.victim))
    kept.touch(mode=0o600)
    with Client(target.pid) as client:
        target.readline()
        target.kill()
        assert client.end()[0] == 1
    assert kept.exists()
    assert os.listdir(places.theirs) == []


def test_a_process_that_was_root_s_when_it_was_looked_at(places: Places, pretend: Pretend) -> None:
    """As after su: whose rights it takes is read when the directory, which may be the new user's choice, is open."""
    target = Target(pretend().pid)
    target.uid = target.gid = 0
    with Note(target):
        assert note_of(target.pid).stat().st_uid == places.user.uid
    assert not note_of(target.pid).exists()


MOUNTED = """
libc = ctypes.CDLL(None, use_errno=True)
def check(status):
    if status:
        print("cannot", os.strerror(ctypes.get_errno()), flush=True)
        sys.exit()
uid, gid = os.getuid(), os.getgid()
check(libc.unshare(0x10020000))  # CLONE_NEWUSER | CLONE_NEWNS
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {{uid}} 1"), ("gid_map", f"0 {{gid}} 1")):
    with open(f"/proc/self/{{name}}", "w") as file:
        file.write(text)
os.mkdir({theirs!r} + "/gone")
os.chdir({theirs!r} + "/gone")  # where nothing can be made
os.rmdir({theirs!r} + "/gone")
{attack}
"""
ATTACKS = {
    "a mount": "check(libc.mount({victim!r}.encode(), b'/tmp', None, 4096, None))  # MS_BIND",
    "a link": "os.mkdir({theirs!r} + '/proc'); os.symlink({victim!r}, {theirs!r} + '/tmp'); os.chroot({theirs!r})",
    "a link to a link": (
        "os.symlink({victim!r}, {theirs!r} + '/there'); os.symlink({theirs!r} + '/there', {theirs!r} + '/tmp')\n"
        "os.chroot({theirs!r})"
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_root_of_the_user_s_own(places: Places, start_python: StartPython, attack: str) -> None:
    """In a user namespace anybody has a root and mounts: its /tmp is a directory of root's, where nothing is made."""
    victim, theirs = str(places.victim), str(places.theirs)
    setup = MOUNTED.format(theirs=theirs, attack=ATTACKS[attack].format(victim=victim, theirs=theirs))
    code = PRETENDER.format(library=str(places.library), setup=setup)
    target = start_python(code, user=places.user, preload=PRELOAD, ready=False)
    first = target.readline()
    if first != "ready":
        pytest.skip(f"users have no namespaces of their own here: {first}")
    with Client(target.pid) as client:
        watched: list[str] = []
        deadline = time.monotonic() + PATIENCE
        while client.process.poll() is None and time.monotonic() < deadline:
            watched += os.listdir(places.victim)
        status, said = client.end()
    assert watched == []
    assert status == 1
    assert f"process {target.pid}" in said
    assert not note_of(target.pid).exists()


def test_a_user_that_stands_in_the_way(places: Places, pretend: Pretend) -> None:
    """A VM does not believe a third user's note, and ours cannot be made: the error says whose it is."""
    target = pretend()
    note = note_of(target.pid)
    note.touch(mode=0o600)
    os.chown(note, 12345, -1)
    try:
        with pytest.raises(errors.AccessDenied, match=f"user 12345 has a file .attach_pid{target.pid} there"):
            connect(target.pid)
        assert note.exists()
    finally:
        note.unlink()


def test_root_s_own_note_is_believed(places: Places, pretend: Pretend) -> None:
    """Another client's of root's, as the JDK's: it is used, and left to whom it belongs."""
    target = pretend()
    note = note_of(target.pid)
    note.touch(mode=0o600)
    try:
        with pytest.raises(errors.AttachTimeout):
            connect(target.pid, timeout=0.05)
        assert json.loads(target.readline())["/tmp"][0] == 0
        assert note.exists()
    finally:
        note.unlink()


@pytest.mark.parametrize("left", ["a pipe", "a link", "a folder"])
def test_a_note_that_is_something_else(places: Places, pretend: Pretend, left: str) -> None:
    """The process's user may have made it: it holds nobody up, and is left alone or taken away, but never followed."""
    kept = places.victim / "kept"
    kept.touch()
    make = {"a pipe": "mkfifo(", "a link": f"symlink({str(kept)!r}, ", "a folder": "mkdir("}[left]
    target = pretend(f"os.{make}'/tmp/' + name)")
    try:
        with pytest.raises((errors.AttachTimeout, errors.AccessDenied)):
            connect(target.pid, timeout=0.05)
        assert kept.exists()
    finally:
        note = note_of(target.pid)
        if note.is_dir() and not note.is_symlink():
            note.rmdir()
        elif os.path.lexists(note):
            note.unlink()


# -- clients that are ended -----------------------------------------------------------------------

STEPPED = programs.source("attach_paths/stepped")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("whose", ["another user's", "root's"])
def test_a_signal_at_each_step(places: Places, pretend: Pretend, number: signal.Signals, whose: str) -> None:
    """Ctrl-C, kill and a terminal that goes: no note is left, whenever they come."""
    target = pretend(user=places.user if whose == "another user's" else None)
    run = subprocess.run(
        [sys.executable, "-c", STEPPED, str(target.pid), str(int(number))],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # an interrupt may come in a destructor
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0
    *left, last = run.stdout.splitlines()
    assert left == []
    assert int(last.removeprefix("calls ")) > 50


def test_a_killed_client_s_note_goes_with_the_next_one(places: Places, pretend: Pretend) -> None:
    target = pretend()
    note = note_of(target.pid)
    with Client(target.pid) as client:
        target.readline()
        client.process.kill()
        client.end()
    assert note.exists()
    with pytest.raises(errors.AttachTimeout):
        connect(target.pid, timeout=0.05)
    assert "/tmp" in json.loads(target.readline())
    assert not note.exists()


def test_a_living_client_s_note_stays(places: Places, pretend: Pretend) -> None:
    target = pretend()
    note = note_of(target.pid)
    with Note(Target(target.pid)):
        with pytest.raises(errors.AttachTimeout):
            connect(target.pid, timeout=0.05)
        assert note.exists()
    assert not note.exists()


def test_a_signal_that_is_ignored_ends_no_handshake(places: Places, pretend: Pretend) -> None:
    """As under nohup."""
    target = pretend()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(errors.AttachTimeout):
            connect(target.pid, timeout=0.05)
    finally:
        signal.signal(signal.SIGHUP, before)


# -- rights ---------------------------------------------------------------------------------------


def test_rights_are_the_user_s_and_this_thread_s(places: Places) -> None:
    def made(name: str) -> bool:
        try:
            (places.victim / name).touch()
        except PermissionError:
            return False
        return True

    elsewhere: list[bool] = []
    taken = threading.Event()
    thread = threading.Thread(target=lambda: elsewhere.append(taken.wait(PATIENCE) and made("another's")))
    thread.start()  # before: what is started later has the rights of its starter
    with Rights(places.user.uid, places.user.gid):
        assert not made("mine")
        taken.set()
        thread.join(PATIENCE)
        (places.theirs / "file").touch()
    assert elsewhere == [True]
    assert made("mine")
    found = (places.theirs / "file").stat()
    assert (found.st_uid, found.st_gid) == (places.user.uid, places.user.gid)


def test_root_s_groups_open_no_folder(places: Places) -> None:
    """A thread keeps them: what only they could write to is refused."""
    places.victim.chmod(0o775)
    assert 0 in (os.getgid(), *os.getgroups())
    fd = os.open(places.victim, os.O_PATH)
    try:
        with Rights(places.user.uid, places.user.gid) as rights, pytest.raises(PermissionError):
            rights.check(fd)
        places.victim.chmod(0o1777)
        with Rights(places.user.uid, places.user.gid) as rights:
            rights.check(fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize("option", ["--bounding-set=-setuid", "--securebits=+no_setuid_fixup"])
def test_root_that_cannot_take_them_does_nothing(option: str, places: Places, pretend: Pretend) -> None:
    """In a container without CAP_SETUID, or where root's capabilities stay: nothing is done with root's own instead."""
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv")
    target = pretend()
    run = subprocess.run(
        ["setpriv", option, sys.executable, "-m", "vmscope", "cmd", str(target.pid), "VM.version"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert f"the rights of user {places.user.uid} cannot be taken" in run.stderr
    assert not note_of(target.pid).exists()


# -- what a Python 3.14 is given ------------------------------------------------------------------


CHANGES = """
import os

for change in (
    lambda: os.rename(folder, folder + ".moved"),
    lambda: os.rmdir(folder),
    lambda: os.listdir(folder),
    lambda: os.open(folder + "/new", os.O_CREAT | os.O_WRONLY),
    lambda: os.open(folder + "/attach.py", os.O_WRONLY),
    lambda: os.unlink(folder + "/attach.py"),
    lambda: os.unlink(folder + "/answer"),
    lambda: os.rename(folder + "/answer", folder + "/attach.py"),
    lambda: os.open(folder + "/waiting", os.O_RDONLY),
    lambda: os.chmod(folder + "/attach.py", 0o777),
):
    try:
        change()
    except PermissionError:
        continue
    raise SystemExit(f"line {change.__code__.co_firstlineno}")
assert "def run(" in open(folder + "/attach.py").read()
open(folder + "/answer", "r+").write("mine\\0and more")
"""


def test_the_user_of_the_process_changes_nothing_but_the_answer(places: Places, pretend: Pretend) -> None:
    """So no program of others, that the process may have become by exec just before it is asked, runs what it chose."""
    given = Script(Target(pretend().pid))
    folder = os.path.dirname(given.path)
    try:
        found = os.stat(folder)
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o711)
        assert given.answer() is None
        become = BECOME.format(uid=places.user.uid, gid=places.user.gid, name=places.user.name)
        done = subprocess.run(
            [sys.executable, "-c", f"{become}\nfolder = {folder!r}\n{CHANGES}"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert given.answer() == "mine"
    finally:
        given.remove()
    assert not os.path.exists(folder)


def test_an_answer_that_never_ends(pretend: Pretend) -> None:
    given = Script(Target(pretend().pid))
    try:
        answer = Path(given.path).with_name("answer")
        os.truncate(answer, 1 << 40)
        assert given.answer() == ""
        answer.write_text("x" * 1_000_000)
        assert given.answer() == "x" * 4096
    finally:
        given.remove()


def test_what_a_client_leaves_the_next_one_removes(pretend: Pretend) -> None:
    """Root's folder, which the process's user may not remove: once that has answered, or ended, and no client waits."""
    answered, ended, waited_for, asked = (Script(Target(pretend().pid)) for _ in range(4))
    folders = [Path(each.path).parent for each in (answered, waited_for, asked)]
    gone = Path(ended.path).parent.rename(f"/tmp/vmscope-attach-{LARGEST_PID + 1}-0123456789abcdef")
    try:
        for each in (answered, waited_for):
            Path(each.path).with_name("answer").write_text("started")
        for each in (ended, answered, asked):
            each.abandon()
        another = f"from vmscope.attach import script, target; script.Script(target.Target({pretend().pid})).remove()"
        subprocess.run([sys.executable, "-c", another], check=True, timeout=PATIENCE)
        assert [folder.exists() for folder in (gone, *folders)] == [False, False, True, True]
    finally:
        waited_for.remove()
        shutil.rmtree(folders[2])
