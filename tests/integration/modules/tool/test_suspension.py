"""Threads that are suspended, and go on. What needs processes of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import programs
from tests.support import PATIENCE
from tests.unit.tool.test_suspension import monitoring

pytestmark = pytest.mark.skipif(monitoring is None, reason="threads can be suspended since 3.12")


def test_an_unloaded_agent_leaves_nobody_suspended() -> None:
    code = programs.source("suspension/unloaded_agent")
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_a_child_has_nobody_to_hold_up() -> None:
    """Its parent suspended a thread that the child does not have: nothing watches the child's lines for it."""
    code = programs.source("suspension/child")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
