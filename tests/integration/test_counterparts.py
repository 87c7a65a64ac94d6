"""The fixtures themselves: each counterpart is there, alive, and what it says it is."""

from __future__ import annotations

import os
from pathlib import Path

from tests.conftest import StartJVM, StartPython
from tests.support import JDK, JVM, User


def test_the_shared_jvm_is_listed_by_jps(jdk: JDK, jvm: JVM) -> None:
    listed = jdk.run("jps", "-l").stdout.splitlines()
    assert f"{jvm.pid} sun.security.tools.keytool.Main" in listed


def collections(jdk: JDK, pid: int) -> list[int]:
    header, values = (line.split() for line in jdk.run("jstat", "-gcutil", str(pid)).stdout.splitlines())
    return [int(value) for name, value in zip(header, values, strict=True) if name == "FGC"]


def test_a_jvm_collects_when_told(jdk: JDK, start_jvm: StartJVM) -> None:
    jvm = start_jvm("-XX:+UseSerialGC", arguments=["-alias", "two words"])
    (before,) = collections(jdk, jvm.pid)
    jvm.collect(2)
    assert collections(jdk, jvm.pid) == [before + 2]
    assert (
        jdk.run("jps", "-lm")
        .stdout.splitlines()
        .count(
            f"{jvm.pid} sun.security.tools.keytool.Main -importpass -keystore /nonexistent/none.p12 -alias two words"
        )
    )


def test_a_jvm_ends_with_its_input(start_jvm: StartJVM) -> None:
    jvm = start_jvm()
    jvm.stop()
    assert not Path(f"/proc/{jvm.pid}").exists()


def test_a_python_child_answers(start_python: StartPython) -> None:
    child = start_python(
        """
        import sys
        print("ready", flush=True)
        print(input()[::-1], sys.argv[1], flush=True)
        """,
        "argument",
    )
    assert child.ask("abc") == "cba argument"
    assert child.stop() == 0


def test_a_python_child_becomes_the_private_user(start_python: StartPython, private_user: User) -> None:
    child = start_python("print('ready', flush=True); input()", user=private_user)
    status = Path(f"/proc/{child.pid}/status").read_text()
    assert f"Uid:\t{private_user.uid}\t{private_user.uid}\t{private_user.uid}" in status
    assert os.stat(f"/proc/{child.pid}/maps").st_uid == private_user.uid
