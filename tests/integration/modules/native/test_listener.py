"""The listener on both forms of the native part: framing, bounds, slow, silent, hostile and many clients.

What needs processes of its own.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.implementations import both
from tests.unit.native.test_listener import REPLY, SECOND, Serving
from tests.wait import wait_for


@pytest.fixture(params=both())
def form(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """pytest's own may be too long for a socket: within another run of it, it is."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_it_sweeps_what_killed_processes_left(form: Any, tmp_path: Path) -> None:
    """And nothing else: not what is young, somebody's who lives or listens, no socket, or has another name."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = [f".java_pid{dead.pid}", f".java_pid{dead.pid}.tmp"]
    live = [f".java_pid{os.getpid()}", ".java_pid1", f".java_pid0{dead.pid}", f".java_pid{dead.pid}.x", ".java_pid"]
    with ExitStack() as stack:
        for name in [*left, *live, ".java_pid99999999999"]:
            bound = stack.enter_context(socket.socket(socket.AF_UNIX))
            bound.bind(str(tmp_path / name))
            os.utime(tmp_path / name, times=(0, 0))
        live.append(".java_pid99999999999")
        young, listens, file = (f".java_pid{2**31 - int(shift)}" for shift in (2, 3, 4))
        for name in (young, listens):
            bound = stack.enter_context(socket.socket(socket.AF_UNIX))
            bound.bind(str(tmp_path / name))
        bound.listen(1)
        (tmp_path / file).touch()
        for name in (listens, file):
            os.utime(tmp_path / name, times=(0, 0))
        listener = form.Listener(lambda call: None)
        listener.open(os.fsencode(tmp_path / "socket"), os.fsencode(tmp_path / "socket.tmp"))
        stack.callback(listener.close, 10 * SECOND)
        listener.settle()
        wait_for(lambda: not any((tmp_path / name).exists() for name in left))
        time.sleep(0.1)  # what it should not remove would go by now
        assert {path.name for path in tmp_path.iterdir()} == {*live, young, listens, file, "socket"}


def test_of_very_many_names_it_looks_at_some(form: Any, tmp_path: Path) -> None:
    """Whoever may make files beside the socket holds up neither its clients nor the program."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    first = tmp_path / f".java_pid{dead.pid}"
    with closing(socket.socket(socket.AF_UNIX)) as bound:
        bound.bind(str(first))
    os.utime(first, times=(0, 0))
    pids = (pid for pid in range(2**31 - 1, 2**22, -1))
    for pid in itertools.islice(pids, 20_000):
        os.link(first, tmp_path / f".java_pid{pid}")
    before = len(os.listdir(tmp_path))
    serving = Serving(form, tmp_path)
    wait_for(lambda: len(os.listdir(tmp_path)) <= before - 16_000)
    assert serving.ask() == REPLY, "it is over"
    assert len(os.listdir(tmp_path)) > 3_000
    assert serving.listener.close(SECOND)
