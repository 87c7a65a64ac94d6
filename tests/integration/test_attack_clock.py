"""Clocks that somebody sets, or that stand elsewhere in a time namespace: no wait gets longer, and no VM is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import native
from tests.support import PATIENCE, Child
from vmscope import reader
from vmscope.attach import client
from vmscope.reader.process import process

# As it looks to whoever reads the clock just before it is set back by an hour.
SET_BACK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time)
{
    int status = (int)syscall(SYS_clock_gettime, clock, time);
    time->tv_sec += clock == CLOCK_REALTIME ? 3600 : 0;
    return status;
}
"""


@pytest.fixture
def set_back(tmp_path: Path) -> str:
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(SET_BACK)
    subprocess.run([native.compiler(), "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return str(library)


def test_nobody_waits_by_a_clock_that_is_set(implementation: str, set_back: str, tmp_path: Path) -> None:
    """The end of a listener, and a fork, with a command that goes on for as long as they would."""
    code = f"""
import _socket, os, select, threading
from vmscope import native
begun, ended = threading.Event(), threading.Event()
def serve(call):
    begun.set()
    ended.wait({PATIENCE / 3})
listener = native.Listener(serve)
listener.open(b"{tmp_path}/s", b"{tmp_path}/t")
listener.settle()
client = _socket.socket(_socket.AF_UNIX)
client.connect("{tmp_path}/s")
client.send(b"1\\0x\\0\\0\\0\\0")
begun.wait()
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print(ended.is_set(), listener.close(100_000_000))
ended.set()
"""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "LD_PRELOAD": set_back},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (run.stdout, run.stderr) == ("False False\n", "")


@pytest.mark.parametrize("offset", ["100000", "-1"])
def test_a_vm_of_another_time_namespace(offset: str, implementation: str) -> None:
    """It is seen from outside, and answers, though it counts the ticks since the boot otherwise."""
    unshare = ["unshare", "--time", "--boottime", offset, "--monotonic", offset, "--fork", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("needs unshare and the right to make time namespaces")
    code = """
import os, vmscope
vmscope.start()
print(os.getpid(), flush=True)
input()
"""
    with Child([*unshare, sys.executable, "-c", code]) as child:
        pid = int(child.readline())
        with reader.vm(pid) as vm:
            assert vm.state == "live"
            assert vm.values()["vmscope.process.startTicks"] != process(pid).start_ticks
        with client.connect(pid) as asked, asked.execute("jcmd", "VM.uptime") as reply:
            assert float(reply.read().split()[0]) < PATIENCE
