"""The extension for another interpreter, or with sanitizers, in a copy of the package: for tests and benchmarks.

    scripts/variants.py FOLDER [PYTHON [SANITIZERS]]

makes FOLDER/vmscope for PYTHON (this one) with SANITIZERS, such as address,undefined (none). `scripts/freethreaded`
builds the interpreters that `free_threaded` finds.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "vmscope"
FLAGS = "-std=c11 -fvisibility=hidden -fno-math-errno -fexceptions -pthread -shared".split()
FLAGS += "-fPIC -g -Wall -Wextra -Werror".split()
ASK = "import sysconfig as s; print(s.get_path('include'), s.get_config_var('EXT_SUFFIX'), sep='\\n')"


class BuildError(Exception):
    """What the compiler had against it."""


def free_threaded(variant: str = "") -> str | None:
    """A free-threaded CPython: VMSCOPE_FREE_THREADED, what scripts/freethreaded built, or PATH's; `tsan`: its own."""
    built = ROOT / "build" / f"python-3.13t{variant and f'-{variant}'}" / "bin" / "python3.13t"
    if variant:
        return str(built) if built.exists() else None
    named = os.environ.get("VMSCOPE_FREE_THREADED")
    return named or (str(built) if built.exists() else shutil.which("python3.13t") or shutil.which("python3.14t"))


def build(folder: Path | str, python: str = sys.executable, sanitizers: str = "") -> str:
    """Makes the copy below `folder`, which is what belongs in PYTHONPATH then. Raises BuildError."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise BuildError("no C compiler")
    asked = subprocess.run([python, "-I", "-c", ASK], capture_output=True, text=True, check=True)
    include, suffix = asked.stdout.splitlines()
    package = Path(folder) / "vmscope"
    shutil.copytree(PACKAGE, package, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    flags = ["-O2"]
    if sanitizers:
        flags = ["-O1", "-fno-omit-frame-pointer", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    if sanitizers == "thread":
        flags += ["-Wno-tsan"]  # it knows no fences; what they order here is atomic besides
    native = PACKAGE / "native"
    sources = sorted(map(str, native.rglob("*.c")))
    command = [compiler, *FLAGS, *flags, f"-I{include}", f"-I{native}", *sources]
    command += ["-o", str(package / "native" / f"_native{suffix}")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise BuildError(f"{shlex.join(command)}: {run.stderr}")
    return str(folder)


def runtime_library(name: str) -> str | None:
    """The path of a sanitizer's runtime, such as libasan.so, for LD_PRELOAD: the interpreter is built without it."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        return None
    run = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
    path = run.stdout.strip()
    return os.path.realpath(path) if os.path.isabs(path) and os.path.exists(path) else None


if __name__ == "__main__":
    try:
        print(build(*sys.argv[1:]))
    except BuildError as error:
        sys.exit(f"scripts/variants.py: {error}")
