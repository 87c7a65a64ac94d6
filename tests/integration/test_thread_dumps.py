"""jstack, jcmd and jattach show a Python process's threads, and what reads a JVM's thread dumps reads them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import StartVMScope
from tests.hprof import Dump
from tests.integration.test_listener import ask
from tests.support import JDK, PATIENCE, Child, python_command
from tests.wait import wait_for

parser = pytest.importorskip("tdscope.parser")

PROGRAM = """
import asyncio, sys, threading, time, vmscope
vmscope.start()
first, second, third = threading.Lock(), threading.RLock(), threading.Lock()
met = threading.Barrier(2)
def cross(one, two):
    with one:
        met.wait()
        with two:
            pass
def keep():
    third.acquire()
    print("ready", flush=True)
    time.sleep(1000)
for name, locks in (("ann", (first, second)), ("bob", (second, first))):
    threading.Thread(target=cross, args=locks, name=name, daemon=True).start()
threading.Thread(target=keep, name="keeper", daemon=True).start()
def in_lock():
    third.acquire()
def in_c():
    sys.stdin.read()
def busy():
    while True:
        pass
async def sleep():
    await asyncio.sleep(1000)
def in_asyncio():
    asyncio.run(sleep())
%s()
"""
WAYS = {  # of the main thread: its state, and what its dump shows
    "in_lock": ("BLOCKED", "in_lock"),
    "in_c": ("RUNNABLE", "in_c"),
    "busy": ("RUNNABLE", "busy"),
    "in_asyncio": ("RUNNABLE", "select"),
}


def dump_with(tool: str, pid: int) -> str:
    if tool == "jattach":
        path = shutil.which("jattach")
        if path is None:
            pytest.skip("there is no jattach")
        run = subprocess.run(
            [path, str(pid), "threaddump"], capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        return run.stdout
    jdk = JDK.find(int(tool))
    if jdk is None:
        pytest.skip(f"there is no JDK {tool}")
    return jdk.run("jstack", "-l", "-e", str(pid)).stdout


def settled(dump: Callable[[], str], *wanted: str) -> str:
    """A dump that shows all of this: threads take a moment to get where they will wait."""
    texts: list[str] = []

    def shown() -> bool:
        texts[:] = [dump()]
        return all(each in texts[0] for each in wanted)

    wait_for(shown, lambda: texts[0])
    return texts[0]


@pytest.mark.parametrize("tool", ["17", "25", "jattach"])
@pytest.mark.parametrize("way", WAYS)
def test_a_reader_of_thread_dumps_reads_ours(tool: str, way: str) -> None:
    with Child(python_command(PROGRAM % way)) as child:
        child.read_until(b"ready\n")
        text = settled(
            lambda: dump_with(tool, child.pid), "Found 1 deadlock.", WAYS[way][1], "TIMED_WAITING (sleeping)"
        )
    [dump] = parser.parse_lines(text.splitlines())
    threads = {thread.name: thread for thread in dump.threads}
    assert {"MainThread", "ann", "bob", "keeper"} <= set(threads)
    assert [name for name in threads if name.startswith("vmscope")] == [], "its own threads are left out"
    state, shown = WAYS[way]
    main = threads["MainThread"]
    assert (main.state, main.nid, main.daemon) == (state, child.pid, False)
    assert shown in main.frames[0]
    assert main.cpu_ms > 0
    assert [sorted(each.threads) for each in dump.deadlocks] == [["ann", "bob"]]
    assert threads["ann"].waiting_for().address == threads["bob"].held_locks()[0].address
    assert threads["bob"].waiting_for().address == threads["ann"].held_locks()[0].address
    assert (threads["keeper"].state, threads["keeper"].state_detail) == ("TIMED_WAITING", "sleeping")
    if way == "in_asyncio" and tool != "jattach":
        assert re.search(r"\nEvent loop <.*> \(a .*\) runs in thread \"MainThread\": 1 task\n\"Task-1\" <", text)


def test_a_heap_dump_has_the_programs_threads(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    code = "import threading; over = threading.Event(); threading.Thread(target=over.wait, daemon=True).start()"
    child = start_vmscope(code=code)
    assert ask(child.pid, "jcmd", f"GC.heap_dump {tmp_path / 'a.hprof'}").startswith("0\n")
    dump = Dump((tmp_path / "a.hprof").read_bytes())
    threads = [more[1] for kind, _, more in dump.roots if kind == "thread"]
    assert len(threads) == 2
    assert set(dump.traces) - set(threads) == {1}, "the trace of no thread"
