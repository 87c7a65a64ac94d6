"""Thread dumps as of the request: what they show of a busy program, and of one that a call in C keeps the GIL of.

VMSCOPE_DUMPS sets how many dumps of each program are counted (60).
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from bisect import bisect
from contextlib import closing
from pathlib import Path

import pytest

from tests import programs
from tests.conftest import StartVMScope
from tests.integration.test_listener import ask, path_of
from tests.integration.test_thread_dumps import dump_with, parser
from tests.support import JDK, PATIENCE, Child, python_command
from tests.wait import wait_for
from vmscope import native

DUMPS = int(os.environ.get("VMSCOPE_DUMPS", "60"))
READS = native.IMPLEMENTATION == "c" and native.StackSnapshot.__module__ != "vmscope.native.stacks.stack_snapshot"
pytestmark = pytest.mark.skipif(not READS, reason="the extension reads stacks without the GIL, where there is one")

HALF_BUSY = programs.source("stacks/half_busy")


@pytest.mark.timeout(PATIENCE + DUMPS * 2)
@pytest.mark.parametrize("phase", [0.02, 0.1])
def test_a_half_busy_program_is_seen_busy_in_half_of_the_dumps(phase: float) -> None:
    asked, seen = [], []
    with Child([*python_command(HALF_BUSY), str(phase)]) as child:
        child.read_until(b"ready\n")
        for number in range(DUMPS):  # at moments that are spread over the period
            wanted = number * 0.6180339887 % 1 * 2 * phase
            time.sleep((wanted - time.monotonic()) % (2 * phase))
            asked.append(time.monotonic())
            [what, *_] = re.findall(r"\tat \w+\.(busy|idle|<module>)\(", ask(child.pid, "threaddump"))
            seen.append("idle" if what == "idle" else "busy")
        changes = json.loads(child.ask(""))
    done = [changes[bisect(changes, [moment]) - 1][1] for moment in asked]
    shares = [what.count("busy") / DUMPS for what in (seen, done)]
    print(f"busy in {shares[0]:.1%} of {DUMPS} dumps, when it was in {shares[1]:.1%}")
    assert abs(shares[0] - shares[1]) <= 0.1


# -- a call in C keeps the GIL --------------------------------------------------------------------

# `hold()` reads a byte, of a pipe that the test has the other end of, without giving the GIL away.
HOLDS = """
import ctypes, os, sys, threading
over, lock = threading.Event(), threading.Lock()
libc = ctypes.PyDLL(None)
pipe = os.open({path!r}, os.O_RDWR)
sys.setswitchinterval(100)
def wait():
    with lock:
        over.wait()
threading.Thread(target=wait, name="waiter", daemon=True).start()
def hold():
    return libc.write(1, b"in\\n", 3) and libc.read(pipe, ctypes.create_string_buffer(1), 1)
"""
TAKEN = 'Taken without the GIL, which "MainThread" #1 keeps: '


class Held:
    """A process that is in `hold()`."""

    def __init__(self, start: StartVMScope, folder: Path, code: str = "", call: str = "hold()") -> None:
        path = folder / "pipe"
        os.mkfifo(path)
        self.child = start(code=HOLDS.format(path=str(path)) + code)
        self.pid = self.child.pid
        self.pipe = os.open(path, os.O_WRONLY)
        wait_for(lambda: "threading.Event" in ask(self.pid, "jcmd", "Thread.print"))
        self.child.send(call)
        assert self.child.readline() == "in"

    def end(self) -> None:
        os.write(self.pipe, b"x")
        assert self.child.readline() == "1"
        os.close(self.pipe)


@pytest.mark.parametrize("tool", ["17", "25", "jattach", "jcmd 17", "jcmd 25", "vmscope cmd"])
def test_the_stacks_come_while_a_call_keeps_the_gil(start_vmscope: StartVMScope, tmp_path: Path, tool: str) -> None:
    held = Held(start_vmscope, tmp_path)
    if tool == "vmscope cmd":
        command = [sys.executable, "-m", "vmscope", "cmd", str(held.pid), "Thread.print"]
        text = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    elif tool.startswith("jcmd "):
        jdk = JDK.find(int(tool[5:]))
        if jdk is None:
            pytest.skip(f"there is no JDK {tool[5:]}")
        text = jdk.run("jcmd", str(held.pid), "Thread.print", "-l").stdout.partition("\n")[2]
    else:
        text = dump_with(tool, held.pid)
    assert f"\n\n{TAKEN}" in text
    [dump] = parser.parse_lines(text.splitlines())
    threads = {thread.nid: thread for thread in dump.threads}
    main = threads[held.pid]
    assert (main.name, main.daemon) == ("MainThread", False)
    assert "hold" in main.frames[0]
    [waiter] = [each for each in threads.values() if ".wait(" in " ".join(each.frames[2:3])]
    functions = [frame.partition("(")[0] for frame in waiter.frames[:2]]
    assert functions == ["threading.Condition.wait", "threading.Event.wait"]
    assert set(threads) == {main.nid, waiter.nid}, "vmscope's own threads are left out"
    held.end()
    text = ask(held.pid, "jcmd", "Thread.print")
    assert "without the GIL" not in text
    assert '"waiter" #' in text
    assert "- locked <" in text


def read_all(client: socket.socket) -> str:
    answer = bytearray()
    while part := client.recv(1 << 16):
        answer += part
    return answer.decode()


def begin(pid: int, *words: str) -> socket.socket:
    """A request of version 1 that is sent, and yet to be answered."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE)
    client.connect(str(path_of(pid)))
    client.sendall(b"".join(word.encode() + b"\0" for word in ("1", *words, *[""] * (4 - len(words)))))
    return client


