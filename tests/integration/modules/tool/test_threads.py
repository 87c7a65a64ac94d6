"""Threads, their groups, states and storage; threads of agents; stop and interrupt. What needs processes of its own."""

from __future__ import annotations

import subprocess
import sys

from tests.support import PATIENCE


def test_nobody_waits_for_an_agent_s_thread_at_exit() -> None:
    code = """
import time
from vmscope.tool import Thread, vm
vm().get_env().run_agent_thread(Thread(name="a"), lambda env, argument: time.sleep(600))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_interrupting_the_main_thread_ends_its_sleep() -> None:
    code = """
import threading, time
from vmscope.tool import Capability, vm
env = vm().get_env()
env.add_capabilities({Capability.CAN_SIGNAL_THREAD})
main = env.get_current_thread()
asleep = threading.Event()
def interrupt():
    asleep.wait()
    time.sleep(0.1)  # it sleeps by now, which nothing tells
    env.interrupt_thread(main)
threading.Thread(target=interrupt).start()
try:
    asleep.set()
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (run.stdout, run.stderr, run.returncode) == ("interrupted\n", "", 0)
