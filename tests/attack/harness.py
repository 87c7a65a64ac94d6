"""C sources of the extension in programs of their own, with the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "src" / "vmscope" / "native"
FLAGS = "-std=c11 -O1 -g -Wall -Wextra -Werror -pthread -fsanitize=address,undefined -fno-sanitize-recover=all".split()


def build(name: str, folder: Path) -> Path:
    """The program of NAME.c, which includes what it tries. Skips where this machine cannot build it."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    program = folder / name
    command = [compiler, *FLAGS, f"-I{NATIVE}", f"-isystem{sysconfig.get_path('include')}", "-o", str(program)]
    run = subprocess.run([*command, str(HERE / f"{name}.c")], capture_output=True, text=True, check=False)
    if run.returncode and "sanitize" in run.stderr and ".c:" not in run.stderr:
        pytest.skip(f"no sanitizers for {compiler}")
    assert run.returncode == 0, run.stderr
    return program
