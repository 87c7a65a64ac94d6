"""Threads that are suspended, and go on. What needs processes of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import PATIENCE
from tests.unit.tool.test_suspension import monitoring

pytestmark = pytest.mark.skipif(monitoring is None, reason="threads can be suspended since 3.12")


def test_an_unloaded_agent_leaves_nobody_suspended() -> None:
    code = """
import sys, threading, time, types
from vmscope import tool
agent = types.ModuleType("stopper")
def agent_on_attach(vm, options):
    env = vm.get_env()
    env.add_capabilities({tool.Capability.CAN_SUSPEND})
    env.suspend_thread(next(thread for thread in env.get_all_threads() if thread.name == "counts"))
agent.agent_on_attach = agent_on_attach
sys.modules["stopper"] = agent
count = 0
def counts():
    global count
    while count >= 0:
        count += 1
        time.sleep(0.0001)  # a suspended thread may be in a call
thread = threading.Thread(target=counts, name="counts", daemon=True)
thread.start()
loaded = tool.load_agent("stopper")
end, before = time.monotonic() + 20, -1
while count != before:
    assert time.monotonic() < end
    before = count
    time.sleep(0.05)  # a thread that runs counts on
tool.unload_agent(loaded)
from tests.wait import wait_for
wait_for(lambda: count != before)
count = -2
thread.join(20)
assert not thread.is_alive()
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_a_child_has_nobody_to_hold_up() -> None:
    """Its parent suspended a thread that the child does not have: nothing watches the child's lines for it."""
    code = """
import os, sys, threading, time
from vmscope import tool
env = tool.vm().get_env(tool.Version.V1_2, "test")
env.add_capabilities({tool.Capability.CAN_SUSPEND})
go = threading.Event()
other = threading.Thread(target=go.wait, name="other", daemon=True)
other.start()
env.suspend_thread(next(thread for thread in env.get_all_threads() if thread.name == "other"))
def watched():
    monitoring = sys.monitoring
    return sum(monitoring.get_events(number) for number in range(6) if monitoring.get_tool(number) is not None)
assert watched()
pid = os.fork()
if not pid:
    os._exit(9 if watched() else 0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
os._exit(0)
"""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
