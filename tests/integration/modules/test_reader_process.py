"""Facts of processes out of /proc: of this one, of children with odd names, of those that have ended.

What needs processes of its own.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.conftest import StartPython
from tests.wait import wait_for
from vmscope.errors import AccessDenied, NoSuchProcess
from vmscope.reader.process import exists, namespace_pids, process, user_ids

NAMED = """
import sys
with open("/proc/self/comm", "w") as file:
    file.write(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("name", ["a) b", "((", ") S 1 1", "x\ny", "ä) (", "0"])
def test_a_name_may_hold_anything(start_python: StartPython, name: str) -> None:
    child = start_python(NAMED, name)
    found = process(child.pid)
    assert found.name == name
    assert found.state in "RSD"
    assert found.threads == 1
    assert found.start_ticks >= process(os.getpid()).start_ticks


def test_a_zombie_is_not_alive() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    try:
        wait_for(lambda: not process(pid).alive)
        assert not process(pid).alive
        assert process(pid).state == "Z"
        assert exists(pid)
    finally:
        os.waitpid(pid, 0)
    assert not exists(pid)


def test_a_process_that_has_ended() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    for look in (process, namespace_pids, user_ids):
        with pytest.raises(NoSuchProcess, match=f"no process {child.pid}") as caught:
            look(child.pid)
        assert caught.value.pid == child.pid
    assert not exists(child.pid)


def test_processes_that_end_while_they_are_looked_at() -> None:
    """Every look is whole or says that the process is gone."""
    seen = gone = 0
    for _ in range(40):
        child = subprocess.Popen(["true"])
        try:
            while True:
                found = process(child.pid)
                assert found.start_ticks > 0
                seen += 1
                if not found.alive:
                    break
            child.wait()
            with pytest.raises(NoSuchProcess):
                process(child.pid)
            gone += 1
        finally:
            child.wait()
    assert seen >= 40
    assert gone == 40


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_process_of_another_user() -> None:
    pid = os.fork()
    if pid == 0:
        os.setresuid(65534, 65534, 65534)
        try:
            exists(os.getppid())
        except AccessDenied as error:
            os._exit(0 if "Operation not permitted" in str(error) and error.pid == os.getppid() else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
