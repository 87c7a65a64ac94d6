"""500 processes that start and end at once, while jps and our own reader look on."""

from __future__ import annotations

import json

from tests import sandbox
from tests.support import JDK

PROCESSES = 500

CODE = """
from vmscope import reader
from vmscope.errors import NoSuchProcess, StaleRegion


def work(number):
    vmscope.start()
    vmscope.counter("test.number").add(number)
    sys.exit(0)  # with atexit, as any program ends


alive, started, ended, failed = set(), 0, 0, []
seen, looks = set(), 0
server = subprocess.Popen([sys.executable, "-c", WATCH, JPS], stdin=-1, stdout=-1, text=True)
while ended < PROCESSES:
    while len(alive) < 25 and started < PROCESSES:
        child = os.fork()
        if child == 0:
            work(started)
        alive.add(child)
        started += 1
    for vm in reader.vms():
        with vm:
            try:
                values = vm.values()
            except (NoSuchProcess, StaleRegion):
                continue  # it ended under our eyes
            if vm.kind == "CPython":
                assert values["sun.rt.vmInitDoneTime"] > 0, values
                seen.add(vm.pid)
    looks += 1
    while alive:
        child, status = os.waitpid(-1, os.WNOHANG if len(alive) < 25 or started == PROCESSES else 0)
        if not child:
            break
        if child in alive:
            alive.remove(child)
            ended += 1
            if status:
                failed.append(status)
server.stdin.close()
jps = json.loads(server.stdout.read())
server.wait()
names = os.listdir("/tmp/hsperfdata_" + __import__("pwd").getpwuid(os.geteuid()).pw_name)
answer(failed=failed, seen=len(seen), looks=looks, jps=jps, names=names)
"""

# A process of its own: one that has threads would be warned at each fork.
WATCH = """
import json, select, subprocess, sys
runs = []
while not select.select([sys.stdin], [], [], 0)[0]:
    run = subprocess.run([sys.argv[1], "-l"], capture_output=True, text=True, timeout=60)
    bad = [line for line in run.stdout.splitlines() if "unavailable" in line or "Unknown" in line]
    runs.append([run.returncode, run.stderr, bad])
print(json.dumps(runs))
"""


def test_500_start_and_end(jdk: JDK) -> None:
    code = f"JPS, WATCH, PROCESSES = {jdk.tool('jps')!r}, {WATCH!r}, {PROCESSES}\n{CODE}"
    found = json.loads(sandbox.run(code, mounts="mount -t tmpfs none /tmp", pid=True, timeout=110))
    assert found["failed"] == []
    assert found["names"] == []
    assert found["seen"] > 0, "no look came in time"
    assert found["looks"] > 10
    assert found["jps"], "jps never ran"
    for status, errors, bad in found["jps"]:
        assert (status, errors) == (0, "")
        # jps lists the directory first and opens the files later: one that went in between is all it may miss.
        assert all("process information unavailable" in line for line in bad), bad
