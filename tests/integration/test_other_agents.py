"""Agents that others wrote, for JVMs, in CPython: those of OpenJDK 8's demos, VisualVM's, and a JDK's own.

docs/native-agents.md says of each what works, and what it asks for that CPython lacks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest

from tests import programs
from tests.native import PROGRAM, full_jdk
from tests.support import JDK, PATIENCE

BUILT = Path(__file__).parents[2] / "build" / "agents"

CONTENTION = programs.source("other_agents/contention")


def library(name: str) -> Path:
    """One that scripts/agents has fetched."""
    found = BUILT / f"lib{name}.so"
    if not found.is_file():
        pytest.skip(f"no {found.name}: make agents")
    return found


def run(path: Path, options: str, code: str, variables: dict[str, str] | None = None) -> tuple[int, list[str]]:
    with TemporaryDirectory() as folder:  # some write files where they run
        done = subprocess.run(
            [sys.executable, "-m", "vmscope", "run", f"-agentpath:{path}{options}", "-c", code],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(PROGRAM), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
    return done.returncode, done.stdout.splitlines()


# -- those that work ------------------------------------------------------------------------------


def test_version_check() -> None:
    status, lines = run(library("versionCheck"), "", "print('program')")
    assert status == 0
    assert lines == [
        "Compile Time JVMTI Version: 1.2.1 (0x30010201)",
        "Run Time JVMTI Version: 25.0.0 (0x30190000)",
        "program",
    ]


def test_gc_test() -> None:
    """Its worker, a `java.lang.Thread` that it made by JNI, is woken by each collection through a raw monitor."""
    # Its worker has been woken by then.
    status, lines = run(library("gctest"), "", "import gc, time; gc.collect(); time.sleep(0.2)")
    assert status == 0
    assert lines[0] == "VMInit..."
    begun, ended = lines.count("GarbageCollectionStart..."), lines.count("GarbageCollectionFinish...")
    assert begun == ended >= 1
    assert "post-GarbageCollectionFinish actions..." in lines


def test_heap_viewer() -> None:
    code = "import market; baskets = [market.Basket() for _ in range(30_000)]"
    status, lines = run(library("heapViewer"), "", code)
    assert status == 0
    (total,) = [
        int(found[1]) for line in lines if (found := re.match(r"Heap View, Total of (\d+) objects found", line))
    ]
    rows = [line.split() for line in lines if re.match(r" +\d+ +\d+ L", line)]
    (baskets,) = [row for row in rows if row[2] == "Lmarket/Basket;"]
    assert int(baskets[1]) == 30_000
    assert total > 30_000
    assert [int(row[0]) for row in rows] == sorted((int(row[0]) for row in rows), reverse=True)


def test_waiters() -> None:
    """It keeps C++ objects in tags, in an environment's and in threads' local storage."""
    status, lines = run(library("waiters"), "", CONTENTION)
    assert status == 0
    assert lines[:2] == ["Agent created..", "VMInit..."]
    assert lines[-2:] == ["VMDeath...", "Agent reclaimed.."]
    assert any(re.fullmatch(r"Thread worker summary: \d+ waits plus [1-9]\d* contended", line) for line in lines), lines
    assert "Monitor Lthreading/Lock; summary: 1 contends, 0 waits, 0 timeouts" in lines
    assert "Monitor Lthreading/Condition; summary: 0 contends, 1 waits, 1 timeouts" in lines


# -- those that ask for what CPython lacks --------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("compiledMethodLoad", 3, "ERROR: JVMTI: 98(JVMTI_ERROR_NOT_AVAILABLE): add capabilities"),
        ("minst", 3, "ERROR: JNI: Cannot find Minst with FindClass"),
        ("profilerinterface-jdk15", -6, "Profiler Agent Error: Failed to obtain JVMTI capabilities, error code: 98"),
        ("profilerinterface-jdk16", -6, "Profiler Agent Error: Failed to obtain JVMTI capabilities, error code: 98"),
    ],
)
def test_one_that_ends_the_process_by_itself(name: str, status: int, said: str) -> None:
    """As it does in a JVM that refuses it."""
    found, lines = run(library(name), "", "print('program')")
    assert found == status
    assert said in lines
    assert "program" not in lines


@pytest.mark.parametrize("name", ["heapTracker", "mtrace", "hprof"])
def test_one_that_is_built_for_a_newer_c_library(name: str) -> None:
    """Where the system has the C library that it needs, it asks for a class of Java instead."""
    path = library(name)
    status, lines = run(path, "", "print('program')")
    assert status != 0
    assert "program" not in lines
    java = full_jdk().run("java", f"-agentpath:{path}", "-version")
    if "GLIBC" in java.stdout:
        assert lines == java.stdout.splitlines()


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (17, "it needs JVMTI 17.0[.0]."),
        (25, "ERROR: JDWP unable to get necessary JVMTI capabilities."),
    ],
)
def test_jdwp(version: int, said: str) -> None:
    jdk = JDK.find(version)
    path = None if jdk is None else jdk.home / "lib" / "libjdwp.so"
    if path is None or not path.is_file():
        pytest.skip(f"no JDK {version} with libjdwp.so")
    variables = {"LD_LIBRARY_PATH": str(path.parent / "server")}  # it is linked with libjvm.so
    options = "=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0"
    status, lines = run(path, options, "print('program')", variables)
    assert status == 1
    assert any(said in line for line in lines), lines
    assert "program" not in lines


@pytest.mark.parametrize("version", [17, 25])
def test_instrument(version: int, tmp_path: Path) -> None:
    """It reads a .jar by itself, and asks for a class of Java's then; what is no .jar it refuses."""
    jdk = JDK.find(version)
    path = None if jdk is None else jdk.home / "lib" / "libinstrument.so"
    if jdk is None or path is None or not path.is_file():
        pytest.skip(f"no JDK {version} with libinstrument.so")
    libraries = {"LD_LIBRARY_PATH": os.pathsep.join((str(path.parent / "server"), str(path.parent)))}
    jar = tmp_path / "agent.jar"
    with ZipFile(jar, "w") as file:
        file.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\nPremain-Class: shop.Agent\r\n\r\n")
    status, lines = run(path, f"={jar}", "print('program')", libraries)
    assert status == -6
    assert lines[-1] == "FATAL ERROR in native method: processing of -javaagent failed, processJavaStart failed"
    assert run(path, "=/nowhere.jar", "print('program')", libraries) == (
        1,
        [
            "Error opening zip file or JAR manifest missing : /nowhere.jar",
            "Error occurred during initialization of VM",
            f"agent library failed to init: {path}",
        ],
    )
