"""Recordings that real JVMs make for the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support import JDK, PATIENCE

SOURCE = Path(__file__).with_name("Shop.java")


def compile_shop(javac: str, folder: Path) -> None:
    """Its classes, for JDK 17 and later."""
    command = [javac, "--release", "17", "-encoding", "UTF-8", "-d", str(folder), str(SOURCE)]
    subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True)


def record(jdk: JDK, classes: Path, path: Path, *, milliseconds: int = 1500) -> Path:
    """A recording of that program, with all that the profile settings record and every exception."""
    options = f"filename={path},settings=profile,jdk.JavaExceptionThrow#enabled=true"
    command = [jdk.tool("java"), "-Xmx128m", "-XX:+UseG1GC", f"-XX:StartFlightRecording:{options}", "-cp", str(classes)]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [*command, "Shop", str(milliseconds)], check=True, timeout=PATIENCE, capture_output=True, env=environment
    )
    return path
