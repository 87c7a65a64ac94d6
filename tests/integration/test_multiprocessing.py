"""multiprocessing's three ways, plain forks, and forks of a program that turns warnings into errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import programs, sandbox

PROGRAM = programs.source("multiprocessing/program")


@pytest.mark.parametrize("way", ["fork", "forkserver", "spawn"])
def test_children_of_multiprocessing(tmp_path: Path, way: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = subprocess.run([sys.executable, str(program), way], capture_output=True, text=True, timeout=90)
    assert run.stderr == ""
    found = json.loads(run.stdout)
    text = "open" if way == "fork" else ""
    assert [row[1:] for row in found["told"]] == [[7, text, True]] * 3
    assert found["left"] == []
    assert found["codes"] == [0, 0, 0]
    assert (found["own"], found["region"]) == (100, True)


FORKS = programs.source("multiprocessing/forks")


def test_150_forks_where_warnings_are_errors() -> None:
    run = subprocess.run([sys.executable, "-W", "error", "-c", FORKS], capture_output=True, text=True, timeout=90)
    assert (run.returncode, run.stdout, run.stderr) == (0, "150\n", "")


THREADS = programs.source("multiprocessing/threads")


def test_200_forks_while_threads_count() -> None:
    run = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=100)
    assert (run.returncode, run.stdout, run.stderr) == (0, "0\n", "")


@pytest.mark.parametrize("waited", [True, False], ids=["waited for", "a zombie"])
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_the_files_of_killed_children_go_with_their_parent(way: str, waited: bool, implementation: str) -> None:
    """Though the parent has no thread that watches them."""
    code = f"""
        import multiprocessing, signal
        if __name__ == "__main__":
            vmscope.start("-XX:+DisableAttachMechanism")
            folder = os.path.dirname(vmscope.status().path)
            os.environ["VMSCOPE_RUN_OPTIONS"] = "-Dfollow=1"  # what a spawned child is published by
            child = multiprocessing.get_context({way!r}).Process(target=time.sleep, args=(60,))
            child.start()
            end = time.monotonic() + 30
            while not os.path.exists(f"{{folder}}/{{child.pid}}"):
                assert time.monotonic() < end
                time.sleep(0.01)  # a worker imports no tests.wait
            child.kill()
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            if {waited}:
                child.join()
            vmscope.stop()
            answer(after=os.path.exists(f"{{folder}}/{{child.pid}}"))
            child.join()
    """
    assert sandbox.answers(code) == [{"after": False}]
