"""wire.codes and wire.text: numbers with names, and what people read. What needs processes of its own."""

from __future__ import annotations

import subprocess
import sys


def test_showing_imports_no_enum() -> None:
    code = "import sys, vmscope.wire.text, vmscope.wire.decode; print('enum' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "False"
