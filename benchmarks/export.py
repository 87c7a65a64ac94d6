"""`vmscope export`: scrapes by HTTP, to those of prometheus_client's multiprocess mode; OTLP, to OpenTelemetry's."""

from __future__ import annotations

import http.client
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, Series, call, in_turns
from benchmarks.meters import MULTIPROCESS
from benchmarks.world import ROOT, fleet, vmscope_command
from tests.support import Child
from vmscope.export.host import Host, Options
from vmscope.export.otlp import Encoder
from vmscope.export.text import TEXT_0
from vmscope.reader import roster

PROCESSES, FEW, MANY, SERIES = 400, 100, 4000, 170
SCRAPED_EACH = 15.0  # seconds
MEMORY = 16e9  # bytes that a machine needs for MANY
PORT = re.compile(rb":(\d+)")

SERVER = """
import sys, threading
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector
registry = CollectorRegistry()
MultiProcessCollector(registry, path=sys.argv[1])
server, thread = start_http_server(0, "127.0.0.1", registry=registry)
print(f"http://127.0.0.1:{server.server_address[1]}/metrics", flush=True)
sys.stdin.read()
"""


def figures(rounds: int) -> Iterator[Figure]:
    if find_spec("prometheus_client") is None:
        raise RuntimeError("the peers are not installed: scripts/setup bench")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        _write_files(folder)
        stack.enter_context(fleet(PROCESSES, SERIES))
        theirs = stack.enter_context(_served([sys.executable, "-c", SERVER, folder]))
        by_service = stack.enter_context(_exporter("--by=service"))
        by_pid = stack.enter_context(_exporter("--by=pid"))
        found = in_turns({"theirs": call(theirs), "service": call(by_service, 5), "pid": call(by_pid)}, rounds)
        memory = Series("vmscope export", "B", [by_service.peak()])
        yield _otlp(rounds)
    name = f"a scrape of {PROCESSES} processes of {SERIES} numbers"
    yield Figure(f"{name}, by service, to {MULTIPROCESS}", found["service"], found["theirs"], 0.012)
    yield Figure(f"{name}, by pid, to {MULTIPROCESS}", found["pid"], found["theirs"], 0.1)
    yield Figure(f"peak memory of an exporter of {PROCESSES} processes", memory, None, 60e6)
    with fleet(FEW, SERIES), _exporter("--by=pid") as exporter:
        few = in_turns({"few": call(exporter, 5)}, rounds)["few"]
    yield Figure(f"a scrape of {PROCESSES} processes by pid, to one of {FEW}", found["pid"], few, 4.4)
    yield _cpu(rounds)
    yield from _many(rounds)


def _many(rounds: int) -> Iterator[Figure]:
    """Ten times as many processes, which nobody samples: 20,000 threads that wake all the time would be measured."""
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < MEMORY:
        return
    found = {}
    for size in (PROCESSES, MANY):
        with fleet(size, SERIES, 0), _exporter("--by=service") as exporter:
            found[size] = in_turns({str(size): call(exporter)}, rounds)[str(size)]
    yield Figure(f"a scrape of {MANY:,} processes by service, to one of {PROCESSES}", found[MANY], found[PROCESSES], 11)


def _write_files(folder: str) -> None:
    """What 400 workers of prometheus_client leave that have counters, gauges and histograms: three files each."""
    mmap_dict = import_module("prometheus_client.mmap_dict")
    for number in range(PROCESSES):
        for kind, first, last in (("counter", 0, 60), ("gauge_livesum", 60, 110), ("histogram", 110, SERIES)):
            file = mmap_dict.MmapedDict(str(Path(folder, f"{kind}_{number}.db")))
            for series in range(first, last):
                if kind == "histogram":
                    name = f"benchmark_{series // 10}"
                    key = mmap_dict.mmap_key(name, f"{name}_bucket", ("le",), (f"{series % 10}.0",), "of a benchmark")
                else:
                    name = f"benchmark_{series}"
                    key = mmap_dict.mmap_key(name, name, (), (), "of a benchmark")
                file.write_value(key, float(series), 0.0)
            file.close()


class Scraper:
    """Scrapes one address over one connection."""

    def __init__(self, child: Child, port: int) -> None:
        self._child = child
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __call__(self) -> bytes:
        self._connection.request("GET", "/metrics")
        return self._connection.getresponse().read()

    def peak(self) -> float:
        status = Path(f"/proc/{self._child.pid}/status").read_text(encoding="ascii")
        return float(status.partition("VmHWM:")[2].split(None, 1)[0]) * 1024


@contextmanager
def _served(command: list[str]) -> Iterator[Scraper]:
    with Child(command, cwd=ROOT) as child:
        line = child.read_until(b"/metrics\n")
        port = PORT.search(line)
        assert port is not None, line
        scraper = Scraper(child, int(port[1]))
        if scraper().count(b"\n") < SERIES:
            raise RuntimeError(f"{command[0]} does not show every series")
        yield scraper


def _exporter(by: str) -> AbstractContextManager[Scraper]:
    return _served(vmscope_command("export", "--listen=127.0.0.1:0", by))


def _otlp(rounds: int) -> Figure:
    """Encoding what all of the VMs say, to the same message by OpenTelemetry's package."""
    service = import_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    host = Host(Options(by_pid=True))
    try:
        answer = host.read()
        encoder = Encoder(answer.table, host.resources(answer.table))
        message = service.ExportMetricsServiceRequest()
        message.ParseFromString(encoder.encode(answer.values, answer.taken))

        def theirs() -> object:
            return _copied(service.ExportMetricsServiceRequest(), message).SerializeToString()

        found = in_turns(
            {"ours": call(lambda: encoder.encode(answer.values, answer.taken)), "theirs": call(theirs)}, min(rounds, 5)
        )
    finally:
        host.close()
    return Figure(f"OTLP of {encoder.points:,} points, to opentelemetry-proto", found["ours"], found["theirs"], 0.45)


def _copied(new: Any, message: Any) -> Any:
    """The same request, made point by point as an SDK does."""
    for each in message.resource_metrics:
        resource = new.resource_metrics.add()
        resource.resource.CopyFrom(each.resource)
        scope = resource.scope_metrics.add()
        for metric in each.scope_metrics[0].metrics:
            made = scope.metrics.add(name=metric.name, description=metric.description, unit=metric.unit)
            kind = metric.WhichOneof("data")
            for point in getattr(metric, kind).data_points:
                added = getattr(made, kind).data_points.add(
                    start_time_unix_nano=point.start_time_unix_nano, time_unix_nano=point.time_unix_nano
                )
                if kind != "histogram":
                    setattr(added, point.WhichOneof("value"), getattr(point, point.WhichOneof("value")))
                for attribute in point.attributes:
                    added.attributes.add(key=attribute.key).value.string_value = attribute.value.string_value
    return new


def _cpu(rounds: int) -> Figure:
    """Of one core, with all that is done where the last scrape was long ago."""
    shares = []
    before, roster.EVERY = roster.EVERY, 0.0
    try:
        with fleet(100, SERIES):
            host = Host()
            host.render(TEXT_0)
            for _ in range(rounds):
                begin = time.process_time()
                host.render(TEXT_0)
                shares.append((time.process_time() - begin) / SCRAPED_EACH * 100)
            host.close()
    finally:
        roster.EVERY = before
    return Figure("CPU of an exporter of 100 VMs, scraped each 15 s", Series("", "%", shares), None, 0.3, 0.5)
