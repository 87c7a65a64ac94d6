"""The one C extension. All else about the package stands in pyproject.toml.

VMSCOPE_WERROR=1 (set by the Makefile) turns warnings into errors and a failed compilation into a failed
build. Without it a machine that has no compiler gets the Python twin, and the build's last line says so.
VMSCOPE_SANITIZE names sanitizers to build with, for example `address,undefined`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import sysconfig
from glob import glob
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

NATIVE = "src/vmscope/native"
strict = os.environ.get("VMSCOPE_WERROR") == "1"
sanitizers = os.environ.get("VMSCOPE_SANITIZE", "")

compile_args = ["-std=c11", "-O2", "-fvisibility=hidden", "-fno-math-errno", "-fexceptions", "-pthread"]
compile_args += ["-Wall", "-Wextra", *(["-Werror"] * strict)]
link_args = ["-pthread"]
if sanitizers:
    compile_args += [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer", "-g"]
    link_args += [f"-fsanitize={sanitizers}"]

FOLLOW = "vmscope_follow.pth"  # stands beside the package: by it `vmscope run` reaches what a program starts


class BuildPy(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.copy_file(f"src/{FOLLOW}", os.path.join(self.build_lib, FOLLOW))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), os.path.join(self.build_lib, FOLLOW)]


class EditableWheel(editable_wheel):
    def _run_build_commands(self, dist_name: str, unpacked_wheel: Any, *rest: Any) -> Any:
        shutil.copy(f"src/{FOLLOW}", unpacked_wheel)
        return super()._run_build_commands(dist_name, unpacked_wheel, *rest)


class BuildExtension(build_ext):
    """As setuptools', and where the extension could not be built it says last what is missing and what that costs."""

    def run(self) -> None:
        super().run()
        if not all(os.path.exists(self.get_ext_fullpath(each.name)) for each in self.extensions):
            atexit.register(
                sys.stderr.write,
                f"vmscope: built without its C extension, for {self.missing()}. Its Python twin runs in its place: "
                "counters cost 15 times as much, and native agents, the heaps' counters and what a crash saves are "
                "missing. With a C compiler and Python's headers (Debian: apt-get install gcc libc6-dev python3-dev): "
                "python -m pip install --force-reinstall --no-cache-dir vmscope\n",
            )

    def missing(self) -> str:
        compiler = self.compiler.compiler_so[0]
        if shutil.which(compiler) is None:
            return f"there is no C compiler {compiler}"
        header = os.path.join(sysconfig.get_path("include"), "Python.h")
        return f"the compiler failed, as is said above{'' if os.path.exists(header) else f': there is no {header}'}"


sources = sorted(glob(f"{NATIVE}/**/*.c", recursive=True))
extension = Extension(
    "vmscope.native._native",
    sources=sources,
    depends=sorted(glob(f"{NATIVE}/**/*.h", recursive=True)),
    include_dirs=[NATIVE],
    extra_compile_args=compile_args,
    extra_link_args=link_args,
    optional=not strict,
)

# The C is for POSIX; on Windows the twin is all there is.
setup(
    cmdclass={"build_ext": BuildExtension, "build_py": BuildPy, "editable_wheel": EditableWheel},
    ext_modules=[extension] if sources and sys.platform != "win32" else [],
)
