"""multiprocessing's three ways, plain forks, and forks of a program that turns warnings into errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import sandbox

PROGRAM = """\
import json, multiprocessing, os, pwd, sys, time
import vmscope
from vmscope import reader
from vmscope.errors import VMScopeError

count = vmscope.counter("test.count")
state = vmscope.text("test.state", capacity=16)


def region(pid):
    return f"/tmp/hsperfdata_{pwd.getpwuid(os.geteuid()).pw_name}/{pid}"


def child(queue, go):
    if multiprocessing.get_start_method() != "fork":
        vmscope.start()
    count.add(7)
    end = time.monotonic() + 20
    found = {}
    while time.monotonic() < end and found.get("test.count") != 7:
        time.sleep(0.01)
        try:
            with reader.vm(os.getpid(), stale=True) as vm:
                found = vm.values()
        except VMScopeError:
            pass
    queue.put((os.getpid(), found.get("test.count"), found.get("test.state"), os.path.exists(region(os.getpid()))))
    go.wait(20)


if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    vmscope.start()
    count.add(100)
    state.set("open")
    queue, go = multiprocessing.Queue(), multiprocessing.Event()
    children = [multiprocessing.Process(target=child, args=(queue, go)) for _ in range(3)]
    for process in children:
        process.start()
    told = [queue.get(timeout=30) for _ in children]
    go.set()
    for process in children:
        process.join(30)
    time.sleep(0.1)
    with reader.vm(os.getpid()) as vm:
        own = vm.values()["test.count"]
    print(json.dumps({
        "told": told,
        "left": [pid for pid, *_ in told if os.path.exists(region(pid))],
        "codes": [process.exitcode for process in children],
        "own": own,
        "region": os.path.exists(region(os.getpid())),
    }))
"""


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


FORKS = """\
import os, sys, threading, time
import vmscope
vmscope.start()
count = vmscope.counter("test.count")
for number in range(150):
    count.inc()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if count.value == 0 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    if number % 10 == 0:
        time.sleep(0.01)
time.sleep(0.3)
from vmscope import reader
with reader.vm(os.getpid()) as vm:
    print(vm.values()["test.count"])
"""


def test_150_forks_where_warnings_are_errors() -> None:
    run = subprocess.run([sys.executable, "-W", "error", "-c", FORKS], capture_output=True, text=True, timeout=90)
    assert (run.returncode, run.stdout, run.stderr) == (0, "150\n", "")


THREADS = """\
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")  # the program has threads of its own
import vmscope
vmscope.start()
count = vmscope.counter("test.count")
over = threading.Event()

def work():
    while not over.is_set():
        count.inc()

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
wrong = 0
for _ in range(200):
    pid = os.fork()
    if pid == 0:
        before = count.value
        count.add(3)
        os._exit(0 if (before, count.value) == (0, 3) else 1)
    wrong += os.waitpid(pid, 0)[1] != 0
over.set()
for thread in threads:
    thread.join()
print(wrong)
"""


def test_200_forks_while_threads_count() -> None:
    run = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=100)
    assert (run.returncode, run.stdout, run.stderr) == (0, "0\n", "")


@pytest.mark.parametrize("waited", [True, False], ids=["waited for", "a zombie"])
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_the_files_of_killed_children_go_with_their_parent(way: str, waited: bool, implementation: str) -> None:
    """Where no other VM starts afterwards, and the parent has no thread that watches them."""
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
                time.sleep(0.01)
            child.kill()
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            if {waited}:
                child.join()
            answer(before=os.path.exists(f"{{folder}}/{{child.pid}}"))
            vmscope.stop()
            answer(after=os.path.exists(f"{{folder}}/{{child.pid}}"))
            child.join()
    """
    assert sandbox.answers(code) == [{"before": True}, {"after": False}]
