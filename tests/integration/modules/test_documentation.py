"""The documentation knows every counter, VM option and sub-command, as the code's own tables have them.

What needs processes of its own.
"""

from __future__ import annotations

import subprocess
import sys

from tests.unit.test_documentation import ROOT


def test_the_generated_parts_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "tables.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
