"""C agents, built at test time against an installed JDK's own jvmti.h, and run in its JVM."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import JDK, PATIENCE


class Agent:
    """An agent that takes a folder as its options: what it reads and writes lies there."""

    def __init__(self, jdk: JDK, library: Path) -> None:
        self.jdk = jdk
        self._library = library

    def run(self, folder: Path, *program: str) -> list[str]:
        """The lines of its file `answers`, after a JVM's whole life."""
        options = ("-Xint", "-XX:+UseSerialGC", f"-agentpath:{self._library}={folder}")
        run = self.jdk.run("java", *options, *(program or ("-version",)))
        assert run.returncode == 0, run.stdout + run.stderr
        return (folder / "answers").read_text().splitlines()

    def run_here(self, folder: Path, program: Path) -> list[str]:
        """As `run`, after a whole life of this Python; nothing of it is reported as an error of ours."""
        run = subprocess.run(
            [sys.executable, "-m", "vmscope", "run", f"-agentpath:{self._library}={folder}", str(program)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert run.stderr == ""
        return (folder / "answers").read_text().splitlines()


def build(source: str, version: int, folder: Path) -> Agent:
    """`source` lies beside this file; what it includes may lie in `folder`. Skips without that JDK or a compiler."""
    jdk = JDK.find(version)
    if jdk is None or not (jdk.home / "include" / "jvmti.h").is_file():
        pytest.skip(f"no JDK {version} with include/jvmti.h: apt-get install openjdk-{version}-jdk-headless")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: apt-get install gcc")
    library = folder / f"lib{Path(source).stem}.so"
    include = jdk.home / "include"
    headers = (f"-I{include}", f"-I{include}/linux", f"-I{folder}")
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", *headers, str(Path(__file__).parent / source)]
    subprocess.run([*command, "-o", str(library)], check=True, timeout=PATIENCE)
    return Agent(jdk, library)
