"""The real clients, of each JDK that is found and jattach, on a Python process in each state that it may be in."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import programs
from tests.conftest import StartPython
from tests.support import JDK, PATIENCE, Child, User

PROGRAM = """
import asyncio, faulthandler, os, select, signal, socket, sys, threading, time
import vmscope
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
def burn():
    while True: pass
def fork():
    while True:
        pid = os.fork()
        if pid == 0: os._exit(0)
        os.waitpid(pid, 0)
{before}
vmscope.start()
{after}
print("ready", flush=True)
{then}
time.sleep(600)
"""

# what: before the start, after it, and what the program does then
STATES = {
    "idle": ("", "", ""),
    "busy": ("", "", "burn()"),
    "busy in four threads": ("", "", "[threading.Thread(target=burn, daemon=True).start() for _ in range(3)]; burn()"),
    "blocked in C": ("", "", "pair = socket.socketpair(); pair[0].recv(1)"),
    "blocked in a lock": ("", "", "lock = threading.Lock(); lock.acquire(); lock.acquire()"),
    "forking": ("", "", "fork()"),
    "in asyncio": ("", "", "asyncio.run(asyncio.sleep(600))"),
    "SIGQUIT ignored": ("signal.signal(signal.SIGQUIT, signal.SIG_IGN)", "", ""),
    "SIGQUIT handled": ("", "signal.signal(signal.SIGQUIT, lambda *_: None)", ""),
    "SIGQUIT of faulthandler": ("", "faulthandler.register(signal.SIGQUIT)", ""),
}


def clients() -> Iterator[tuple[str, list[str]]]:
    for version in (17, 21, 25):
        jdk = JDK.find(version)
        if jdk is not None:
            yield f"jcmd {version}", [jdk.tool("jcmd"), "{pid}", "VM.version"]
            if jdk.has("jinfo"):
                yield f"jinfo {version}", [jdk.tool("jinfo"), "-flags", "{pid}"]
    jattach = shutil.which("jattach")
    if jattach is not None:
        yield "jattach", [jattach, "{pid}", "jcmd", "VM.version"]


CLIENTS = dict(clients())
SHOWN = {"jcmd": "CPython version", "jinfo": "VM Flags:", "jattach": "CPython version"}


def program(state: str) -> str:
    before, after, then = STATES[state]
    return PROGRAM.format(before=before, after=after, then=then)


@pytest.mark.parametrize("state", STATES)
def test_every_client_in_every_state(state: str, start_python: StartPython) -> None:
    if not CLIENTS:
        pytest.skip("neither a JDK nor jattach: run make jdks, apt-get install jattach")
    child = start_python(program(state), options=["-W", "error"])
    for name, command in CLIENTS.items():
        words = [word.format(pid=child.pid) for word in command]
        run = subprocess.run(words, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
        assert run.returncode == 0, f"{name}: {run.stdout}{run.stderr}"
        assert SHOWN[name.split()[0]] in run.stdout, name
        assert child.process.poll() is None, f"{name} has ended it"


def test_as_another_user(start_python: StartPython, private_user: User) -> None:
    """Root's clients reach a process of another user, with what that process has imported or may."""
    jdk = JDK.find(17) or JDK.find()
    if jdk is None:
        pytest.skip("no JDK: run make jdks")
    preload = ["vmscope.runtime", "vmscope.commands.operations", "vmscope.commands.version"]
    code = "import time, vmscope\nvmscope.start()\nprint('ready', flush=True)\ntime.sleep(600)"
    child = start_python(code, user=private_user, preload=preload)
    run = jdk.run("jcmd", str(child.pid), "VM.version", timeout=2 * PATIENCE)
    assert (run.returncode, run.stderr) == (0, "")
    assert "CPython version" in run.stdout


def test_a_target_that_dies_in_the_middle(start_python: StartPython) -> None:
    """No client waits for it any longer."""
    code = programs.source("attach_targets/dies")
    for name, command in CLIENTS.items():
        if name.startswith("jinfo"):
            continue
        child = start_python(code)
        words = [word.format(pid=child.pid).replace("VM.version", "Test.wait") for word in command]
        with Child(words, merge_stderr=True) as client:
            child.read_until(b"asked\n")
            child.kill()
            begin = time.monotonic()
            client.process.wait(PATIENCE)
            assert time.monotonic() - begin < PATIENCE
        Path(f"/tmp/.java_pid{child.pid}").unlink(missing_ok=True)  # another VM that starts removes it too
