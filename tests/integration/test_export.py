"""`vmscope export` on real processes: gunicorn's workers are one service, and a JVM has client_java's names."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests import programs
from tests.conftest import StartJVM, StartVMScope
from tests.wait import wait_for as eventually

COMMAND = [sys.executable, "-m", "vmscope"]

APP = programs.source("export/app")

Samples = dict[str, float]


def export(*arguments: str) -> str:
    command = [*COMMAND, "export", "--once", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def samples(text: str) -> Samples:
    """The values by what stands before them."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    found = {name: float(value) for name, _, value in lines}
    assert len(found) == len(lines), "a line occurs twice"
    return found


def one(found: Samples, pattern: str) -> float:
    """The value of the one sample that a pattern fits."""
    (value,) = (value for name, value in found.items() if re.fullmatch(pattern, name))
    return value


numbers = itertools.count()  # of services: the totals of one outlive its test


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A gunicorn with three workers: the name of its service, and its socket."""
    pytest.importorskip("gunicorn", reason="gunicorn is in the dev group")
    (tmp_path / "app.py").write_text(APP)
    service, socket = f"shop{os.getpid()}-{next(numbers)}", tmp_path / "socket"
    options = ["-w", "3", "-b", f"unix:{socket}", "--no-control-socket", "app:app"]
    command = [*COMMAND, "run", f"-Dvmscope.service={service}", "-m", "gunicorn", *options]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, cwd=tmp_path) as master:
        try:
            eventually(lambda: one_or_none(service) == 4, "all four are published")
            yield service, socket
        finally:
            with suppress(ProcessLookupError):
                master.send_signal(signal.SIGTERM)


def one_or_none(service: str) -> float | None:
    found = samples(export(f"--vms={service}"))
    return next((value for name, value in found.items() if name.startswith("vmscope_vms{")), None)


def get(socket: Path, path: str) -> None:
    subprocess.run(["curl", "-sf", "--unix-socket", socket, f"http://shop{path}"], check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_workers_of_a_service_are_one_series(shop: tuple[str, Path]) -> None:
    service, socket = shop
    for _ in range(20):
        get(socket, "/buy")
    labels = rf'service="{service}",user="\w+"'

    def all_are_counted() -> bool:
        name = rf'app_requests_total{{{labels},path="/buy"}}'
        return any(re.fullmatch(name, key) and value == 20 for key, value in samples(export()).items())

    eventually(all_are_counted, "20 requests")
    found = samples(export(f"--vms={service}"))
    assert one(found, rf'vmscope_vms{{{labels},kind="CPython"}}') == 4
    for bound, count in (("0.001", 0), ("0.01", 0), ("0.1", 20), ("1.0", 20), (r"\+Inf", 20)):
        assert one(found, rf'app_delay_seconds_bucket{{{labels},le="{bound}"}}') == count
    assert one(found, rf"app_delay_seconds_count{{{labels}}}") == 20
    assert one(found, rf"app_delay_seconds_sum{{{labels}}}") == pytest.approx(1.0)
    assert one(found, rf"app_temperature{{{labels}}}") == 40
    assert one(found, rf"python_info{{{labels},.*}}") == 1
    by_pid = samples(export(f"--vms={service}", "--by=pid"))
    each = {
        re.findall(r'pid="(\d+)",worker="(\d*)"', name)[0]: value
        for name, value in by_pid.items()
        if name.startswith("app_requests_total{") and "path" in name
    }
    assert sum(each.values()) == 20
    assert len({pid for pid, _ in each}) == len({worker for _, worker in each}) == len(each)
    # what is added up
    total = sum(value for name, value in by_pid.items() if name.startswith("process_open_fds{"))
    assert one(found, rf"process_open_fds{{{labels}}}") == total


def test_a_jvm_has_the_names_of_client_java(start_jvm: StartJVM) -> None:
    service = f"store{os.getpid()}"
    jvm = start_jvm(f"-Dvmscope.service={service}", "-XX:+UseSerialGC", "-Xmx64m")
    found = samples(export(f"--vms={service}"))
    labels = rf'service="{service}",user="\w+"'
    for pool in ("Eden Space", "Survivor Space", "Tenured Gen"):
        assert one(found, rf'jvm_memory_pool_committed_bytes{{{labels},pool="{pool}"}}') > 0
    assert one(found, rf'jvm_memory_max_bytes{{{labels},area="heap"}}') <= 70 << 20
    assert one(found, rf'jvm_gc_collection_seconds_count{{{labels},gc="Copy"}}') >= 0
    assert one(found, rf"jvm_threads_current{{{labels}}}") > 3
    assert one(found, rf"jvm_classes_currently_loaded{{{labels}}}") > 100
    assert one(found, rf'jvm_runtime_info{{{labels},version=".*",vendor=".*",runtime=".*VM"}}') == 1
    # of /proc
    descriptors = len(os.listdir(f"/proc/{jvm.pid}/fd"))
    assert one(found, rf"process_open_fds{{{labels}}}") == pytest.approx(descriptors, abs=2)
    assert one(found, rf"process_cpu_seconds_total{{{labels}}}") > 0
    assert one(found, rf"process_start_time_seconds{{{labels}}}") > 1.5e9


def test_doubles_and_conflicts(start_vmscope: StartVMScope) -> None:
    """Doubles stand in an integer's place by their bits; no program changes what another name means."""
    code = """
vmscope.float_gauge("t.load").set(0.5)
vmscope.gauge("t.hottest#max").labels(room="a").set(4)
vmscope.float_gauge("t.endless#max").set(float("inf"))
vmscope.counter("t.sold").add(3)
vmscope.counter("t.bought").add(3)
vmscope.counter("t.bought").add(0.25)
delay = vmscope.counter("t.delay", units=vmscope.Units.TICKS)
delay.add(3_000_000)
delay.add(0.5)
vmscope.gauge("t.sold_total").set(9)
vmscope.gauge("process_cpu_seconds").set(77)
vmscope.gauge("t.odd").labels(service="mine", text='a"b\\\\c\\n%s').set(1)
"""
    service = f"doubles{os.getpid()}"
    child = start_vmscope(f"-Dvmscope.service={service}", code=code)
    assert child.pid
    text = export(f"--vms={service}")
    found = samples(text)
    head = rf'service="{service}",user="\w+"'
    assert one(found, rf"t_load{{{head}}}") == 0.5
    assert one(found, rf't_hottest{{{head},room="a"}}') == 4
    assert re.search(r"^t_endless\{.*\} \+Inf$", text, re.MULTILINE)
    assert one(found, rf"t_sold_total{{{head}}}") == 3
    assert one(found, rf"t_bought_total{{{head}}}") == 3.25
    assert one(found, rf"t_delay_seconds_total{{{head}}}") == pytest.approx(0.0030000005)
    assert one(found, r'vmscope_export_dropped_series{reason="conflict"}') == 2
    assert 77 not in found.values()
    assert re.search(r'^t_odd\{.*,exported_service="mine",text="a\\"b\\\\c\\\\n%s"\} 1$', text, re.MULTILINE)


