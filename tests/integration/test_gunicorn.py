"""The real gunicorn: its master and each worker are VMs of their own, and nothing of them stays."""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests import programs
from tests.support import JDK
from tests.wait import wait_for
from vmscope import reader
from vmscope.errors import VMScopeError

pytest.importorskip("gunicorn", reason="gunicorn is in the dev group")

APP = programs.source("gunicorn/app")


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def values(pid: int) -> dict[str, int | str]:
    try:
        with reader.vm(pid) as vm:
            return vm.values()
    except VMScopeError:
        return {}


def region(pid: int) -> Path:
    return Path(f"/tmp/hsperfdata_{pwd.getpwuid(os.geteuid()).pw_name}/{pid}")


@pytest.mark.parametrize("worker", [["-k", "sync"], ["-k", "gthread", "--threads", "2"], ["--preload"]], ids=" ".join)
def test_master_and_workers(jdk: JDK, tmp_path: Path, worker: list[str]) -> None:
    (tmp_path / "shop.py").write_text(APP)
    command = [sys.executable, "-m", "vmscope", "run", "-m", "gunicorn", "-b", "127.0.0.1:0", "-w", "2", *worker]
    log = tmp_path / "log"
    with log.open("w") as stderr:
        master = subprocess.Popen(
            [*command, "shop:app"], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr
        )
    seen = {master.pid}
    try:
        wait_for(lambda: bool(re.search(r"http://[\d.]+:\d+", log.read_text())), "gunicorn did not start")
        address = re.findall(r"http://[\d.]+:\d+", log.read_text())[0]
        wait_for(lambda: len(children(master.pid)) == 2, "two workers")
        workers = children(master.pid)
        seen |= set(workers)
        wait_for(lambda: all(values(pid) for pid in workers), "each worker publishes")
        for _ in range(40):
            assert urllib.request.urlopen(address, timeout=20).read() == b"hello"
        wait_for(
            lambda: sum(int(values(pid).get("app.requests", 0)) for pid in workers) == 40,
            "the workers' counts add up",
        )
        assert values(master.pid).get("app.requests", 0) == 0
        listed = jdk.run("jps", "-l").stdout.splitlines()
        assert {f"{pid} gunicorn" for pid in seen} <= set(listed)

        master.send_signal(signal.SIGHUP)  # other workers take over
        wait_for(lambda: len(children(master.pid)) == 2 and not set(workers) & set(children(master.pid)), "reload")
        fresh = children(master.pid)
        seen |= set(fresh)
        wait_for(lambda: all(values(pid) for pid in fresh), "each new worker publishes")
        assert [pid for pid in fresh if values(pid).get("app.requests", 0) != 0] == []
        assert not [pid for pid in workers if region(pid).exists()]
    finally:
        master.terminate()
        assert master.wait(30) == 0, log.read_text()
    assert not [pid for pid in seen if region(pid).exists()]
    assert "Traceback" not in log.read_text()
    assert "Warning" not in log.read_text()
