"""The CPythons of this machine, by version: for tests of what vmscope says of others than the one that it runs on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_ASK = "import sys; print(sys.version_info[1], getattr(sys, '_is_gil_enabled', bool)() or sys.version_info < (3, 13))"


def find(minor: int) -> str:
    """The program of CPython 3.`minor`; skips the test where there is none."""
    program = sys.executable if sys.version_info[1] == minor else _found(minor)
    if not program:
        pytest.skip(f"there is no CPython 3.{minor} here: scripts/pythons brings 3.14 and 3.15")
    return program


@cache
def _found(minor: int) -> str:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [
        *sorted(map(str, pyenv.glob(f"versions/3.{minor}.*/bin/python3.{minor}"))),
        shutil.which(f"python3.{minor}") or "",
        str(_ROOT / f"build/cpython-3.{minor}/bin/python3.{minor}"),
    ]
    for program in candidates:
        if program and os.access(program, os.X_OK):
            run = subprocess.run([program, "-ISc", _ASK], capture_output=True, text=True, check=False)
            if run.stdout.split() == [str(minor), "True"]:
                return program
    return ""