def test_a_vm_has_no_more_series_than_the_limit(start_vmscope: StartVMScope) -> None:
    code = "for i in range(300): vmscope.gauge(f'x.{i}').set(1)"
    service = f"endless{os.getpid()}"
    start_vmscope(f"-Dvmscope.service={service}", "-XX:PerfDataMemorySize=256k", code=code)
    found = samples(export(f"--vms={service}", "--limit=100"))
    assert len([name for name in found if name.startswith("x_")]) == 100
    assert one(found, r'vmscope_export_dropped_series{reason="limit"}') == 200


def test_the_environment_names_a_service(start_vmscope: StartVMScope) -> None:
    start_vmscope(env={**os.environ, "OTEL_RESOURCE_ATTRIBUTES": f"a=b,service.name=res{os.getpid()}"})
    start_vmscope(env={**os.environ, "OTEL_SERVICE_NAME": f"otel{os.getpid()}"})
    for name in ("res", "otel"):
        assert one_or_none(f"{name}{os.getpid()}") == 1


def test_wrong_options_are_errors() -> None:
    for wrong in ("--by=host", "--limit=0", "--service-from=nowhere", "word"):
        ended = subprocess.run([*COMMAND, "export", wrong], capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended


PROMTOOL = shutil.which("promtool") or os.environ.get("PROMTOOL")


@pytest.mark.skipif(not PROMTOOL, reason="no promtool (Debian: prometheus; PROMTOOL may name it)")
def test_promtool_finds_nothing_to_complain_of(shop: tuple[str, Path], start_jvm: StartJVM) -> None:
    start_jvm("-XX:+UseG1GC")
    get(shop[1], "/")
    ended = subprocess.run(
        [str(PROMTOOL), "check", "metrics"], input=export(), capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")
