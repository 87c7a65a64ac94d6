"""Each function of a JNIEnv: with right arguments as on a JVM, and with wrong ones under -Xcheck:jni, without a crash."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import jni_families
from tests.c_agents import CAgent, build
from tests.support import PATIENCE
from vmscope.tool.jni.table import FUNCTIONS

SOURCES = Path(__file__).parents[1] / "native_agents"
NOT_CALLED = {"FatalError", "IsVirtualThread", "GetStringUTFLengthAsLong"}  # the last two: JDK 17 has them not


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the module shop."""
    made = tmp_path_factory.mktemp("shop")
    (made / "shop.py").write_text((SOURCES / "shop.py").read_text() + "\n\n" + jni_families.python_source())
    return made


def shop(agent: CAgent, folder: Path, *options: str) -> list[str]:
    """What it prints here."""
    run = agent.python("", env={"PYTHONPATH": str(folder)}, before=("-Dshop.name=corner", *options))
    assert run.returncode == 0, (run.returncode, run.stdout, run.stderr)
    assert not run.stderr, run.stderr
    return run.stdout.splitlines()


def java_shop(agent: CAgent, folder: Path) -> list[str]:
    """What it prints in a JVM."""
    if not agent.jdk.has("javac"):
        pytest.skip("no javac: apt-get install openjdk-17-jdk-headless")
    (folder / "Families.java").write_text(jni_families.java_source())
    sources = [str(folder / "Families.java"), str(SOURCES / "shop" / "Basket.java")]
    compiled = agent.jdk.run("javac", "-d", str(folder / "classes"), *sources)
    assert compiled.returncode == 0, compiled.stderr
    options = ("-Xint", "-XX:+UseSerialGC", "-Dshop.name=corner", agent.option, "-cp", str(folder / "classes"))
    run = agent.jdk.run("java", *options, "shop.Main")
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.splitlines()


def test_right_calls_do_what_they_do_in_a_jvm(folder: Path, tmp_path: Path) -> None:
    source = (SOURCES / "jni.c").read_text() + jni_families.c_source()
    called = set(re.findall(r"\bE->(\w+)", source)) | set(re.findall(r"\(\*own\)->(\w+)", source))
    assert {row.name for row in FUNCTIONS.values()} - NOT_CALLED <= called
    agent = build(source, tmp_path)
    expected = java_shop(agent, tmp_path)
    assert expected[-1] == "end: 0"
    assert shop(agent, folder) == expected
    assert shop(agent, folder, "-Xcheck:jni") == expected
