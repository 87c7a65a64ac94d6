"""Asks the classes behind the JDK's jps and jstat: number formats, VM identifiers, views. One JVM for any number."""

from __future__ import annotations

import re
import struct
import subprocess
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
    "-Dfile.encoding=UTF-8",
    "-Dsun.jvmstat.perdata.syncWaitMs=1",  # no 5 s for a region that is not ready
)


def ask(jdk: JDK, questions: Iterable[tuple[str, ...]]) -> list[str]:
    """The answers in order; one that begins with "!" is a refusal with its reason.

    ("number", pattern, bits), ("vm", text), ("host", text), ("order", "3 1 2"),
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
