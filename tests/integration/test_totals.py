"""The totals of a service: what ended processes have counted is added once, however they end."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests import sandbox
from tests.support import JDK
from vmscope import native
from vmscope.wire import floats

MOUNTS = "mount -t tmpfs none /tmp"
WORKERS = int(os.environ.get("VMSCOPE_WORKERS", "60"))

KEPT = """
import signal
from vmscope.wire import totals

FOLDER = "/tmp/hsperfdata_" + __import__("pwd").getpwuid(os.geteuid()).pw_name
KEEPER = FOLDER + "/services/shop"

def kept(path=KEEPER):
    with open(path, "rb") as file:
        return totals.decoded(file.read())

def numbers(path=KEEPER):
    return {name: row[0] for name, row in kept(path).numbers.items() if name.startswith("shop.")}

sales = vmscope.counter("shop.sales")
delay = vmscope.histogram("shop.delay", bounds=[0.1, 1])
highest = vmscope.gauge("shop.highest#max")
lowest = vmscope.gauge("shop.lowest#min")
live = vmscope.gauge("shop.live")

def work(count=1):
    sales.labels(path="/buy").add(count)
    delay.observe(0.5)
    live.set(7)

def child(end, before=work):
    pid = os.fork()
    if pid == 0:
        try:
            before()
            end()
        except SystemExit:
            pass
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return pid

def published():
    while not native.is_armed():  # the last that a start does
        time.sleep(0.001)  # a start tells nobody that it is over
"""


def run(code: str, *, seconds: float = 110) -> Any:
    return json.loads(sandbox.run(KEPT + code, mounts=MOUNTS, pid=True, timeout=seconds))


ENDS = {
    "return": "sys.exit()",
    "_exit": "os._exit(3)",
    "_exit later": "published(); work(); os._exit(3)",
    "SIGTERM": "published(); work(); os.kill(os.getpid(), signal.SIGTERM); signal.pause()",
    "exec": "published(); work(); os.execv('/bin/true', ['true'])",
    "exec of another one": "published(); work(); os.execv(sys.executable, [sys.executable, '-c', AGAIN])",
}
CRASH = "published(); work(); os.kill(os.getpid(), signal.SIGSEGV); signal.pause()"


@pytest.mark.parametrize("way", [*ENDS, "crash"])
def test_each_end_is_counted_once(way: str) -> None:
    if way == "crash" and native.IMPLEMENTATION == "python":
        pytest.skip("the twin does nothing in a crash")
    found = run(f"""
vmscope.start("-Dvmscope.service=shop")
AGAIN = '''
import vmscope
vmscope.start("-Dvmscope.service=shop")
vmscope.counter("shop.again").inc()
'''
def end():
    {ENDS.get(way, CRASH)}
for number in range(6):
    child(end)
vmscope.runtime.VM.exit()
answer(sales=numbers(), left=tree(), notes=len(kept().notes), created=kept().created)
""")
    times = 6 if way in ("return", "_exit") else 12
    expected = {
        'shop.sales{path="/buy"}': times,
        'shop.delay.bucket{le="0.1"}': 0,
        'shop.delay.bucket{le="1.0"}': times,
        'shop.delay.bucket{le="+Inf"}': 0,
        "shop.delay.sum": times * 500_000_000,
    }
    if way == "exec of another one":
        expected["shop.again"] = 6
    sales = {name: value for name, value in found["sales"].items() if value or name in expected}
    assert {name: sales.get(name, 0) for name in expected} == expected
    assert not {"shop.live", "shop.live{}"} & set(sales), "a gauge ends with its process"
    assert found["left"] == ["/tmp/hsperfdata_root", "/tmp/hsperfdata_root/services", KEEPER]
    assert found["notes"] == (13 if way == "exec of another one" else 7)


KEEPER = "/tmp/hsperfdata_root/services/shop"


def test_gauges_by_their_mode() -> None:
    found = run("""
vmscope.start("-Dvmscope.service=shop")
first = vmscope.gauge("shop.last#mostrecent")
def set_all(number):
    highest.set(number)
    lowest.set(number)
    vmscope.gauge("shop.added#sum").set(number)
    vmscope.gauge("shop.now#livemax").set(number)
    vmscope.float_gauge("shop.share#max").set(number / 4)
    vmscope.counter("shop.part").add(number / 4)
    vmscope.float_gauge("shop.ratio#mostrecent").labels(a="b").set(number / 4)
    first.set(number)
for number in (3, 9, 5):
    child(sys.exit, lambda: set_all(number))
child(sys.exit, lambda: lowest.set(4))
answer(last=kept().numbers["shop.last#mostrecent"][0], **numbers())
""")
    assert (found["shop.highest#max"], found["shop.lowest#min"], found["shop.added#sum"]) == (9, 3, 17)
    assert "shop.now#livemax" not in found
    assert found["last"] == 5
    assert [floats.double(found[f"shop.{name}#f64"]) for name in ("share#max", "part")] == [2.25, 4.25]
    assert floats.double(found['shop.ratio#mostrecent{a="b"}#f64']) == 1.25


def test_a_process_without_a_service_keeps_nothing() -> None:
    found = run("""
vmscope.start()
child(sys.exit)
vmscope.runtime.VM.exit()
answer(left=tree(), imported="vmscope.memory.keeper" in sys.modules)
""")
    assert found == {"left": ["/tmp/hsperfdata_root"], "imported": False}


def test_stop_and_a_failed_exec_count_nothing_twice() -> None:
    found = run("""
vmscope.start("-Dvmscope.service=shop")
work()
vmscope.stop()
vmscope.start("-Dvmscope.service=shop")
open("/tmp/program", "w").write("#!/nowhere")
os.chmod("/tmp/program", 0o700)
try:
    os.execv("/tmp/program", ["program"])
except OSError:
    pass
os.remove("/tmp/program")
work()
vmscope.runtime.VM.exit()
vmscope.runtime.VM.exit()
answer(**numbers())
""")
    assert found['shop.sales{path="/buy"}'] == 2


def test_killed_at_every_line_of_the_end() -> None:
    """Also where the lines are those of the next start, which adds what the killed one has not."""
    found = run("""
lines = 0
def killed_at(line, way):
    def end():
        left = line
        def trace(frame, event, argument):
            nonlocal left
            if event == "line":
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace
        def call(frame, event, argument):
            inner = frame.f_code.co_filename.endswith(("keeper.py", "_stale.py", "_file.py"))
            return trace if inner else None
        sys.settrace(call)
        vmscope.runtime.VM.exit()
        sys.settrace(None)
        os.write(writing, b"x")
        os.kill(os.getpid(), signal.SIGKILL)
    def adopter():
        vmscope.start("-Dvmscope.service=shop")
        end()
    pid = os.fork()
    if pid == 0:
        vmscope.start("-Dvmscope.service=shop")
        if way == "end":
            work()
            end()
        sys.settrace(None)
    return pid

def is_over(pid):
    os.waitpid(pid, 0)
    os.set_blocking(reading, False)
    try:
        return os.read(reading, 1) == b"x"
    except BlockingIOError:
        return False

reading, writing = os.pipe()
steps, bad = 0, []
while True:
    pid = killed_at(steps, "end")
    over = is_over(pid)
    next = os.fork()
    if next == 0:
        vmscope.start("-Dvmscope.service=shop")
        vmscope.runtime.VM.exit()
        os._exit(0)
    os.waitpid(next, 0)
    steps += 1
    if numbers().get('shop.sales{path="/buy"}') != steps:
        bad.append((steps, numbers()))
        break
    if sorted(os.listdir(FOLDER)) != ["services"] or os.listdir(FOLDER + "/services") != ["shop"]:
        bad.append((steps, tree()))
        break
    if over:
        break
answer(steps=steps, bad=bad)
""")
    assert found["bad"] == []
    assert found["steps"] > 40


def test_killed_at_every_line_of_an_adoption() -> None:
    found = run("""
def adopts(line):
    pid = os.fork()
    if pid == 0:
        left = line
        def trace(frame, event, argument):
            nonlocal left
            if event == "line":
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace
        sys.settrace(lambda frame, *_: trace if frame.f_code.co_filename.endswith(("keeper.py", "_stale.py")) else None)
        _file.clean()
        sys.settrace(None)
        os._exit(5)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5

def leave():
    pid = os.fork()
    if pid == 0:
        vmscope.start("-Dvmscope.service=shop")
        work()
        vmscope.runtime.VM.region.mirror.stop(10**9)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)

steps, bad = 0, []
while True:
    leave()
    over = adopts(steps)
    _file.clean()
    steps += 1
    if numbers().get('shop.sales{path="/buy"}') != steps or os.listdir(FOLDER) != ["services"]:
        bad.append((steps, numbers(), tree()))
    if over or bad:
        break
answer(steps=steps, bad=bad)
""")
    assert found["bad"] == []
    assert found["steps"] > 40


def test_many_workers_leave_one_file() -> None:
    """VMSCOPE_WORKERS sets how many; of each 5 one is killed and three end at one time."""
    found = run(
        f"""
vmscope.start("-Dvmscope.service=shop")
left, number = set(), 0
while number < {WORKERS} or left:
    while len(left) < 5 and number < {WORKERS}:
        pid = os.fork()
        if pid == 0:
            try:
                work(number)
                if number % 5 == 0:
                    published()
                    vmscope.runtime.VM.region.mirror.stop(10**9)
                    os.kill(os.getpid(), signal.SIGKILL)
            finally:
                sys.stdout = None
                sys.exit() if number % 2 else os._exit(0)
        left.add(pid)
        number += 1
    left.discard(os.wait()[0])
