"""`vmscope export` with workers that come and go: what a service has counted never falls, and nothing counts twice."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.integration.test_export import one, samples
from tests.wait import wait_for as eventually
from vmscope.export.host import Host, Options
from vmscope.export.text import TEXT_0
from vmscope.reader.totals import TotalsFile
from vmscope.wire.totals import Totals

PROGRAM = """\
import os, signal, sys, time
import vmscope

vmscope.start(f"-Dvmscope.service={sys.argv[1]}")
sales = vmscope.counter("shop.sales")
delay = vmscope.histogram("shop.delay", bounds=[0.1, 1])
highest = vmscope.gauge("shop.highest#max")
live = vmscope.gauge("shop.live")
last = vmscope.float_gauge("shop.last#mostrecent")
latest = vmscope.gauge("shop.latest#livemostrecent")
signal.signal(signal.SIGTERM, lambda *_: None)

def worker(number):
    for _ in range(number):
        sales.inc()
        delay.observe(0.5)
    highest.set(number)
    last.set(number)
    latest.set(number)
    vmscope.gauge("shop.lowest#livemin").set(number)
    live.set(1)
    while not vmscope.status().running or not vmscope.status().path:
        time.sleep(0.001)  # a start tells nobody that it is over
    print(number, os.getpid(), flush=True)
    signal.pause()
    sys.exit()

for line in sys.stdin:
    word, number = line.split()
    if word == "start":
        pid = os.fork()
        if pid == 0:
            worker(int(number))
    else:
        os.waitpid(int(number), 0)
        print("reaped", number, flush=True)
"""


numbers = count()


class Shop:
    """A master that starts workers: each sells so many as it is told."""

    def __init__(self, folder: Path, service: str) -> None:
        program = folder / "shop.py"
        program.write_text(PROGRAM)
        self.service = service
        self.pids: list[int] = []
        self.process = subprocess.Popen(
            [sys.executable, str(program), service], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def start(self, number: int) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"start {number}\n")
        found, pid = self.process.stdout.readline().split()
        assert int(found) == number
        self.pids.append(int(pid))
        return int(pid)

    def end(self, pid: int, by: signal.Signals) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        os.kill(pid, by)
        self.process.stdin.write(f"reap {pid}\n")
        assert self.process.stdout.readline().split() == ["reaped", str(pid)]
        self.pids.remove(pid)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path, f"totals{os.getpid()}-{next(numbers)}")
    with made.process as process:
        try:
            yield made
            for pid in tuple(made.pids):
                made.end(pid, signal.SIGTERM)
        finally:
            assert process.stdin is not None
            process.stdin.close()  # which ends it
    totals = Path(f"/tmp/hsperfdata_{pwd.getpwuid(os.geteuid()).pw_name}/services/{made.service}")
    totals.unlink(missing_ok=True)


def sales(host: Host, service: str) -> tuple[float, float]:
    found = samples(host.render(TEXT_0).decode())
    labels = rf'service="{service}",user="\w+"'
    counted = one(found, rf"shop_delay_seconds_count{{{labels}}}")
    assert one(found, rf'shop_delay_seconds_bucket{{{labels},le="0.1"}}') == 0
    return one(found, rf"shop_sales_total{{{labels}}}"), counted


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_ended_workers_go_on_counting(shop: Shop, by: signal.Signals) -> None:
    host = Host(Options(pattern=shop.service))
    try:
        labels = rf'service="{shop.service}",user="\w+"'
        pids = [shop.start(number) for number in (300, 1, 20)]
        eventually(lambda: sales(host, shop.service) == (321, 321), "all three are there")
        assert one(samples(host.render(TEXT_0).decode()), rf"shop_latest{{{labels}}}") == 20
        for pid in pids:
            shop.end(pid, by)
            found = samples(host.render(TEXT_0).decode())
            assert sales(host, shop.service) == (321, 321)
            assert one(found, rf"shop_last{{{labels}}}") == 20
        assert not [name for name in found if name.startswith("shop_lowest")], "it was theirs alone"
        shop.start(4000)
        eventually(lambda: sales(host, shop.service) == (4321, 4321), "the fourth is there")
        found = samples(host.render(TEXT_0).decode())
        assert one(found, rf"shop_highest{{{labels}}}") == 4000
        assert one(found, rf"shop_last{{{labels}}}") == 4000
        assert one(found, rf"shop_latest{{{labels}}}") == 4000
        assert one(found, rf"shop_live{{{labels}}}") == 1
        assert one(found, rf'vmscope_vms{{{labels},kind="CPython"}}') == 2
        assert one(found, r"vmscope_export_vms") == 2
    finally:
        host.close()
    fresh = Host(Options(pattern=shop.service))
    try:
        assert sales(fresh, shop.service) == (4321, 4321)
    finally:
        fresh.close()


def test_who_may_not_add_goes_on_reading(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's exporter has no right to write: the region of a killed worker counts until somebody adds it."""
    monkeypatch.setattr("vmscope.export.ended.adopt", lambda: None)
    host = Host(Options(pattern=shop.service))
    try:
        shop.start(1)
        killed = shop.start(20)
        eventually(lambda: sales(host, shop.service) == (21, 21), "both are there")
        shop.end(killed, signal.SIGKILL)
        for _ in range(3):
            assert sales(host, shop.service) == (21, 21)
        shop.start(300)  # whose start adds it
        eventually(lambda: sales(host, shop.service) == (321, 321), "the third is there", 60)
        found = samples(host.render(TEXT_0).decode())
        labels = rf'service="{shop.service}",user="\w+"'
        assert one(found, rf"shop_live{{{labels}}}") == 2
    finally:
        host.close()


def test_a_process_counts_for_itself_by_pid(shop: Shop) -> None:
    host = Host(Options(pattern=shop.service, by_pid=True))
    try:
        ended = shop.start(20)
        shop.start(1)
        shop.end(ended, signal.SIGTERM)
        found = samples(host.render(TEXT_0).decode())
        assert sum(value for name, value in found.items() if name.startswith("shop_sales_total{")) == 1
    finally:
        host.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["another user's", "a link", "a second name", "writable", "a folder of others"])
def test_totals_of_others_are_not_read(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "hsperfdata_root"
    (folder / "services").mkdir(parents=True, mode=0o700)
    folder.chmod(0o755)
    file = folder / "services" / "shop"
    kept = Totals("shop")
    kept.add([("shop.sales", 5, 1, 2)], (4711, 1, 2), 3)
    file.write_bytes(kept.encode())
    file.chmod(0o600)
    found = TotalsFile(str(folder), "shop")
    found.refresh()
    assert found.totals is not None
    assert found.totals.numbers == {"shop.sales": (5, 1, 2)}
    if what == "another user's":
        os.chown(file, 4711, 4711)
    elif what == "a link":
        file.rename(tmp_path / "other")
        file.symlink_to(tmp_path / "other")
    elif what == "a second name":
        (tmp_path / "other").hardlink_to(file)
    elif what == "writable":
        file.chmod(0o622)
    else:
        os.chown(folder / "services", 4711, 4711)
    assert found.refresh()
    assert found.totals is None
