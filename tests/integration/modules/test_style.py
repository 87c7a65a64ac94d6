"""scripts/style.py finds what it is for, in prose and not in code; the documentation has nothing of it.

What needs processes of its own.
"""

from __future__ import annotations

import subprocess
import sys

from tests.unit.test_style import ROOT


def test_the_documentation_passes() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "style.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout
