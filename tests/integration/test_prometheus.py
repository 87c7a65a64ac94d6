"""prometheus_client's API on the region: its own tests, several processes, and what it cannot do itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import StartPython, StartVMScope
from tests.wait import wait_for

ROOT = Path(__file__).parent.parent.parent
COMMAND = [sys.executable, "-m", "vmscope"]
DROPIN = """
import gc, json, os, signal, threading
from vmscope.integrations import prometheus
prometheus.install()
from prometheus_client import *
from prometheus_client import metrics, multiprocess, values

def collected(of=None):
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in generate_latest(of or registry).decode().splitlines() if not line.startswith("#")}
"""


@pytest.fixture
def folder(tmp_path: Path) -> dict[str, str]:
    """The environment of multiprocess mode."""
    return {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}


@pytest.mark.timeout(400)
def test_its_own_tests_pass() -> None:
    script = ROOT / "scripts" / "prometheus_suite.py"
    done = subprocess.run([sys.executable, script, "0.26.0"], capture_output=True, text=True, timeout=380)
    if done.returncode == 3:
        pytest.skip(f"prometheus_client's source cannot be fetched: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr


FORKING = """
sold = Counter("sold", "What was sold.", ["what"])
level = Gauge("level", "How high.", multiprocess_mode="max")
last = Gauge("last", "Which was last.", multiprocess_mode="mostrecent")
delay = Histogram("delay", "How long.", buckets=(1, 2.5))
size = Summary("size", "How much.")
sold.labels("tea").inc(100)  # the parent's
pipes = []
for number in range(2):
    reads, writes = os.pipe()
    answers, said = os.pipe()
    if os.fork() == 0:
        sold.labels("tea").inc(1 + number)
        sold.labels("a \\"b\\"").inc(0.25)
        level.set(number - 5)
        last.set(number)
        delay.observe(2)
        size.observe(3)
        os.write(said, b"1")
        os.read(reads, 1)
        os._exit(0)
    os.close(said)
    os.read(answers, 1)
    pipes.append(writes)
"""


def test_processes_are_collected_without_files(start_vmscope: StartVMScope, folder: dict[str, str]) -> None:
    service = f"dropin{os.getpid()}"
    child = start_vmscope(f"-Dvmscope.service={service}", code=DROPIN + FORKING, env=folder)
    expected = {
        'sold_total{what="tea"}': 103.0,
        'sold_total{what="a \\"b\\""}': 0.5,
        "level": 0.0,  # the parent's
        "last": 1.0,
        'delay_bucket{le="1.0"}': 0.0,
        'delay_bucket{le="2.5"}': 2.0,
        'delay_bucket{le="+Inf"}': 2.0,
        "delay_count": 2.0,
        "delay_sum": 4.0,
        "size_count": 2.0,
        "size_sum": 6.0,
    }
    wait_for(lambda: json.loads(child.ask("json.dumps(collected())")) == expected)
    assert os.listdir(folder["PROMETHEUS_MULTIPROC_DIR"]) == []
    text = subprocess.run([*COMMAND, "export", "--once", f"--vms={service}"], capture_output=True, text=True).stdout
    labels = rf'service="{service}",user="\w+"'
    for line in (
        rf'sold_total{{{labels},what="tea"}} 103',
        rf"level{{{labels}}} 0(\.0)?",
        rf'delay_bucket{{{labels},le="2.5"}} 2',
        rf"delay_count{{{labels}}} 2",
        rf"delay_sum{{{labels}}} 4(\.0)?",
        rf"size_count{{{labels}}} 2",
        rf"size_sum{{{labels}}} 6(\.0)?",
    ):
        assert re.search(f"^{line}$", text, re.MULTILINE), (line, text)
    child.ask("[os.write(pipe, b'1') for pipe in pipes]")


def test_the_environment_switches_it_on(start_python: StartPython, folder: dict[str, str]) -> None:
    """A program that knows nothing of it, started by `vmscope run`."""
    code = (
        "from prometheus_client import Counter, values; Counter('a', 'b').inc(); print(values.ValueClass, flush=True)"
    )
    done = subprocess.run([*COMMAND, "run", "-c", code], capture_output=True, text=True, env=folder, timeout=60)
    assert "vmscope.integrations" in done.stdout, done
    assert os.listdir(folder["PROMETHEUS_MULTIPROC_DIR"]) == []


HAZARDS = {
    "a signal handler": """
def handler(*_):
    global handled
    handled += 1
    update()
handled = made = 0
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
while handled < 200:
    update()
    made += 1
signal.setitimer(signal.ITIMER_REAL, 0)
total = handled + made
""",
    "a destructor": """
class Dropped:
    def __del__(self):
        update()
for _ in range(1000):
    one = Dropped()
    update()
    del one
total = 2000
""",
    "a collector's callback": """
calls = 0
def callback(phase, info):
    global calls
    calls += 1
    update()
gc.callbacks.append(callback)
gc.set_threshold(1)
for _ in range(1000):
    kept = [[]]
    update()
gc.callbacks.remove(callback)
total = 1000 + calls
""",
    "a fork while threads update": """
stop = False
counts = [0, 0, 0]
def work(number):
    while not stop:
        update()
        counts[number] += 1
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
[thread.start() for thread in threads]
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        before = count()
        update()
        os._exit(0 if (before, count()) == (0, 1) else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop = True
[thread.join() for thread in threads]
total = sum(counts)
""",
}
UPDATES = {
    "counter": """
metric = Counter("c", "d", ["l"])
def update(): metric.labels("x").inc()
def count(): return collected().get('c_total{l="x"}', 0) if values.ValueClass._multiprocess else 0
child = metric.labels("x")
update = child.inc
count = lambda: child._value.get()
""",
    "exemplar": """
import vmscope
vmscope.start()
metric = Histogram("h", "d")
def update(): metric.observe(0.5, exemplar={"trace_id": "abc"})
def count(): return sum(bucket.get() for bucket in metric._buckets)
""",
    "histogram": """
metric = Histogram("h", "d")
def update(): metric.observe(0.5)
def count(): return sum(bucket.get() for bucket in metric._buckets)
""",
}


@pytest.mark.parametrize("kind", UPDATES)
@pytest.mark.parametrize("hazard", HAZARDS)
def test_no_update_hangs_or_is_lost(start_python: StartPython, folder: dict[str, str], hazard: str, kind: str) -> None:
    code = f"{DROPIN}\n{UPDATES[kind]}\n{HAZARDS[hazard]}\nprint('ready', total, int(count()), flush=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=folder, timeout=60)
    word, total, counted = done.stdout.split()
    assert (word, total) == ("ready", counted), done


LOCKED = """
class Slow(Counter):
    def _metric_init(self):  # with the lock of its parent
        super()._metric_init()
        meanwhile()

def meanwhile():
    pass
metric = Slow("c", "d", ["l"])
"""


def test_labels_in_a_signal_handler_do_not_hang() -> None:
    code = """
def handler(*_):
    global meanwhile
    meanwhile = lambda: None
    metric.labels("handler").inc()
def meanwhile():
    os.kill(os.getpid(), signal.SIGUSR1)
signal.signal(signal.SIGUSR1, handler)
metric.labels("x").inc()
print(sorted(labels for labels, in metric._metrics), metric.labels("handler")._value.get())
"""
    assert run(LOCKED + code) == "['handler', 'x'] 1.0\n"


def test_labels_in_a_child_do_not_hang() -> None:
    """It was forked while another thread had the lock."""
    code = """
there, go_on = threading.Event(), threading.Event()
def meanwhile():
    there.set()
    go_on.wait()
thread = threading.Thread(target=lambda: metric.labels("x").inc())
thread.start()
there.wait()
meanwhile = lambda: None
if (pid := os.fork()) == 0:
    metric.labels("child").inc()
    os._exit(int(metric.labels("child")._value.get()))
status = os.waitpid(pid, 0)[1]
go_on.set()
thread.join()
print(os.waitstatus_to_exitcode(status), metric.labels("x")._value.get())
"""
    assert run("import warnings; warnings.simplefilter('ignore')" + LOCKED + code) == "1 1.0\n"


def run(code: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([sys.executable, "-c", DROPIN + code], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_amounts() -> None:
    code = """
import fractions
c, g, h = Counter("c", "d"), Gauge("g", "d"), Histogram("h", "d", buckets=[1, 2])
for amount in (1, 0.5, True, fractions.Fraction(1, 4), 2**80, float("inf")):
    c.inc(amount)
    print(c._value.get())
for wrong in (-1, -0.5, "x", None):
    try:
        c.inc(wrong)
    except (ValueError, TypeError) as error:
        print(type(error).__name__)
try:
    c.inc(1, {"a": "b"}, 3)
except TypeError as error:
    print("TypeError")
g.set("2.5"); g.inc(); g.dec(amount=0.5); g.inc(amount=2)
print(g._value.get())
h.observe(1.5, exemplar={"trace": "x"}); h.observe(float("nan")); h.observe(amount=-1)
print([bucket.get() for bucket in h._buckets], h._buckets[1].get_exemplar().labels, h._sum.get())
c.reset(); c.inc(exemplar={"trace": "y"})
print(c._value.get(), c._value.get_exemplar().labels)
"""
    assert run(code).splitlines() == [
        *["1.0", "1.5", "2.5", "2.75", repr(2.0**80), "inf"],
        *["ValueError", "ValueError", "ValueError", "TypeError", "TypeError"],
        "5.0",
        "[1.0, 1.0, 0.0] {'trace': 'x'} nan",
        "1.0 {'trace': 'y'}",
    ]


def test_metrics_of_one_name_are_apart_outside_of_multiprocess_mode() -> None:
    code = """
first, second = (Counter("c", "d", ["l"], registry=CollectorRegistry()) for _ in range(2))
first.labels("x").inc(2)
second.labels("x").inc(3)
print(first.labels("x")._value.get(), second.labels("x")._value.get())
first.remove("x")
print(first.labels("x")._value.get())
first.labels("x").inc()
first.clear()
print(list(first.collect())[0].samples)
from vmscope.counters.registry import REGISTRY
third = Counter("c", "d", ["l"], registry=None)
third.labels("x").inc(7)
print(REGISTRY.get('c_total{l="x"}').value)
"""
    assert run(code).splitlines() == ["2.0 3.0", "0.0", "[]", "7"]


def test_a_class_that_replaces_a_method_keeps_it() -> None:
    code = """
class Doubled(Counter):
    def inc(self, amount=1, exemplar=None):
        super().inc(2 * amount, exemplar)
c = Doubled("c", "d")
c.inc()
c.inc(2)
print(c._value.get())
labelled = Counter("l", "d", ["a"])
try:
    labelled.inc()
except ValueError as error:
    print(error)
print(repr(labelled), isinstance(labelled, metrics.Counter), metrics.Counter is Counter)
"""
    assert run(code).splitlines() == [
        "6.0",
        "counter metric is missing label values",
        "prometheus_client.metrics.Counter(l) True True",
    ]
