"""C of the benchmarks' own: modules compiled as the extension is, and agents against a JDK's jvmti.h."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent
FLAGS = ["-std=c11", "-O2", "-fvisibility=hidden", "-fno-math-errno"]  # setup.py's


def empty() -> Any:
    """An object whose C methods noargs() and o(argument) do nothing: what a call costs."""
    return module("floor").Empty()


def module(name: str) -> ModuleType:
    """The extension module in NAME.c."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{name}.so"
        compile_to(path, f"{name}.c", sysconfig.get_config_var("CFLAGS"), f"-I{sysconfig.get_paths()['include']}")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    return made


def compile_to(path: str, source: str, *options: str) -> None:
    """RuntimeError with the compiler's words."""
    words = shlex.split(" ".join([sysconfig.get_config_var("CC"), sysconfig.get_config_var("CCSHARED"), *options]))
    command = [*words, *FLAGS, "-shared", str(FOLDER / source), "-o", path]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{source} does not compile: {run.stderr}")
