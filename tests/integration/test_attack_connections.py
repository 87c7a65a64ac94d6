"""Clients in number, and clients that stop in mid-request: nothing leaks, and an honest client has its turn."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from tests import programs
from tests.attack import requests
from tests.conftest import StartVMScope
from tests.integration.test_handover import FORK, answer, connect
from tests.integration.test_listener import VERSION, path_of
from tests.support import Child, python_command
from tests.wait import wait_for

CROWD = 2_000
PLACES = 64
QUEUE = 512
THREADS = 4  # of vmscope's own
CONNECTIONS = "__import__('vmscope.runtime').runtime.VM.listener.connections"

CLIENTS = programs.source("attack_connections/clients")


def descriptors(pid: int, implementation: str) -> int:
    """Of all tables that its threads have: those of the twin share the program's."""
    if implementation == "python":
        return len(os.listdir(f"/proc/{pid}/fd"))
    return sum(len(os.listdir(task / "fd")) for task in Path(f"/proc/{pid}/task").iterdir())


def clients(pid: int, number: int) -> Child:
    child = Child(python_command(CLIENTS, str(path_of(pid)), str(number)))
    child.read_until(b"ready\n")
    return child


def ask(pid: int) -> str:
    return requests.ask(str(path_of(pid))).decode()


@pytest.mark.timeout(180)
def test_2000_connections_at_once(implementation: str, start_vmscope: StartVMScope) -> None:
    """64 have a place, 512 wait for one, the others are refused. An honest client has its turn behind them; a fork does
    not wait for any."""
    child = start_vmscope(code=FORK)
    assert VERSION.match(ask(child.pid))  # imports what a first request does
    assert child.ask("forks(1)") == "1"
    assert VERSION.match(ask(child.pid))  # so that all threads are there again
    wait_for(lambda: child.ask(CONNECTIONS) == "0")
    before = descriptors(child.pid, implementation)
    with clients(child.pid, CROWD) as crowd:
        assert QUEUE <= int(crowd.ask("come()")) <= 2 * PLACES + QUEUE + 1
        assert int(child.ask(CONNECTIONS)) <= PLACES
        assert descriptors(child.pid, implementation) <= before + PLACES + THREADS * 2
        assert child.ask("forks(3)") == "3"
        with closing(connect(child.pid)) as client:
            client.settimeout(120)
            client.sendall(b"1\0jcmd\0VM.version\0\0\0")
            assert VERSION.match(answer(client))
        crowd.ask("leave()")
        assert VERSION.match(ask(child.pid))
    wait_for(lambda: child.ask(CONNECTIONS) == "0")
    # threads that had just started again when they were counted had not opened their own yet: one or two each
    wait_for(lambda: descriptors(child.pid, implementation) <= before + THREADS * 2, f"{before} before")
    assert child.stop() == 0


def arrive(crowd: Child, child: Child) -> None:
    """They take all places."""
    assert crowd.ask("come()") == str(PLACES)
    wait_for(lambda: child.ask(CONNECTIONS) == str(PLACES))


@pytest.mark.timeout(120)
def test_clients_that_are_stopped_in_mid_request(implementation: str, start_vmscope: StartVMScope) -> None:
    """They hold all places: one of them loses its own to an honest client, and all of them in the end."""
    child = start_vmscope(code=FORK)
    with clients(child.pid, PLACES) as stopped:
        arrive(stopped, child)
        os.kill(stopped.pid, signal.SIGSTOP)
        assert VERSION.match(ask(child.pid))
        assert child.ask("forks(3)") == "3"
        os.kill(stopped.pid, signal.SIGCONT)
        answered, closed = eval(stopped.ask("go_on()"))
        assert answered + closed == PLACES
        assert closed >= 1
        arrive(stopped, child)
        os.kill(stopped.pid, signal.SIGSTOP)
        wait_for(lambda: child.ask(CONNECTIONS) == "0")
        os.kill(stopped.pid, signal.SIGCONT)
        assert stopped.ask("go_on()") == str((0, PLACES))
    assert child.stop() == 0


LONG = """
import vmscope.commands
from vmscope.commands.registry import Command
def run(out):
    for _ in range(16):
        out.write("x" * 65535 + "\\n")
vmscope.commands.register(Command("Test.long", "A long reply.", run))
"""


def test_a_client_that_is_stopped_in_mid_reply(implementation: str, start_vmscope: StartVMScope) -> None:
    """Nobody waits for it, and it gets its whole reply, however long it takes."""
    child = start_vmscope(code=FORK + LONG)
    with clients(child.pid, 1) as stopped:
        stopped.ask("clients.append(socket.socket(socket.AF_UNIX)) or clients[0].connect(path)")
        stopped.ask("clients[0].sendall(b'1\\0jcmd\\0Test.long\\0\\0\\0')")
        os.kill(stopped.pid, signal.SIGSTOP)
        for _ in range(3):
            assert VERSION.match(ask(child.pid))
            assert child.ask("forks(3)") == "3"
        assert child.ask(CONNECTIONS) == "1"
        os.kill(stopped.pid, signal.SIGCONT)
        whole = "sum(map(len, iter(lambda: clients[0].recv(1 << 16), b'')))"
        assert stopped.ask(whole) == str(2 + 16 * 65536)
    assert child.stop() == 0
