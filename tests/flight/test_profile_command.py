"""`vmscope profile` of real JVMs: what it shows, and that nothing is left there."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support import JDK, PATIENCE, Child, User
from tests.wait import wait_for
from vmscope.flags import FLAGS
from vmscope.flight.convert import recording


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


def test_root_records_another_user_s_jvm(
    jdk: JDK, shop: Path, private_user: User, shared_folder: Path, tmp_path: Path
) -> None:
    """The JVM writes its file into a folder that is its user's; the copy is root's."""
    for path in shop.iterdir():
        shutil.copy(path, shared_folder)
    command = [jdk.tool("java"), "-Xmx128m", "-cp", str(shared_folder), "Shop", "10000000"]
    with subprocess.Popen(command, user=private_user.uid, group=private_user.gid, extra_groups=[], cwd="/") as java:
        try:
            wait_for(lambda: b"libjvm" in Path(f"/proc/{java.pid}/maps").read_bytes(), "it does not start")
            run = vmscope("--duration=2s", "--mode=alloc", "-o", "a.jfr", str(java.pid), cwd=tmp_path)
            assert (run.returncode, run.stderr) == (0, "")
            assert is_clean(jdk, java.pid)
        finally:
            java.kill()
    assert (tmp_path / "a.jfr").stat().st_uid == 0
    assert list(recording.events(str(tmp_path / "a.jfr"), "jdk.ObjectAllocationSample"))


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


# -- Python ---------------------------------------------------------------------------------------

recorder = pytest.mark.skipif(
    find_spec("vmscope.commands.jfr_start") is None, reason="this vmscope has no recorder of its own"
)

SERVICE_NAME = f"shop{os.getpid()}"
SERVICE = """
import os, sys, threading
os.setpgid(0, 0)
def price():
    return sum(i * i % 7 for i in range(20_000))
class Orders:
    def run(self):
        while True:
            price()
for _ in range({workers}):
    if not os.fork():
        Orders().run()
threading.Thread(target=Orders().run, name="worker-1", daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[[int], Child]]:
    """A Python program under `vmscope run`, with a number of forked workers."""
    with ExitStack() as stack:

        def start(workers: int) -> Child:
            path = tmp_path / f"{SERVICE_NAME}.py"
            path.write_text(SERVICE.replace("{workers}", str(workers)))
            child = Child([sys.executable, "-m", "vmscope", "run", str(path)])
            stack.enter_context(child)
            stack.callback(os.killpg, child.pid, signal.SIGKILL)  # with its workers
            child.read_until(b"ready\n")
            return child

        yield start


@recorder
def test_a_python_program_is_recorded_as_a_jvm_is(service: Callable[[int], Child], tmp_path: Path) -> None:
    child = service(0)
    run = vmscope("--duration=2s", "--thread=worker-1", str(child.pid), cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert f"{SERVICE_NAME}.price" in run.stdout
    command = [sys.executable, "-m", "vmscope", "cmd", str(child.pid), "JFR.check"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    assert "name=vmscope" not in shown
    assert [name for name in os.listdir("/tmp") if name.startswith("vmscope-flight-")] == []


@recorder
def test_all_processes_of_a_service_are_added_up(service: Callable[[int], Child], tmp_path: Path) -> None:
    service(2)
    command = [sys.executable, "-m", "vmscope", "ps"]

    def shown() -> int:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout.count(
            SERVICE_NAME
        )

    wait_for(lambda: shown() == 3, "the workers are not there")
    run = vmscope("--duration=2s", f"--service={SERVICE_NAME}", "-o", "a.jfr", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert len(list(recording.chunks(str(tmp_path / "a.jfr")))) >= 3


@pytest.mark.skipif(
    "StartFlightRecording" not in [row[0] for row in FLAGS], reason="this vmscope records from no start on"
)
def test_a_program_is_recorded_from_its_start_to_its_end(tmp_path: Path) -> None:
    program = """
import sys, time
def early():
    return sum(i * i % 7 for i in range(20_000))
end = time.monotonic() + 1
while time.monotonic() < end:
    early()
print("said", sys.argv[1:])
sys.exit(3)
"""
    (tmp_path / "early.py").write_text(program)
    run = vmscope("-o", "early.collapsed", "--", "early.py", "--duration", "x", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (3, "")
    said, written = run.stdout.splitlines()
    assert said == "said ['--duration', 'x']"
    assert written.startswith("early.collapsed: cpu: ")
    assert "early.early" in (tmp_path / "early.collapsed").read_text()


def test_a_python_without_vmscope_is_sampled_from_outside(tmp_path: Path) -> None:
    program = "def busy():\n    while True: pass\nprint('ready', flush=True)\nbusy()"
    command = [sys.executable, "-I", "-S", "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            run = vmscope("--duration=1s", "--mode=gil", "-o", "busy.collapsed", str(process.pid), cwd=tmp_path)
            assert (run.returncode, run.stderr) == (0, "")
            rows = (tmp_path / "busy.collapsed").read_text().splitlines()
            assert [row.rpartition(" ")[0] for row in rows] == ["[holds the GIL];<string>.<module>;<string>.busy"]
            refused = vmscope("--mode=alloc", str(process.pid), cwd=tmp_path)
            assert refused.returncode == 1
            assert "cannot be seen from outside" in refused.stderr
        finally:
            process.kill()
