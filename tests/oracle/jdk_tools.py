"""Asks the classes behind the JDK's jps and jstat: number formats, VM identifiers, views. One JVM for any number."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support import JDK

SOURCE = Path(__file__).with_name("JdkTools.java")
OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "--add-modules=jdk.jcmd",
    "--add-exports=jdk.internal.jvmstat/sun.jvmstat.monitor=ALL-UNNAMED",
    "--add-exports=jdk.jcmd/sun.tools.jstat=ALL-UNNAMED",
    "--add-exports=jdk.jcmd/sun.tools.jps=ALL-UNNAMED",
    "-Dfile.encoding=UTF-8",
    "-Dsun.jvmstat.perdata.syncWaitMs=1",  # no 5 s for a region that is not ready
)


def ask(jdk: JDK, questions: Iterable[tuple[str, ...]]) -> list[str]:
    """The answers in order; one that begins with "!" is a refusal with its reason.

    ("number", pattern, bits), ("vm", text), ("host", text), ("order", "3 1 2"),
    ("jstat", argument, ...), ("jps", argument, ...),
    ("snap", region's path, expression, "v" or "")
    ("view", option, "t" or "", region's path[, path of a file with views])
    """
    if not jdk.has("javac"):
        pytest.skip(f"no javac in {jdk.bin}")
    text = "".join("\t".join(question) + "\n" for question in questions)
    run = subprocess.run(
        [jdk.tool("java"), *OPTIONS, str(SOURCE)],
        input=text,
        capture_output=True,
        encoding="utf-8",
        env={"LC_ALL": "C.UTF-8"},
        timeout=100,
        check=False,
    )
    answers = [
        re.sub(r"\\(.)", lambda escape: {"n": "\n", "r": "\r"}.get(escape[1], escape[1]), line)
        for line in run.stdout.split("\n")[:-1]
    ]
    assert len(answers) == text.count("\n"), run.stderr
    return answers


def bits(value: float) -> str:
    """A double, as ("number", ...) takes it."""
    return struct.pack(">d", value).hex()


def vmscope(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A whole run of ours."""
    return subprocess.run(
        [sys.executable, "-m", "vmscope", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=30,
        check=False,
    )
