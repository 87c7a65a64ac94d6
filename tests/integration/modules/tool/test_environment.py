"""Phases, environments, and how each function of the interface is entered. What needs processes of its own."""

from __future__ import annotations

import subprocess
import sys

from tests import programs
from tests.conftest import StartPython


def test_a_child_can_use_the_environment_though_another_thread_was_within(start_python: StartPython) -> None:
    child = start_python(
        programs.source("environment/fork_with_the_lock_held"),
        options=["-W", "ignore"],
        ready=False,
    )
    assert child.readline() == "9"


def test_after_a_fork_only_the_thread_that_forked_lives() -> None:
    code = programs.source("environment/threads_after_a_fork")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
