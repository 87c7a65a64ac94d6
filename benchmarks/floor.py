"""An object whose C methods do nothing, compiled as the extension is: what a call costs."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("floor.c")
FLAGS = ["-std=c11", "-O2", "-fvisibility=hidden", "-fno-math-errno"]  # setup.py's


def empty() -> Any:
    """An object with the methods noargs() and o(argument)."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/floor.so"
        words = " ".join(sysconfig.get_config_var(name) for name in ("CC", "CFLAGS", "CCSHARED"))
        include = sysconfig.get_paths()["include"]
        command = [*shlex.split(words), *FLAGS, "-shared", f"-I{include}", str(SOURCE), "-o", path]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(f"{SOURCE.name} does not compile: {run.stderr}")
        spec = importlib.util.spec_from_file_location("floor", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)

    return module.Empty()
