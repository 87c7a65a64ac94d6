"""Thread.print: jstack's layout, with Python's threads, frames and locks. What needs processes of its own."""

from __future__ import annotations

import re
import subprocess
import sys

from tests import programs


def test_deadlocks_are_found_and_confirmed() -> None:
    code = programs.source("thread_print/deadlocks")

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
    code = programs.source("thread_print/owners")
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
