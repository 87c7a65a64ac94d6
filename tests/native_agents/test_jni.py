"""Each function of a JNIEnv: with right arguments as in a JVM, and with wrong ones, of which the log tells."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import jni_families, jni_misuse
from tests.c_agents import CAgent, build
from tests.support import PATIENCE
from vmscope.tool.jni.table import DESPITE_EXCEPTION, FUNCTIONS

SOURCES = Path(__file__).parents[1] / "native_agents"
# Called in test_native_values.py: the one ends the process, the others JDK 17 has not.
NOT_CALLED = {"FatalError", "IsVirtualThread", "GetStringUTFLengthAsLong"}


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


@pytest.fixture(scope="module")
def misuse(tmp_path_factory: pytest.TempPathFactory) -> CAgent:
    return build(jni_misuse.c_source(), tmp_path_factory.mktemp("misuse"))


def mixed_lines(agent: CAgent, folder: Path, *options: str) -> list[str]:
    """What the agent prints and what is told of it, in their order."""
    command = [sys.executable, "-m", "vmscope", "run", *options, agent.option, "-c", ""]
    run = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    lines = run.stdout.splitlines()
    assert run.returncode == 0, (run.returncode, lines[-5:])
    assert lines[0] == "begin 0", lines[:5]
    assert lines[-1] == "end", lines[-5:]
    return lines[1:-1]


def test_what_is_wrong_is_told_with_the_function_s_name(misuse: CAgent, folder: Path) -> None:
    lines = iter(mixed_lines(misuse, folder, "-Xcheck:jni"))
    for case in jni_misuse.cases():
        told = []
        while not (line := next(lines)).startswith("case "):
            told.append(line)
        assert [each.split(":")[0] for each in told] == [case.row.name] * case.told, (case.label, told, line)
        assert line.startswith(f"case {case.label}: "), (case.label, line)
        if case.told:
            assert line.split()[-2] in ("0", "-1"), line
            assert line.endswith(" 0"), line


def test_without_checks_an_exception_is_pending(misuse: CAgent, folder: Path) -> None:
    lines = iter(mixed_lines(misuse, folder))
    for case in jni_misuse.cases():
        line = next(lines)
        assert line.startswith(f"case {case.label}: "), (case.label, line)
        if case.told:
            assert line.endswith(f" {int(case.pending)}"), line


def test_a_call_with_an_exception_pending_is_told(misuse: CAgent, folder: Path) -> None:
    lines = mixed_lines(misuse, folder, "-Xcheck:jni")
    found = "\n".join(lines[lines.index("now pending") + 1 :])
    for row in FUNCTIONS.values():
        if row.name in jni_misuse.IGNORED or row.name.startswith(("Throw", "ExceptionDescribe")):
            continue
        told = re.search(rf"^{row.name}: called with an exception pending: ValueError\('wrong'\)$", found, re.MULTILINE)
        assert bool(told) == (row.name not in DESPITE_EXCEPTION), row.name
        if told:
            assert re.search(rf"^pending {row.name} (0|-1)$", found, re.MULTILINE), row.name
