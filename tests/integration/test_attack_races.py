"""Another user swaps what a path stands for between any two steps of a VM or a tool: a debugger stops them there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
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
