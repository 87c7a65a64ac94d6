"""Files that ended VMs left: which go, which stay, and that HotSpot and vmscope agree on it."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import sandbox
from tests.conftest import StartJVM, StartPython
from tests.support import JDK, User
from vmscope.memory import _stale
from vmscope.memory._directory import Directory, open_directory
from vmscope.memory._stale import clean

USER = pwd.getpwuid(os.geteuid()).pw_name
WRAPS_TO_1 = str(2**32 + 1)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    with open_directory(tmp=str(tmp_path)) as opened:
        yield opened


def place(directory: Directory, name: str | int, content: bytes = b"region") -> Path:
    path = Path(directory.path) / str(name)
    path.write_bytes(content)
    return path


@pytest.fixture
def dead() -> int:
    """The pid of a process that has just ended."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


@pytest.fixture
def live() -> Iterator[int]:
    """The pid of a live process of this user, which is no VM."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


class Held:
    """A path's lock, held through a descriptor of its own."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")
        fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *exception: object) -> None:
        self.file.close()


# -- the rule -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "0", "000", ".hidden", "-1", "1.tmp", "+1", "1_0", " 1", "1 ", "0x1", "١٢", "²", "1e3", "ab\udcff"],
)
def test_a_name_that_is_no_pid_goes(directory: Directory, name: str) -> None:
    place(directory, name)
    assert clean(directory, os.getpid()) == [name]
    assert os.listdir(directory.path) == []


def test_links_and_fifos_with_names_that_are_no_pids_go_unfollowed(directory: Directory, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.touch()
    (Path(directory.path) / "link").symlink_to(precious)
    os.mkfifo(Path(directory.path) / "fifo")
    assert sorted(clean(directory, os.getpid())) == ["fifo", "link"]
    assert precious.exists()


def test_directories_stay(directory: Directory, dead: int) -> None:
    for name in ("notes", "0", str(dead), str(os.getpid())):
        (Path(directory.path) / name).mkdir()
    assert clean(directory, os.getpid()) == []
    assert len(os.listdir(directory.path)) == 4


def test_file_of_a_dead_process_goes(directory: Directory, dead: int) -> None:
    place(directory, dead)
    assert clean(directory, os.getpid()) == [str(dead)]


def test_the_socket_of_a_dead_process_goes_unless_somebody_listens(
    directory: Directory, dead: int, implementation: str
) -> None:
    """A VM of another pid namespace has the same pid, and no region: its clients find it by that name alone."""
    path = f"{os.path.dirname(directory.path)}/.java_pid{dead}"
    code = f"""
        from vmscope.memory import _directory, _stale
        with _directory.open_directory(tmp={os.path.dirname(directory.path)!r}) as directory:
            answer(gone=_stale.clean(directory, os.getpid()))
    """
    for listens in (True, False):
        place(directory, dead)
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(path)
            if listens:
                left.listen()
            assert json.loads(sandbox.plain(code)) == {"gone": [str(dead)]}
            assert os.path.lexists(path) == listens
        if listens:
            os.unlink(path)


def test_leading_zeros_change_no_pid(directory: Directory, dead: int, live: int) -> None:
    place(directory, f"00{dead}")
    place(directory, f"00{live}")
    assert clean(directory, os.getpid()) == [f"00{dead}"]


def test_lock_outweighs_a_dead_pid(directory: Directory, dead: int) -> None:
    """Another container's, whose pids mean nothing here."""
    with Held(place(directory, dead)):
        assert clean(directory, os.getpid()) == []
    assert clean(directory, os.getpid()) == [str(dead)]


def test_live_pid_outweighs_a_missing_lock(directory: Directory, live: int) -> None:
    """VMs of the JDK 8 era take no lock."""
    path = place(directory, live)
    assert clean(directory, os.getpid()) == []
    assert path.read_bytes() == b"region"


def test_own_pid_without_a_lock_is_a_former_process(directory: Directory) -> None:
    path = place(directory, os.getpid())
    with Held(path):
        assert clean(directory, os.getpid()) == []
    assert clean(directory, os.getpid()) == [str(os.getpid())]


def test_number_beyond_a_pid_is_nobodys_and_never_wraps_round(directory: Directory) -> None:
    for name in (WRAPS_TO_1, str(2**31), str(2**64 + os.getpid()), "9" * 200):
        with Held(place(directory, name)):
            assert clean(directory, os.getpid()) == []
        assert clean(directory, os.getpid()) == [name]


@pytest.mark.skipif(os.geteuid() != 0, reason="kill(1, 0) is refused to others, see below")
def test_file_of_pid_1_stays_for_root(directory: Directory) -> None:
    place(directory, 1)
    assert clean(directory, os.getpid()) == []


@pytest.mark.parametrize("pid", ["dead", "own"])
@pytest.mark.timeout(20)
def test_fifo_named_as_a_pid_holds_nobody_up(directory: Directory, dead: int, pid: str) -> None:
    name = dead if pid == "dead" else os.getpid()
    os.mkfifo(Path(directory.path) / str(name))
    assert clean(directory, os.getpid()) == []


def make_symlink(path: Path, target: Path) -> None:
    path.symlink_to(target)


def make_hard_link(path: Path, target: Path) -> None:
    path.hardlink_to(target)


@pytest.mark.parametrize("make", [make_symlink, make_hard_link])
def test_link_named_as_a_pid_stays_with_its_target(
    directory: Directory, dead: int, tmp_path: Path, make: Callable[[Path, Path], None]
) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"precious")
    for name in (dead, os.getpid()):
        make(Path(directory.path) / str(name), target)
    assert clean(directory, os.getpid()) == []
    assert target.read_bytes() == b"precious"


