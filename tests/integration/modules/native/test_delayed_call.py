"""One call, a moment from now: in C and in Python. What needs processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests import programs
from tests.implementations import both


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield request.param
    assert request.param.cancel_call()


def test_the_parent_of_forks_gets_its_call_and_children_none(native: Any) -> None:
    """Twenty forks within the delay: each stops the thread and starts it again, and the deadline stays."""
    if native.IMPLEMENTATION != "c":
        pytest.skip("the twin's thread cannot be started again after a fork")
    program = programs.source("delayed_call/forks")
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "VMSCOPE_NATIVE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