@pytest.mark.parametrize(
    "words",
    [
        ("threaddump",),
        ("threaddump", "-e -l"),
        ("threaddump", "-e", "-l"),
        ("jcmd", "Thread.print"),
        ("jcmd", " Thread.print  -l -e "),
        ("jcmd", "Thread.print", "-l"),
    ],
    ids=" ".join,
)
def test_requests_that_need_no_gil(start_vmscope: StartVMScope, tmp_path: Path, words: tuple[str, ...]) -> None:
    held = Held(start_vmscope, tmp_path)
    assert ask(held.pid, *words).startswith("0\n2")
    assert ask(held.pid, "getversion", "options") == "0\n2 progress"
    held.end()


def test_what_needs_the_gil_waits_for_it(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    """The answer that came without it takes nothing from the requests before and after it."""
    held = Held(start_vmscope, tmp_path)
    with (
        closing(begin(held.pid, "jcmd", "VM.version")) as first,
        closing(begin(held.pid, "jcmd", "Thread.print -l=true")) as waiting,
        closing(begin(held.pid, "jcmd", "Thread.print -wrong")) as wrong,
        closing(begin(held.pid, "jcmd", "Thread.print\nVM.version")) as two,
    ):
        for _ in range(3):
            assert TAKEN in ask(held.pid, "threaddump")
        with closing(begin(held.pid, "threaddump")):
            pass  # a client that does not wait
        held.end()
        assert read_all(first).startswith("0\nCPython version")
        text = read_all(waiting)
        assert "Locked ownable synchronizers:" in text
        assert "without the GIL" not in text
        assert "\tat __main__.hold(" in text, "as of the request"
        assert read_all(wrong).startswith("-1\n")
        assert "CPython version" in read_all(two)
    assert "without the GIL" not in ask(held.pid, "threaddump")
    assert held.child.ask("vmscope.status().running") == "True"


def test_a_dump_behind_a_command_that_lasts(start_vmscope: StartVMScope) -> None:
    """The thread that runs commands is busy, and the GIL is not."""
    code = """
import threading
from vmscope import commands
over = threading.Event()
def wait(out):
    out.write("begun\\n")
    out.flush()
    over.wait()
commands.register(commands.Command("Test.wait", "It lasts.", wait))
"""
    child = start_vmscope(code=code)
    with closing(begin(child.pid, "jcmd", "Test.wait")) as client:
        assert client.recv(100) == b"0\nbegun\n"
        text = ask(child.pid, "jcmd", "Thread.print")
        assert "\n\nTaken without the GIL: " in text
        assert '"vmscope ' not in text
        child.ask("over.set()")
        assert read_all(client) == ""
    assert "without the GIL" not in ask(child.pid, "jcmd", "Thread.print")


def test_names_cannot_steer_a_terminal(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    code = """
def odd():
    return hold()
odd.__code__ = odd.__code__.replace(co_qualname="\\x1b[31mé変\\U0001f40d\\udc80", co_filename="/a/\\n.py")
"""
    held = Held(start_vmscope, tmp_path, code, "odd()")
    text = ask(held.pid, "threaddump")
    held.end()
    assert "\tat \\x0a.\\x1b[31m\\xe9\\u5909\\U0001f40d\\udc80(\\x0a.py:" in text


def test_threads_of_all_states(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    code = """
import time
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
threading.Thread(target=threading.Event().wait, args=(1000,), daemon=True).start()
def yields():
    while not over.is_set():
        time.sleep(0)
threading.Thread(target=yields, daemon=True).start()
"""
    held = Held(start_vmscope, tmp_path, code)
    text = ask(held.pid, "threaddump")
    held.end()
    states = sorted(re.findall(r"java.lang.Thread.State: (.*)", text))
    assert states == [
        *("RUNNABLE", "RUNNABLE", "TIMED_WAITING (parking)", "TIMED_WAITING (sleeping)", "WAITING (parking)")
    ]
