"""Tags and walks through the heap, beside gc, sys and the objects themselves. What needs processes of its own."""

from __future__ import annotations

import subprocess
import sys

from tests import programs


def test_nothing_of_vmscope_s_own_is_met() -> None:
    """In a process of its own: here other tests have imported modules of vmscope twice."""
    code = "from tests.unit.tool import test_heap as heap; print(heap.own_objects_met(heap.live()))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")


AFTER_ASYNCIO = programs.source("heap/after_asyncio")


def test_what_c_code_has_freed_is_not_found() -> None:
    """_asyncio's free list, which CPython 3.12 shows as the module's references: held, it would never end."""
    run = subprocess.run(
        [sys.executable, "-c", AFTER_ASYNCIO], capture_output=True, text=True, timeout=120, check=False
    )
    assert (run.stdout, run.stderr, run.returncode) == ("done\n", "", 0)
