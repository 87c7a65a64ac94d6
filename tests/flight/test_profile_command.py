"""`vmscope profile` of real JVMs: what it shows, and that nothing is left there."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import JDK, PATIENCE
from tests.wait import wait_for


@pytest.fixture
def java(jdk: JDK, shop: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program of the other tests, which goes on until it is killed."""
    command = [jdk.tool("java"), "-Xmx128m", "-cp", str(shop), "Shop", "10000000"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        yield process
        process.kill()


def vmscope(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vmscope", "profile", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE, check=False, cwd=cwd)


def is_clean(jdk: JDK, pid: int) -> bool:
    """No recording is left in it, and no folder of ours in its tmp directory."""
    shown = jdk.run("jcmd", str(pid), "JFR.check").stdout
    return "name=vmscope" not in shown and not any(
        name.startswith("vmscope-flight-") for name in os.listdir(f"/proc/{pid}/root/tmp")
    )


def test_it_shows_the_functions_with_the_largest_shares(
    jdk: JDK, java: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    run = vmscope("--duration=3s", str(java.pid), cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    head, _, table = run.stdout.partition("\n\n")
    assert re.fullmatch(r"cpu: \d+ samples? of \d+ threads? in \d\.\d s", head)
    assert table.splitlines()[0].split() == ["SELF", "SELF%", "TOTAL%", "FUNCTION"]
    assert "Shop.p" in table  # price or pack
    assert is_clean(jdk, java.pid)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mode", ["alloc", "exception", "lock"])
def test_other_modes_by_name_into_a_file(jdk: JDK, java: subprocess.Popen[bytes], tmp_path: Path, mode: str) -> None:
    run = vmscope("--duration=3s", f"--mode={mode}", "-o", "shop.speedscope.json", str(java.pid), cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    whole = json.loads((tmp_path / "shop.speedscope.json").read_bytes())
    names = {frame["name"] for frame in whole["shared"]["frames"]}
    assert {"alloc": "byte[]", "exception": "java.lang.IllegalStateException", "lock": "Shop.count"}[mode] in names
    assert is_clean(jdk, java.pid)


def test_an_interrupt_keeps_what_is_there(jdk: JDK, java: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """On a terminal, which also shows how far it is."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "vmscope", "profile", "--duration=1h", "-o", "a.jfr", str(java.pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, cwd=tmp_path) as process:
        os.close(follower)
        seen = b""
        while b"recording process" not in seen or b": 1 of 3600 s" not in seen:
            seen += os.read(leader, 4096)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert re.fullmatch(rb"a\.jfr: \d+ bytes\n", out)
    os.close(leader)
    shown = jdk.run("jfr", "summary", str(tmp_path / "a.jfr")) if jdk.has("jfr") else None
    assert shown is None or "jdk.ExecutionSample" in shown.stdout
    assert is_clean(jdk, java.pid)


def test_a_vm_that_ends_meanwhile_is_an_error(jdk: JDK, java: subprocess.Popen[bytes], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vmscope", "profile", "--duration=1h", str(java.pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        wait_for(lambda: not is_clean(jdk, java.pid), "it does not record")
        java.kill()
        java.wait()
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert str(java.pid) in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, "profile needs one of a pid"),
        (["1", "2"], 2, "profile needs one of a pid"),
        (["--"], 2, "profile needs one of a pid"),
        (["--duration=0", "1"], 2, "does not take '0' as a time"),
        (["-o", "a.txt", "1"], 2, "cannot tell what 'a.txt' is to be"),
        (["--duration=1s", "--", "a.py"], 2, "takes no --duration where it starts a program"),
        (["--service=nobody-here"], 1, "no service is called 'nobody-here'"),
        (["2147483647"], 1, "no process 2147483647"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, arguments: list[str], status: int, said: str) -> None:
    run = vmscope(*arguments, cwd=tmp_path)
    assert said in run.stderr
    assert run.stderr.count("\n") == 1
    assert (run.returncode, run.stdout) == (status, "")