vmscope.runtime.VM.exit()
answer(left=[path for path in tree() if "/.java_pid" not in path], size=os.stat(KEEPER).st_size, **numbers())
""",
        seconds=100 + WORKERS,
    )
    assert found['shop.sales{path="/buy"}'] == WORKERS * (WORKERS - 1) // 2
    assert found['shop.delay.bucket{le="1.0"}'] == WORKERS
    assert found["left"] == ["/tmp/hsperfdata_root", "/tmp/hsperfdata_root/services", KEEPER]
    assert found["size"] < 64 << 10


def test_jvms_and_their_tools_leave_it_alone(jdk17: JDK) -> None:
    found = run(f"""
vmscope.start("-Dvmscope.service=shop")
child(sys.exit)
before = open(KEEPER, "rb").read()
open(FOLDER + "/shop", "w").close()
subprocess.run([{jdk17.tool("java")!r}, "-version"], capture_output=True, check=True)
jps = subprocess.run([{jdk17.tool("jps")!r}], capture_output=True, text=True, check=True)
answer(same=open(KEEPER, "rb").read() == before, other=os.path.exists(FOLDER + "/shop"),
       jps=[line for line in jps.stdout.splitlines() if not line.endswith("Jps")])
""")
    assert found["same"]
    assert not found["other"], "a start of a JVM removes what has no pid's name"
    assert len(found["jps"]) == 1


@pytest.mark.parametrize(
    "what",
    {
        "a link to a file": "os.symlink('/tmp/other', KEEPER)",
        "a second name": "os.link('/tmp/other', KEEPER)",
        "a fifo": "os.mkfifo(KEEPER)",
        "a folder": "os.mkdir(KEEPER)",
        "another user's": "open(KEEPER, 'w').close(); os.chown(KEEPER, 4711, 0)",
        "a folder of others": "os.chmod(FOLDER + '/services', 0o770)",
        "another user's folder": "os.chown(FOLDER + '/services', 4711, 0)",
        "a link to a folder": "os.rmdir(FOLDER + '/services'); os.symlink('/tmp/place', FOLDER + '/services')",
    }.values(),
)
def test_what_is_not_ours_is_left_alone(what: str) -> None:
    """The process ends as ever, and nothing of others is written to."""
    found = run(f"""
os.makedirs(FOLDER + "/services", 0o700)
os.chmod(FOLDER, 0o755)
os.mkdir("/tmp/place")
open("/tmp/other", "w").close()
{what}
vmscope.start("-Dvmscope.service=shop")
work()
begin = time.monotonic()
vmscope.runtime.VM.exit()
answer(seconds=time.monotonic() - begin, other=os.stat("/tmp/other").st_size, place=os.listdir("/tmp/place"))
""")
    assert (found["other"], found["place"]) == (0, [])


def test_a_lock_that_is_held_leaves_the_region_to_the_next_one() -> None:
    found = run("""
vmscope.start("-Dvmscope.service=shop")
os.mkdir(FOLDER + "/services", 0o700)
lock = os.open(FOLDER + "/services", os.O_RDONLY)
fcntl.flock(lock, fcntl.LOCK_EX)
pid = child(lambda: (published(), sys.exit()))
while_held = os.path.exists(f"{FOLDER}/{pid}")
os.close(lock)
_file.clean()
answer(held=while_held, after=os.path.exists(f"{FOLDER}/{pid}"), **numbers())
""")
    assert found["held"]
    assert not found["after"]
    assert found['shop.sales{path="/buy"}'] == 1


def test_a_damaged_keeper_begins_anew() -> None:
    found = run("""
os.makedirs(FOLDER + "/services", 0o700)
os.chmod(FOLDER, 0o755)
for number, damage in enumerate((b"", b"no region", bytes(4096), b"\\xca\\xfe\\xc0\\xc0" + bytes(4092))):
    open(KEEPER, "wb").write(damage)
    child(sys.exit) if number else (vmscope.start("-Dvmscope.service=shop"), child(sys.exit))
    assert numbers()['shop.sales{path="/buy"}'] == 1, damage
answer(mode=os.stat(KEEPER).st_mode & 0o777)
""")
    assert found["mode"] == 0o600


def test_totals_of_a_service_that_is_no_more_go() -> None:
    found = run("""
import threading
from vmscope.memory import keeper
vmscope.start("-Dvmscope.service=shop")
child(sys.exit)
names = ["gone", "young", "shop"]
for name in names:
    open(f"{FOLDER}/services/{name}", "ab").close()
    if name != "young":
        os.utime(f"{FOLDER}/services/{name}", (time.time() - keeper.KEPT - 60,) * 2)
ended = os.fork()
if ended == 0:
    keeper.fold("other", [("n", 1, 1, 2)], (4711, 1, 1), 1)
    os._exit(0)
os.waitpid(ended, 0)
answer(left=sorted(os.listdir(FOLDER + "/services")))
""")
    assert found["left"] == ["other", "shop", "young"], "a live process is of the service shop"
