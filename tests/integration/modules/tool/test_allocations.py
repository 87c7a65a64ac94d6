"""VMObjectAlloc and SampledObjectAlloc: what is told of new objects, when, and what never is.

What needs processes of its own.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests import programs
from vmscope.tool.spec.available_capabilities import TRACER, features

pytestmark = pytest.mark.skipif(TRACER not in features(), reason="PyRefTracer came with 3.13, and needs the GIL")


@pytest.fixture(autouse=True)
def small_heap() -> Iterator[None]:
    """Collections here leave alone what a worker has collected: thousands of tests."""
    gc.freeze()
    yield
    gc.unfreeze()


PROGRAM = programs.source("allocations/program")


def test_a_whole_program_with_imports_a_fork_and_its_end(tmp_path: Any) -> None:
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PROGRAM],
        capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "True\n"), run.stderr