def test_socket_named_as_a_pid_stays(directory: Directory, dead: int) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{directory.path}/{dead}")
        assert clean(directory, os.getpid()) == []


def test_one_bad_file_keeps_no_other(directory: Directory, dead: int) -> None:
    os.mkfifo(Path(directory.path) / str(os.getpid()))
    (Path(directory.path) / "directory").mkdir()
    place(directory, dead)
    place(directory, "notes")
    with Held(place(directory, WRAPS_TO_1)):
        assert sorted(clean(directory, os.getpid())) == sorted(["notes", str(dead)])


def test_file_made_anew_between_lock_and_unlink_stays(
    directory: Directory, dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place(directory, dead, b"old")
    asked = []

    def somebody_is_faster(pid: int) -> bool:
        asked.append(pid)
        if len(asked) == 2:  # asked again, under the lock
            path.unlink()
            path.write_bytes(b"new")
        return False

    monkeypatch.setattr(_stale, "_lives", somebody_is_faster)
    assert clean(directory, os.getpid()) == []
    assert path.read_bytes() == b"new"


def test_process_that_starts_while_its_predecessor_is_cleaned_keeps_its_file(
    directory: Directory, dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(directory, dead)
    answers = iter([False, True])
    monkeypatch.setattr(_stale, "_lives", lambda pid: next(answers))
    assert clean(directory, os.getpid()) == []


def test_of_very_many_names_beside_the_directory_some_are_looked_at(directory: Directory, dead: int) -> None:
    """Whoever may make files in /tmp does not hold up a start."""
    tmp = Path(directory.path).parent
    first = tmp / f"{_stale.TEMPORARY}{dead}-0"
    first.touch()
    for number in range(1, 20_000):
        os.link(first, tmp / f"{_stale.TEMPORARY}{dead}-{number}")
    _stale.clean_temporary(directory, os.getpid())
    assert 3_000 < len(os.listdir(tmp)) < 4_000


def test_no_descriptor_is_left(directory: Directory, dead: int, live: int) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for name in (dead, live, "notes", WRAPS_TO_1):
        place(directory, name)
    os.mkfifo(Path(directory.path) / str(os.getpid()))
    clean(directory, os.getpid())
    assert len(os.listdir("/proc/self/fd")) == before


def test_another_users_process_cannot_have_written_here(private_user: User, start_python: StartPython) -> None:
    """kill says EPERM: the pid lives, but not as the owner of a file in this user's directory."""
    code = f"""
        directory = _directory.open_directory()
        _stale.clean(directory, 2)  # what the account's processes left in other tests
        for name in ("1", "{os.getpid()}", str(os.getpid())):
            open(directory.path + "/" + name, "w").close()
        unreadable = open(directory.path + "/{2**22}", "w")
        os.chmod(unreadable.name, 0)
        removed = sorted(_stale.clean(directory, 2))
        answer(removed=removed, user=directory.user, left=os.listdir(directory.fd), me=os.getpid())
    """
    child = start_python(sandbox.program(code), user=private_user, preload=sandbox.PRELOAD, ready=False)
    found = json.loads(child.readline())
    assert found["user"] == private_user.name
    assert found["removed"] == sorted(["1", str(os.getpid())])
    assert sorted(found["left"]) == sorted([str(found["me"]), str(2**22)])


# -- with HotSpot ---------------------------------------------------------------------------------


def region_of(pid: int) -> Path:
    return Path(f"/tmp/hsperfdata_{USER}/{pid}")


def jdks() -> list[JDK]:
    return [jdk for version in (17, 21, 25) if (jdk := JDK.find(version)) is not None]


def test_live_jvm_keeps_its_file_and_a_killed_one_loses_it(start_jvm: StartJVM) -> None:
    for jdk in jdks():
        lives, dies = start_jvm(jdk=jdk), start_jvm(jdk=jdk)
        assert region_of(lives.pid).exists()
        assert region_of(dies.pid).exists()
        dies.kill()
        with open_directory() as directory:
            removed = clean(directory, os.getpid())
            assert str(dies.pid) in removed or not region_of(dies.pid).exists()
            assert str(lives.pid) not in removed
        assert not region_of(dies.pid).exists()
        assert region_of(lives.pid).exists()


def test_java_that_starts_leaves_a_live_vmscope_alone_and_takes_a_dead_ones(jdk: JDK) -> None:
    code = """
        file, removed = publish()
        answer(path=file.path)
        sys.stdin.read()
    """
    for java in jdks() or [jdk]:
        with subprocess.Popen(sandbox.plain_command(code), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as vm:
            assert vm.stdout is not None
            path = Path(json.loads(vm.stdout.readline())["path"])
            before = path.stat()
            assert java.run("java", "-version").returncode == 0
            assert os.path.samestat(path.stat(), before)
            vm.kill()
            vm.wait()
        assert java.run("java", "-version").returncode == 0
        assert not path.exists()


def test_java_never_sees_a_temporary_name(jdk: JDK) -> None:
    """What a HotSpot that starts would unlink, as it does with every name here that is no pid."""
    code = """
        seen = set()
        def watch(event, arguments):
            names = {"open": arguments[:1], "os.link": arguments[:2]}.get(event, ())
            seen.update(str(name) for name in names if "/" not in str(name) or "hsperfdata" in str(name))
        sys.addaudithook(watch)
        for refused in ({}, {"tmpfile": True}, {"tmpfile": True, "link": True}):
            sandbox.refuse(**refused)
            publish()[0].unlink()
        answer(seen=sorted(seen), pid=os.getpid())
    """
    if not sandbox.can_refuse():
        pytest.skip("no seccomp filter for this machine")
    found = json.loads(sandbox.run(code, mounts="mount -t tmpfs none /tmp"))  # where no VM of a service was killed
    assert str(found["pid"]) in found["seen"]
    # an unnamed file in the directory, the name that it gets, and what ended VMs left
    assert {name for name in found["seen"] if not name.isdecimal()} == {"."}


# -- kills ----------------------------------------------------------------------------------------


def test_kill_at_any_moment_leaves_a_whole_file_or_none(tmp_path: Path) -> None:
    code = f"""
        import random
        chance = random.Random(20131)
        outcomes = {{"none": 0, "whole": 0}}
        folder = {str(tmp_path)!r}
        for _ in range(200):
            child = os.fork()
            if child == 0:
                while True:
                    file, _ = publish(folder)
                    file.unlink()
            time.sleep(chance.uniform(0.0005, 0.003))  # the moment at which it is killed
            os.kill(child, 9)
            os.waitpid(child, 0)
            path = folder + f"/hsperfdata_{USER}/{{child}}"
            if os.path.exists(path):
                assert open(path, "rb").read() == IMAGE
                outcomes["whole"] += 1
            else:
                outcomes["none"] += 1
            left = [path for path in tree(folder) if not path.endswith(f"/{{child}}")]
            assert set(left) <= {{folder + "/hsperfdata_{USER}"}}, left  # a kill may come before the directory
            with _directory.open_directory(tmp=folder) as directory:
                _stale.clean(directory, os.getpid())
                assert os.listdir(directory.fd) == []
        answer(**outcomes)
    """
    outcomes = json.loads(sandbox.plain(code))
    assert outcomes["none"] + outcomes["whole"] == 200
    assert outcomes["none"] > 0
    assert outcomes["whole"] > 0


def test_many_start_and_end_at_once(tmp_path: Path) -> None:
    """Each finds its own file whole and locked; no clean-up ever takes a live one's."""
    code = f"""
        children = []
        for _ in range(100):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    for _ in range(5):
                        file, removed = publish({str(tmp_path)!r})
                        time.sleep(0.001)  # others clean up in between
                        found = os.stat(file.path)
                        assert (found.st_dev, found.st_ino) == (file.device, file.inode)
                        file.unlink()
                        assert not os.path.exists(file.path)
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        answer(statuses=sorted({{os.waitpid(child, 0)[1] for child in children}}), left=tree({str(tmp_path)!r}))
    """
    found = json.loads(sandbox.plain(code))
    assert found["statuses"] == [0]
    assert found["left"] == [f"{tmp_path}/hsperfdata_{USER}"]
