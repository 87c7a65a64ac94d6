"""The C compiles without a warning for each CPython that is here, and for musl; what is made runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import variants

from tests import programs
from tests.support import PATIENCE

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "src" / "vmscope" / "native"
SMOKE = programs.source("compilers/smoke")


@pytest.mark.parametrize("version", ["3.14", "3.15"])
def test_other_pythons(version: str, tmp_path: Path) -> None:
    """A compilation and a smoke test: `make matrix` runs the suites."""
    python = ROOT / "build" / f"cpython-{version}" / "bin" / f"python{version}"
    if not python.exists():
        pytest.skip(f"no CPython {version}: run scripts/pythons {version}")
    try:
        folder = variants.build(tmp_path, str(python))
    except variants.BuildError as error:
        pytest.fail(str(error))
    env = {**os.environ, "PYTHONPATH": folder, "VMSCOPE_NATIVE": "1"}
    with subprocess.Popen(
        [str(python), "-W", "error", "-c", SMOKE], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        for command in (["Thread.print"], ["GC.class_histogram"], ["VM.version"]):
            asked = subprocess.run(
                [sys.executable, "-m", "vmscope", "cmd", str(child.pid), *command],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            assert (asked.returncode, asked.stderr) == (0, "")
        child.stdin.close()
        assert child.wait(PATIENCE) == 0


def test_musl(tmp_path: Path) -> None:
    """All that it needs is in musl, but for what the interpreter has; no variable of a thread is where musl has no room
    for those of a library that is loaded later."""
    compiler = shutil.which("musl-gcc")
    if compiler is None:
        pytest.skip("no musl-gcc: install musl-tools")
    flags = ["-std=c11", "-pthread", "-fexceptions", "-fno-math-errno", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    flags += [f"-I{sysconfig.get_path('include')}", f"-I{NATIVE}"]
    for folder in sorted({path.parent for path in NATIVE.rglob("*.c")}):
        (tmp_path / folder.name).mkdir()
        sources = sorted(map(str, folder.glob("*.c")))
        done = subprocess.run(
            [compiler, *flags, "-c", *sources], cwd=tmp_path / folder.name, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
    objects = sorted(map(str, tmp_path.rglob("*.o")))
    assert len(objects) == len(list(NATIVE.rglob("*.c")))
    linked = subprocess.run(
        [compiler, "-shared", *objects, "-Wl,--trace", "-o", "native.so"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    library = next(line for line in linked.stdout.splitlines() if line.endswith("/libc.so"))
    wanted = symbols("--undefined-only", *objects) - symbols("--defined-only", *objects)
    theirs = symbols("--dynamic", "--defined-only", library)
    missing = {name for name in wanted - theirs if not name.lstrip("_").startswith(("Py", "PY_"))}
    assert missing <= {"_GLOBAL_OFFSET_TABLE_", "__tls_get_addr", *OF_COMPILER}
    relocations = subprocess.run(["readelf", "--relocs", *objects], capture_output=True, text=True, check=True).stdout
    assert "TPOFF" not in relocations


OF_COMPILER = ("_Unwind_Resume", "__gcc_personality_v0")  # in libgcc, which it links with


def symbols(*arguments: str) -> set[str]:
    listed = subprocess.run(["nm", "--format=posix", *arguments], capture_output=True, text=True, check=True).stdout
    return {fields[0].partition("@")[0] for line in listed.splitlines() if len(fields := line.split()) > 1}
