"""C agents for both VMs, built at test time against an installed JDK's own jvmti.h, and what they look at."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import JDK, PATIENCE

EXAMPLES = Path(__file__).parents[1] / "examples" / "native"
PROGRAM = Path(__file__).parent / "native_agents"


def compiler() -> str:
    found = shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler: apt-get install gcc")
    return found


def full_jdk(version: int = 17) -> JDK:
    """One that agents can be built against and that compiles Java."""
    jdk = JDK.find(version)
    if jdk is None or not jdk.has("javac") or not (jdk.home / "include" / "jvmti.h").is_file():
        pytest.skip(f"no JDK {version} with include/jvmti.h and javac: apt-get install openjdk-{version}-jdk-headless")
    return jdk


def build(source: Path, folder: Path, jdk: JDK, *options: str) -> Path:
    """The shared library lib<source>.so in `folder`. Warnings are errors."""
    library = folder / f"lib{source.stem}.so"
    include = jdk.home / "include"
    command = [compiler(), "-std=c11", "-shared", "-fPIC", "-O1", "-pthread", "-Wall", "-Werror"]
    command += [f"-I{include}", f"-I{include}/linux", *options, str(source), "-o", str(library)]
    subprocess.run(command, check=True, timeout=PATIENCE)
    return library


class Market:
    """The program, on a JVM and on this Python: what starts it with VM options and arguments of its own."""

    def __init__(self, jdk: JDK, folder: Path) -> None:
        self.jdk = jdk
        self._classes = folder / "classes"
        command = [jdk.tool("javac"), "-g", "-d", str(self._classes), str(PROGRAM / "market" / "Basket.java")]
        subprocess.run(command, check=True, timeout=2 * PATIENCE)

    def java(self, *options: str, words: Sequence[str] = ()) -> list[str]:
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
        return [self.jdk.tool("java"), *quick, *options, "-cp", str(self._classes), "market.Basket", *words]

    def python(self, *options: str, words: Sequence[str] = ()) -> list[str]:
        code = f"import sys; sys.path.insert(0, {str(PROGRAM)!r}); import market; market.Basket.main(sys.argv[1:])"
        return [sys.executable, "-m", "vmscope", "run", *options, "-c", code, *words]


def output(command: Sequence[str], variables: dict[str, str] | None = None, status: int = 0) -> list[str]:
    """The lines that a whole run has written to standard output; nothing may be left in standard error."""
    run = subprocess.run(
        command,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert run.returncode == status, run.stdout + run.stderr
    assert run.stderr == "", run.stdout + run.stderr
    return run.stdout.splitlines()
