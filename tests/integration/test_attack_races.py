"""Another user swaps what a path stands for between any two steps of a VM or a tool: a debugger stops them there."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from tests import programs
from tests.attack import harness
from tests.attack.intruder import Intruder
from tests.attack.stepper import Stepper
from tests.support import Child, User, python_command

START = """
import os, sys, vmscope, vmscope.process_status, vmscope.runtime
from vmscope.memory import _directory, _file, _stale
print("ready", flush=True)
sys.stdin.readline()
vmscope.start()
print("started", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""


@pytest.fixture
def intruder(private_user: User) -> Iterator[Intruder]:
    with Intruder(private_user) as intruder:
        yield intruder


def test_a_start_connects_to_no_socket_but_its_own(
    implementation: str, intruder: Intruder, shared_folder: Path
) -> None:
    """The intruder's socket under its name becomes a link to one that root alone may connect to."""
    private = shared_folder / "private"
    with closing(socket.socket(socket.AF_UNIX)) as server, Child(python_command(START)) as child:
        server.bind(str(private))
        private.chmod(0o600)
        server.listen()
        server.setblocking(False)
        path = f"/tmp/.java_pid{child.pid}"
        child.read_until(b"ready\n")
        assert intruder.put("socket", path)
        stepper = Stepper(child.pid)
        child.send("")
        for call in stepper:
            if call.name == "connect":
                assert intruder.put("link", path, private)
                break
        child.read_until(b"started\n")
        with pytest.raises(BlockingIOError):
            server.accept()
        os.unlink(path)


# -- files that a VM writes ----------------------------------------------------------------------

WRITE = """
import sys, vmscope, vmscope.commands
from vmscope.commands import heap_dump, log, _log_output, operations
from vmscope.errors import CommandError
path = sys.argv[1]
class Reply:
    def write(self, text): pass
    def flush(self): pass
BEGIN
print("ready", flush=True)
sys.stdin.readline()
try:
    END
except CommandError as error:
    print(error, flush=True)
"""
WRITERS = {
    "saved region": ("vmscope.start(f'-XX:PerfDataSaveFile={path}')", "vmscope.stop()"),
    "heap dump": ("", "vmscope.commands.execute(f'GC.heap_dump {path}', Reply())"),
    "heap dump in a file's place": ("", "vmscope.commands.execute(f'GC.heap_dump {path} -overwrite', Reply())"),
    "histogram": ("", "list(operations.inspect_heap(Reply(), '-all', path))"),
    "log": (
        "import logging",
        "vmscope.commands.execute(f'VM.log output={path} what=all=info', Reply()); "
        "logging.getLogger('vmscope').info('a record')",
    ),
}
SECRET = "a file that nobody may change"


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", ["link to a private folder", "folder"])
@pytest.mark.parametrize("what", WRITERS)
def test_a_file_is_written_to_the_folder_that_was_looked_at(
    what: str, kind: str, implementation: str, intruder: Intruder, shared_folder: Path, tmp_path: Path
) -> None:
    """The path goes through the intruder's folder, which becomes another one before each step in turn."""
    if implementation == "python" and what != "saved region":
        pytest.skip("the same code as with the extension")
    secret, mine, door = shared_folder / "secret", shared_folder / "mine", shared_folder / "door"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    assert intruder.put("folder", mine)
    assert intruder.put("link", mine / "region", secret)
    begin, end = WRITERS[what]
    for step in count():
        first = tmp_path if kind == "link to a private folder" else mine
        assert intruder.put("link", door, first)
        with Child(python_command(WRITE.replace("BEGIN", begin).replace("END", end), f"{door}/region")) as child:
            child.read_until(b"ready\n")
            stepper = Stepper(child.pid)
            child.send("")
            steps = 0
            for call in stepper:
                if str(door) in call.path or call.path.startswith("region"):
                    steps += 1
                    if steps > step:
                        assert intruder.put("link", door, mine if first == tmp_path else tmp_path)
            assert child.process.wait() == 0
        assert secret.read_text() == SECRET
        assert [name for name in (*os.listdir(mine), *os.listdir(tmp_path)) if name != "region"] == []
        (tmp_path / "region").unlink(missing_ok=True)
        if steps <= step:
            break
    assert step >= 1


# -- the region's file ---------------------------------------------------------------------------

PUBLISH = programs.source("attack_races/publish")
OBSTACLES = ("link", "folder", "file", "hard link")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("ways", range(3), ids=["unnamed", "beside", "in place"])
def test_a_region_s_directory_that_is_swapped(
    ways: int, obstacle: str, implementation: str, intruder: Intruder, shared_folder: Path, tmp_path: Path
) -> None:
    """Where even the directory's name may be taken away: nothing is made, changed or removed in another's place."""
    if implementation == "python" and obstacle != "link":
        pytest.skip("the same code as with the extension")
    private, secret = tmp_path / "private", shared_folder / "secret"
    directory, moved = shared_folder / "hsperfdata_root", shared_folder / "moved"
    private.mkdir()
    secret.write_text(SECRET)
    shared_folder.chmod(0o777)  # worse than /tmp is
    for step in count():
        with Child(python_command(PUBLISH, str(shared_folder), str(ways))) as child:
            name = str(child.pid)
            (private / name).write_text(SECRET)
            child.read_until(b"ready\n")
            stepper = Stepper(child.pid)
            child.send("")
            steps = 0
            for call in stepper:
                if str(shared_folder) in call.path or call.path in (".", name) or "/fd/" in call.path:
                    steps += 1
                    if steps == step + 1:
                        intruder.move(directory, moved)
                        for path in (directory, directory / name, *shared_folder.glob(".vmscope-*")):
                            intruder.put(obstacle, path, private if obstacle == "link" else secret)
            assert child.process.wait() == 0
        assert secret.read_text() == SECRET
        assert {path.name: path.read_text() for path in private.iterdir()} == {name: SECRET}
        (private / name).unlink()
        if directory.is_dir() and not directory.is_symlink() and directory.lstat().st_uid != 0:
            assert [path for path in directory.iterdir() if path.lstat().st_uid == 0] == []
        for path in (directory, moved, *shared_folder.glob(".vmscope-*")):
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
        if steps <= step:
            break
    assert step > 3


# -- what a start removes ------------------------------------------------------------------------

SWEEP = """
import os, sys
from vmscope.native.attach import socket as sockets
print("ready", flush=True)
sys.stdin.readline()
sockets.remove_stale_sockets(os.fsencode(sys.argv[1]), lambda: False)
"""


@pytest.fixture(scope="module")
def sweeper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return harness.build("sweeper", tmp_path_factory.mktemp("sweeper"))


@pytest.fixture
def sweep(implementation: str, request: pytest.FixtureRequest) -> list[str]:
    """What a command begins with that sweeps a folder once it is sent a line."""
    return [str(request.getfixturevalue("sweeper"))] if implementation == "c" else python_command(SWEEP)


@pytest.mark.parametrize("kind", ["link", "hard link", "file", "socket", "folder"])
def test_a_sweep_connects_to_nothing_but_what_was_left(
    kind: str, sweep: list[str], intruder: Intruder, shared_folder: Path
) -> None:
    """Where others may take names away: what a dead VM of root's left becomes another's before each step in turn."""
    folder, private = shared_folder / "tmp", shared_folder / "private"
    folder.mkdir()
    folder.chmod(0o777)
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = folder / f".java_pid{dead.pid}"
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(private))
        private.chmod(0o600)
        server.listen()
        server.setblocking(False)
        for step in count():
            with closing(socket.socket(socket.AF_UNIX)) as bound:
                bound.bind(str(left))
            os.utime(left, times=(0, 0))
            with Child([*sweep, str(folder)]) as child:
                child.read_until(b"ready\n")
                stepper = Stepper(child.pid)
                child.send("")
                steps = 0
                for call in stepper:
                    if left.name in call.path or call.name == "connect":
                        steps += 1
                        if steps == step + 1:
                            intruder.put(kind, left, private)
                assert child.process.wait() == 0
            with pytest.raises(BlockingIOError):
                server.accept()
            assert private.is_socket()
            if steps <= step:
                break
            if left.is_dir():
                left.rmdir()
            left.unlink(missing_ok=True)
    assert not left.exists()
    assert step > 1
