"""The agent `locks`, on programs that wait for each other."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests.support import PATIENCE


def run(options: str, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "vmscope", "run", f"-pyagent:vmscope.agents.locks={options}"),
            *("-c", textwrap.dedent(code)),
        ],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )


# The program waits until the agent has counted a deadlock, and ends.
UNTIL_FOUND = """
import os, threading, time, vmscope
found = vmscope.counter("locks.deadlocks", units=vmscope.Units.EVENTS)
def until_found():
    end = time.monotonic() + 30
    while not found.value and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.3)
    print(found.value, flush=True)
    os._exit(0)
"""

CROSSED = """
def cross(first, second):
    with first:
        met.wait()
        with second:
            pass

met = threading.Barrier(2)
one, two = threading.{kind}(), threading.{kind}()
for name, locks in (("ada", (one, two)), ("bob", (two, one))):
    threading.Thread(target=cross, args=locks, name=name, daemon=True).start()
until_found()
"""


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_two_locks_in_two_orders(kind: str) -> None:
    done = run("every=100ms", UNTIL_FOUND + CROSSED.format(kind=kind))
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    lines = done.stderr.splitlines()
    assert lines[0] == "vmscope locks: deadlock:"
    assert {line.partition(": for ")[0] for line in lines[1:3]} == {
        '  "ada" waits for "bob"',
        '  "bob" waits for "ada"',
    }
    assert done.stderr.count("in cross") == 2
    assert done.stderr.count("vmscope locks") == 1


def test_a_thread_that_waits_for_itself() -> None:
    code = """
    def twice():
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()

    threading.Thread(target=twice, name="ada", daemon=True).start()
    until_found()
    """
    done = run("every=100ms", UNTIL_FOUND + textwrap.dedent(code))
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert '  "ada" waits for "ada": for ' in done.stderr


def test_a_join_under_a_lock() -> None:
    code = """
    def needs():
        with lock:
            pass

    def joins():
        with lock:
            other.start()
            other.join()

    lock = threading.Lock()
    other = threading.Thread(target=needs, name="bob", daemon=True)
    threading.Thread(target=joins, name="ada", daemon=True).start()
    until_found()
    """
    done = run("every=100ms", UNTIL_FOUND + textwrap.dedent(code))
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert '  "ada" waits for "bob": for the end of it' in done.stderr


def test_who_waits_for_a_while_is_no_deadlock() -> None:
    code = """
        import threading, time, vmscope
        lock = threading.Lock()
        has = threading.Event()

        def holds():
            with lock:
                has.set()
                time.sleep(0.5)

        def waits():
            has.wait()
            with lock:
                pass

        threads = [threading.Thread(target=each) for each in (holds, waits)]
        for each in threads: each.start()
        for each in threads: each.join()
        events = vmscope.Units.EVENTS
        print(vmscope.counter("locks.deadlocks", units=events).value)
    """
    done = run("every=20ms,report=on", code)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    rows = [line.split() for line in done.stderr.splitlines()]
    at = next(row for row in rows if row[-1] == "__main__.waits:13")
    assert at[:2] == ["1", "1"]
    assert 0.1 < float(at[2]) < 30
    assert ["1", "__main__.holds:9"] in rows


def test_it_cannot_be_loaded_late() -> None:
    code = """
        from vmscope import tool
        from vmscope.errors import VMScopeError
        try:
            tool.load_agent("vmscope.agents.locks")
        except VMScopeError as error:
            print(type(error).__name__)
        print(tool.vm().environments)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.stdout, done.stderr) == ("AgentError\n[]\n", "")
