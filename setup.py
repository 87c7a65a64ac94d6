"""The one C extension. All else about the package stands in pyproject.toml.

VMSCOPE_WERROR=1 (set by the Makefile) turns warnings into errors and a failed compilation into a failed
build. Without it a machine that has no compiler gets the Python twin. VMSCOPE_SANITIZE names sanitizers
to build with, for example `address,undefined`.
"""

from __future__ import annotations

import os
import sys
from glob import glob

from setuptools import Extension, setup

NATIVE = "src/vmscope/native"
strict = os.environ.get("VMSCOPE_WERROR") == "1"
sanitizers = os.environ.get("VMSCOPE_SANITIZE", "")

compile_args = ["-std=c11", "-O2", "-fvisibility=hidden", "-fno-math-errno", "-fexceptions", "-pthread"]
compile_args += ["-Wall", "-Wextra", *(["-Werror"] * strict)]
link_args = ["-pthread"]
if sanitizers:
    compile_args += [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer", "-g"]
    link_args += [f"-fsanitize={sanitizers}"]

sources = sorted(glob(f"{NATIVE}/**/*.c", recursive=True))
extension = Extension(
    "vmscope.native._native",
    sources=sources,
    depends=sorted(glob(f"{NATIVE}/**/*.h", recursive=True)),
    extra_compile_args=compile_args,
    extra_link_args=link_args,
    optional=not strict,
)

# The C is for POSIX; on Windows the twin is all there is.
setup(ext_modules=[extension] if sources and sys.platform != "win32" else [])
