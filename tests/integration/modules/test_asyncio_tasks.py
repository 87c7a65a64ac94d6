"""Python.asyncio_tasks and Thread.print -e: tasks and greenlets, as a thread outside of them sees them.

What needs processes of its own.
"""

from __future__ import annotations

import subprocess
import sys


def test_nothing_is_imported_for_it() -> None:
    code = """
import sys
from vmscope import commands
commands.execute("Python.asyncio_tasks", sys.stdout)
commands.execute("Thread.print -l -e", sys.stdout)
assert not {"asyncio", "threading", "greenlet"} & set(sys.modules), sys.modules
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.startswith("asyncio is not loaded\n")
    assert '\n"MainThread" #1 prio=5 ' in run.stdout
