"""Threads, their groups, states and storage; threads of agents; stop and interrupt. What needs processes of its own."""

from __future__ import annotations

import subprocess
import sys

from tests import programs
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
    code = programs.source("threads/interrupted_sleep")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (run.stdout, run.stderr, run.returncode) == ("interrupted\n", "", 0)
