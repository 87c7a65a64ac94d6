"""The agent `watchdog`, on programs that go wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import programs
from tests.support import PATIENCE
from vmscope.agents.watchdog import readings

MONITORING = pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="needs events of CPython 3.12")


def run(options: str, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program with the watchdog, to its end."""
    return subprocess.run(
        [
            *(sys.executable, *arguments, "-m", "vmscope", "run"),
            *(f"-pyagent:vmscope.agents.watchdog={options}", "-c", textwrap.dedent(code)),
        ],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )


STUCK = """
    import threading

    def wait_for_it():
        threading.Lock().acquire() and lock.acquire()

    lock = threading.Lock()
    lock.acquire()
    wait_for_it()
"""


def test_a_main_thread_that_waits_for_ever_is_found() -> None:
    done = run("stuck=500ms,exit=7", STUCK)
    assert done.returncode == 7, done.stderr
    head, _, stacks = done.stderr.partition("\n")
    assert "stuck: the main thread has been in one call for " in head
    assert "__main__.wait_for_it" in head
    assert 'Thread "MainThread"' in stacks
    assert "in wait_for_it" in stacks
    assert "vmscope watchdog" not in stacks  # its own thread


def test_a_main_thread_that_works_and_sleeps_is_not_stuck() -> None:
    done = run(
        "stuck=3s,exit=7",
        """
        import time
        end = time.monotonic() + 3.5
        while time.monotonic() < end:
            sum(range(10))
        for _ in range(70):
            time.sleep(0.05)  # 3.5 s, of which no piece is too long
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_main_thread_that_waits_for_events_is_not_stuck() -> None:
    done = run("stuck=300ms,exit=7", "import asyncio; asyncio.run(asyncio.sleep(2))")  # longer than the limit
    assert (done.returncode, done.stderr) == (0, "")


@MONITORING
def test_a_call_that_takes_too_long_is_found_though_it_works() -> None:
    code = """
        import time

        def short():
            end = time.monotonic() + {short}
            while time.monotonic() < end:
                sum(range(10))

        def handle(seconds):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                short()

        for _ in range(40):
            handle(0.05)
        print("quick ones done", flush=True)
        handle(60)
    """
    done = run("stuck=1s,in=__main__.handle,exit=7", code.format(short=0.01))
    assert done.returncode == 7, done.stderr
    assert "stuck: the main thread has been in one call of __main__.handle for " in done.stderr
    assert done.stdout == "quick ones done\n"


def test_memory() -> None:
    code = "import time; kept = b'x' * (300 << 20); time.sleep(60)"
    done = run("memory=200m,for=500ms,exit=TERM", code)
    assert done.returncode == -signal.SIGTERM, done.stderr
    found = re.search(r"memory: resident memory was at least (\d+) MB for 0.5 s", done.stderr)
    assert found is not None, done.stderr
    assert 200 <= int(found[1]) < 400  # it may be asked while the bytes are still being written


def test_collections() -> None:
    code = """
        import gc
        kept = [[] for _ in range(300_000)]
        while True:
            gc.collect()
    """
    done = run("gc=30%,for=1s,exit=7,dump=off", code)
    assert done.returncode == 7, done.stderr
    assert "gc: garbage collections took " in done.stderr
    assert "Thread" not in done.stderr


def test_a_busy_gil() -> None:
    code = programs.source("agent_watchdog/busy_gil")
    done = run("gil=2ms,for=1s,exit=7", code)
    assert done.returncode == 7, done.stderr
    assert "gil: a thread had to wait " in done.stderr


def test_a_gil_that_nobody_gets(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    code = """
        import ctypes, os, time

        def keeps_the_gil():
            ctypes.PyDLL(None).usleep(2_500_000)

        end = time.monotonic() + 40
        while "frozen:" not in (open(DUMP).read() if os.path.exists(DUMP) else "") and time.monotonic() < end:
            time.sleep(0.3)  # the agent has seen that the GIL can be had
            keeps_the_gil()
            time.sleep(1)  # time for the agent to write
    """
    done = run(f"frozen=500ms,dump={dump}", code.replace("DUMP", repr(str(dump))))
    assert (done.returncode, done.stderr) == (0, "")
    text = dump.read_text()
    assert text.startswith("Timeout (0:00:00.5")
    assert "in keeps_the_gil\n" in text
    assert "frozen: no thread got the GIL for " in text


def test_the_command_runs_unseen_by_the_program(tmp_path: Path) -> None:
    said = tmp_path / "said"
    code = f"""
        import os, sys, threading, time
        lock = threading.Lock()
        lock.acquire()
        lock.acquire(timeout=2)
        end = time.monotonic() + 20
        while not os.path.exists({str(said)!r}) and time.monotonic() < end:
            time.sleep(0.05)  # the program's own wait, which the command comes into
        try:
            print(os.waitpid(-1, os.WNOHANG))
        except ChildProcessError:
            print(os.getpid())
    """
    command = f"echo $VMSCOPE_LIMIT, $VMSCOPE_PID > {said}.new; mv {said}.new {said}"
    done = run(f"stuck=500ms,dump=off,command={command}", code)
    assert done.returncode == 0, done.stderr
    assert said.read_text() == f"stuck, {done.stdout}"


def test_what_it_did_stands_in_the_region() -> None:
    code = """
        import threading, time, vmscope
        lock = threading.Lock()
        lock.acquire()
        lock.acquire(timeout=2)
        fired = vmscope.counter("watchdog.fired", units=vmscope.Units.EVENTS)
        print(fired.value, fired.labels(limit="stuck").value, vmscope.text("watchdog.reason", capacity=256).value)
    """
    done = run("stuck=500ms,dump=off", code)
    assert done.stdout.startswith("1 1 the main thread has been in one call for "), done.stderr


def test_a_program_that_forks_sees_no_thread_of_it() -> None:
    code = programs.source("agent_watchdog/forks")
    done = run("stuck=2s,frozen=60s,exit=7", code, "-W", "error")
    assert done.returncode == 7, done.stderr
    assert done.stdout == "the child has ended\n"
    assert done.stderr.count("stuck: the main thread has been in one call") == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "no limit: give at least one of gc="),
        ("gc=50%,exit=NEVER", "option exit=NEVER: it is a status from 0 to 255 or a signal such as TERM"),
        ("gc=50%,in=a.b", "in= and idle= say more of stuck="),
        ("memory=much", "option memory=much: "),
    ],
)
def test_bad_options_start_nothing(options: str, message: str) -> None:
    done = run(options, "print('not reached')")
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_memory_in_percent_is_of_what_there_is() -> None:
    assert readings.memory_limit("50%") == int(readings.available() * 0.5)
    assert readings.memory_limit("2g") == 2 << 30


def test_loaded_and_unloaded_while_the_program_runs() -> None:
    code = programs.source("agent_watchdog/unloaded")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


@pytest.mark.parametrize("limit", ["stuck=300ms", "memory=1m,for=300ms", "frozen=300ms,every=50ms"])
def test_it_does_not_act_when_the_vm_has_ended(tmp_path: Path, limit: str) -> None:
    """Another agent takes its time to unload, which comes after VMDeath."""
    (tmp_path / "slow.py").write_text(
        "import time\ndef agent_on_load(vm, options): pass\n"
        # slower than a moment
        "def agent_on_unload(vm):\n    end = time.monotonic() + 1\n    while time.monotonic() < end: time.sleep(0.6)\n"
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "vmscope", "run", "-pyagent:slow"),
            *(f"-pyagent:vmscope.agents.watchdog={limit},exit=7", "-c", "print('end')"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


ANOTHER = """
    import ctypes, os, threading, time
    {before}
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=1.5)
    ctypes.PyDLL(None).usleep(1_500_000)
    lock.acquire(timeout=0.3)
