"""What arrives in the place of the listener's sockets, with the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.attack import harness


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="how a message's parts come is the kernel's")
def test_descriptors_that_nobody_expects(tmp_path: Path) -> None:
    """Too many, too few, none, cut off, or behind parts of another kind: they are closed, nothing is written astray."""
    program = harness.build("arrivals", tmp_path)
    with tempfile.TemporaryDirectory() as folder:  # pytest's own may be too long for a socket
        run = subprocess.run([str(program), folder], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
