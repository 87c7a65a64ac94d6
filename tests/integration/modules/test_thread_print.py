"""Thread.print: jstack's layout, with Python's threads, frames and locks. What needs processes of its own."""

from __future__ import annotations

import re
import subprocess
import sys


def test_deadlocks_are_found_and_confirmed() -> None:
    code = """
import sys, threading, time
from vmscope import commands
a, b, c = threading.Lock(), threading.RLock(), threading.Lock()
ready = threading.Barrier(3)
def cross(one, two):
    with one:
        ready.wait()
        with two:
            pass
for name, locks in (("ann", (a, b)), ("bob", (b, c)), ("cid", (c, a))):
    threading.Thread(target=cross, args=locks, name=name, daemon=True).start()
itself = threading.Lock()
def twice():
    with itself:
        with itself:
            pass
threading.Thread(target=twice, name="eve", daemon=True).start()
import io
from tests.wait import wait_for
def dump():
    out = io.StringIO()
    commands.execute("Thread.print", out)
    return "Found 2 deadlocks." in out.getvalue() and out.getvalue()
print(wait_for(dump), flush=True)
import os
os._exit(0)
"""

    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    assert text.count("Found one Java-level deadlock:\n=============================\n") == 2
    for name, next_ in (("ann", "bob"), ("bob", "cid"), ("cid", "ann"), ("eve", "eve")):
        assert re.search(
            rf'"{name}":\n  waiting to lock monitor (0x[0-9a-f]+) \(object \1, a _thread.R?[lL]ock\),\n'
            rf'  which is held by "{next_}"\n',
            text,
        )
    assert text.count("Java stack information for the threads listed above:") == 2
    assert "\nFound 2 deadlocks.\n" in text


def test_locks_that_know_their_owners() -> None:
    """Once an environment has asked for them, a lock that was taken without a `with` block has an owner too."""
    code = """
import io, threading
from tests.wait import wait_for
from vmscope import commands
lock, over = threading.Lock(), threading.Event()
def take():
    lock.acquire()
def hold():
    lock.acquire()
    over.wait()
    lock.release()
def kept():
    take()
    over.wait()
    lock.release()
def waits():
    out = io.StringIO()
    commands.execute("Thread.print -l", out)
    return "waiting to lock" in out.getvalue() and out.getvalue()
def dump(target):
    over.clear()
    holder = threading.Thread(target=target, name="holder")
    holder.start()
    wait_for(lock.locked)
    waiter = threading.Thread(target=take, name="waiter")
    waiter.start()
    text = wait_for(waits)
    over.set()
    holder.join()
    waiter.join()
    lock.release()
    print(text)
    print("@@")
dump(hold)
dump(kept)
"""
    command = [sys.executable, "-m", "vmscope", "run", "-pyagent:vmscope.agents.locks", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    held, kept, _ = run.stdout.split("@@")
    for text in (held, kept):
        assert re.search(r'- waiting to lock <0x[0-9a-f]+> \(a threading.Lock\)\n\t  held by "holder" #\d+\n', text)
    lock = r'<.*> \(a threading.Lock\)\n\t  waited for by "waiter" #\d+\n'
    [at] = list(re.finditer(rf"\n\t- locked {lock}", held))
    assert held[: at.start()].rpartition("\n")[2].startswith("\tat __main__.hold(")
    beyond = re.search(rf"Locked ownable synchronizers:\n\t- {lock}", kept)
    assert beyond is not None
