"""Phases, environments, and how each function of the interface is entered. What needs processes of its own."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import StartPython


def test_a_child_can_use_the_environment_though_another_thread_was_within(start_python: StartPython) -> None:
    child = start_python(
        """
        import os, threading
        from vmscope import tool
        vm = tool.vm()
        env = vm.get_env()
        within, go = threading.Event(), threading.Event()
        def hold():
            with vm.lock:
                within.set()
                go.wait()
        holder = threading.Thread(target=hold, daemon=True)
        holder.start()
        within.wait()
        pid = os.fork()
        if not pid:
            env.add_capabilities({tool.Capability.CAN_TAG_OBJECTS})
            env.dispose_environment()
            os._exit(9)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        go.set()
        holder.join()
        """,
        options=["-W", "ignore"],
        ready=False,
    )
    assert child.readline() == "9"


def test_after_a_fork_only_the_thread_that_forked_lives() -> None:
    code = """
import os, threading, time
from vmscope.tool.model import threads
seen, go = [], threading.Event()
def run():
    seen.append(threads.current())
    go.wait()
other = threading.Thread(target=run, daemon=True)
other.start()
from tests.wait import wait_for
wait_for(lambda: seen)
own = threads.current()
pid = os.fork()
if not pid:
    os._exit(0 if own.alive and threads.current() is own and not seen[0].alive and own.native_id == os.getpid() else 7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert seen[0].alive
go.set()
other.join()
"""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
