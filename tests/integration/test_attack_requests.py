"""Clients that break every rule of the attach protocol, in number: a VM stays as it is, and answers an honest one."""

from __future__ import annotations

import array
import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from tests import programs
from tests.attack import requests
from tests.conftest import StartVMScope
from tests.integration.test_listener import path_of
from tests.support import Child, python_command
from tests.wait import wait_for
from vmscope.attach import client

COUNT = int(os.environ.get("VMSCOPE_ATTACKS", "1000"))  # python -m tests.attack.requests makes any number of them
DESCRIPTORS = "sorted(os.listdir('/proc/self/fd'))"
CONNECTIONS = "vmscope.runtime.VM.listener.connections"


def test_malformed_requests(implementation: str, start_vmscope: StartVMScope, tmp_path: Path) -> None:
    child = start_vmscope(code=f"import os, vmscope.runtime\nos.chdir({str(tmp_path)!r})")  # heap dumps and the like
    path = str(path_of(child.pid))
    requests.ask(path)  # imports what a first request does
    before = child.ask(DESCRIPTORS)
    requests.campaign(path, COUNT)
    wait_for(lambda: child.ask(CONNECTIONS) == "0")
    if implementation == "c":  # the twin's connections are descriptors of the program's
        assert child.ask(DESCRIPTORS) == before
    assert requests.ask(path).startswith(b"0\nCPython")
    assert child.stop() == 0
    assert not os.path.exists(path)


@pytest.fixture
def strict() -> None:
    """A kernel that lets a socket refuse descriptors."""
    with closing(socket.socket(socket.AF_UNIX)) as probe:
        try:
            probe.setsockopt(socket.SOL_SOCKET, 83, 0)
        except OSError:
            pytest.skip("no SO_PASSRIGHTS: Linux before 6.16")


def rights() -> list[tuple[int, int, array.array[int]]]:
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))]


@pytest.mark.usefixtures("strict")
def test_a_client_can_hand_over_no_descriptors(implementation: str, start_vmscope: StartVMScope) -> None:
    """The last close of one may wait, as of a connection that lingers: the thread that talks with clients would."""
    child = start_vmscope()
    with closing(socket.socket(socket.AF_UNIX)) as attacker:
        attacker.connect(str(path_of(child.pid)))
        with pytest.raises(PermissionError):
            attacker.sendmsg([b"1"], rights())


SERVER = programs.source("attack_requests/server")


@pytest.mark.usefixtures("strict")
def test_a_server_can_hand_over_no_descriptors() -> None:
    with Child(python_command(SERVER)) as server:
        server.read_until(b"ready\n")
        with client.connect(server.pid) as asked, asked.execute("jcmd", "VM.version") as reply:
            assert reply.read() == b"refused\n"
