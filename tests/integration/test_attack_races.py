"""Another user swaps what a path stands for between any two steps of a VM or a tool: a debugger stops them there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from tests.attack.intruder import Intruder
from tests.attack.stepper import Stepper
from tests.support import Child, User, python_command

START = """
import os, sys, vmscope, vmscope.overview, vmscope.runtime
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


SAVE = """
import sys, vmscope
vmscope.start("-XX:PerfDataSaveFile=PATH")
print("ready", flush=True)
sys.stdin.readline()
vmscope.stop()
"""
SECRET = "a file that nobody may change"


@pytest.mark.parametrize("kind", ["link to a private folder", "folder"])
def test_a_region_is_saved_to_the_folder_that_was_looked_at(
    kind: str, implementation: str, intruder: Intruder, shared_folder: Path, tmp_path: Path
) -> None:
    """The path goes through the intruder's folder, which becomes another one before each step in turn."""
    secret, mine, door = shared_folder / "secret", shared_folder / "mine", shared_folder / "door"
    secret.write_text(SECRET)
    assert intruder.put("folder", mine)
    assert intruder.put("link", mine / "region", secret)
    for step in count():
        first = tmp_path if kind == "link to a private folder" else mine
        assert intruder.put("link", door, first)
        with Child(python_command(SAVE.replace("PATH", f"{door}/region"))) as child:
            child.read_until(b"ready\n")
            stepper = Stepper(child.pid)
            child.send("")
            steps = 0
            for call in stepper:
                if str(door) in call.path or call.path == "region":
                    steps += 1
                    if steps > step:
                        assert intruder.put("link", door, mine if first == tmp_path else tmp_path)
            assert child.process.wait() == 0
        assert secret.read_text() == SECRET
        if steps <= step:
            break
    assert step > 1
