"""The unit tests of the class histogram on the twin, in a small process: the twin looks at each object of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.implementations import ALONE

ROOT = Path(__file__).parents[2]


def test_the_twin_of_the_class_histogram() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    run = subprocess.run(
        [*command, "tests/unit/native/test_class_histogram.py"],
        cwd=ROOT,
        env={**os.environ, ALONE: "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert " passed" in run.stdout