"""


@pytest.mark.parametrize(
    "before",
    [
        "os.close(2); assert os.open({0!r}, 65) == 2",
        "os.close(2); import socket; kept = socket.socket()",
        "os.close(2)",
    ],
    ids=["file", "socket", "closed"],
)
def test_it_writes_to_nothing_that_is_not_standard_error(tmp_path: Path, before: str) -> None:
    file = tmp_path / "database"
    done = run("stuck=300ms,frozen=500ms,every=100ms", ANOTHER.format(before=before.format(str(file))))
    assert (done.returncode, done.stderr) == (0, "")
    assert not file.exists() or file.read_bytes() == b""


def test_standard_error_that_the_program_has_put_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "log"
    before = f"log = os.open({str(file)!r}, 65); os.dup2(log, 2); os.close(log)"
    done = run("stuck=300ms,frozen=500ms,every=100ms", ANOTHER.format(before=before))
    assert (done.returncode, done.stderr) == (0, "")
    assert "stuck: the main thread has been in one call" in file.read_text()
    assert "Timeout (0:00:00.5" in file.read_text()


def test_a_program_of_gevent_waits_and_forks_as_ever() -> None:
    """The child tells by a pipe that it is there: gevent's own waitpid misses one that ends too soon, agent or not."""
    pytest.importorskip("gevent")
    code = programs.source("agent_watchdog/gevent_forks")
    done = run("stuck=1s,exit=7", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
