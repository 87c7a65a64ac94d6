"""`vmscope export --otlp`: what arrives is decoded by OpenTelemetry's own package."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import pytest

from tests.conftest import StartJVM, StartVMScope
from tests.wait import wait_for as eventually

pytest.importorskip("opentelemetry.proto.metrics.v1", reason="opentelemetry-proto is in the dev group")
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

COMMAND = [sys.executable, "-m", "vmscope", "export"]
Metrics = dict[str, dict[str, Any]]


class Collector(ThreadingHTTPServer):
    """Takes what is pushed; `statuses` are the answers to the first requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses: list[int] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def decoded(self) -> list[Any]:
        found = []
        for _, headers, body in list(self.requests):
            message = ExportMetricsServiceRequest()
            message.ParseFromString(gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body)
            found.append(message)
        return found


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 200:
            self.server.requests.append((self.path, dict(self.headers), body))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as found:
        yield found
        found.shutdown()


@pytest.fixture
def push(collector: Collector) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started = []

    def start(*options: str, **variables: str) -> subprocess.Popen[str]:
        command = [*COMMAND, f"--otlp={collector.url}", "--interval=200ms", *options]
        process = subprocess.Popen(command, env={**os.environ, **variables}, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def by_resource(message: Any) -> list[tuple[dict[str, Any], Metrics]]:
    """The attributes of each resource, and its metrics by name."""
    found = []
    for each in message.resource_metrics:
        attributes = plain(each.resource.attributes)
        (scope,) = each.scope_metrics
        assert scope.scope.name == "vmscope"
        metrics: Metrics = {}
        for metric in scope.metrics:
            kind = metric.WhichOneof("data")
            data = getattr(metric, kind)
            assert metric.name not in metrics
            metrics[metric.name] = {"kind": kind, "unit": metric.unit, "points": list(data.data_points), "data": data}
        found.append((attributes, metrics))
    return found


def plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def number(point: Any) -> float:
    return float(getattr(point, point.WhichOneof("value")))


def latest(collector: Collector) -> list[tuple[dict[str, Any], Metrics]]:
    return by_resource(collector.decoded()[-1])


CODE = """
vmscope.counter("o.sold").labels(what="tea").add(5)
vmscope.gauge("o.low").set(-3)
h = vmscope.histogram("o.delay", bounds=[0.1, 1])
[h.observe(x) for x in (0.05, 0.5, 0.6, 7)]
vmscope.float_gauge("o.share").set(0.25)
"""


def test_each_vm_is_a_resource(
    collector: Collector,
    push: Callable[..., subprocess.Popen[str]],
    start_vmscope: StartVMScope,
    start_jvm: StartJVM,
) -> None:
    service = f"otlp{os.getpid()}"
    python = start_vmscope(f"-Dvmscope.service={service}", code=CODE)
    jvm = start_jvm(f"-Dvmscope.service={service}", "-XX:+UseSerialGC")
    push(f"--vms={service}", OTEL_EXPORTER_OTLP_HEADERS="x-token=a%20b")

    def has_all() -> bool:
        if not collector.requests:
            return False
        counted = [metrics["o.sold"] for _, metrics in latest(collector) if "o.sold" in metrics]
        return bool(counted) and any(number(point) == 5 for point in counted[0]["points"])

    eventually(has_all, "the counter's value")
    path, headers, _ = collector.requests[-1]
    assert path == "/v1/metrics"
    assert headers["Content-Type"] == "application/x-protobuf"
    assert headers["Content-Encoding"] == "gzip"
    assert headers["x-token"] == "a b"
    found = {attributes["process.pid"]: (attributes, metrics) for attributes, metrics in latest(collector)}
    assert set(found) == {python.pid, jvm.pid}
    assert len({attributes["service.instance.id"] for attributes, _ in found.values()}) == 2
    attributes, metrics = found[python.pid]
    assert attributes["service.name"] == service
    assert attributes["process.runtime.name"] == "CPython"
    assert attributes["host.name"]
    assert metrics["cpython.gc.collections"]["kind"] == "sum"
    assert metrics["cpython.gc.collections"]["data"].is_monotonic
    assert metrics["cpython.gc.collections"]["data"].aggregation_temporality == 2
    generations = {
        plain(point.attributes)["cpython.gc.generation"] for point in metrics["cpython.gc.collections"]["points"]
    }
    assert generations == {"0", "1", "2"}
    tea = [point for point in metrics["o.sold"]["points"] if plain(point.attributes) == {"what": "tea"}]
    assert [number(point) for point in tea] == [5]
    assert abs(tea[0].start_time_unix_nano / 1e9 - time.time()) < 600
    assert tea[0].start_time_unix_nano < tea[0].time_unix_nano
    assert number(metrics["o.low"]["points"][0]) == -3
    assert number(metrics["o.share"]["points"][0]) == 0.25
    (delay,) = metrics["o.delay"]["points"]
    assert (delay.count, list(delay.bucket_counts), list(delay.explicit_bounds)) == (4, [1, 2, 1], [0.1, 1])
    assert delay.sum == pytest.approx(8.15)
    assert metrics["o.delay"]["unit"] == "s"
    attributes, metrics = found[jvm.pid]
    assert attributes["process.runtime.name"] == "HotSpot"
    pools = {plain(point.attributes)["jvm.memory.pool.name"] for point in metrics["jvm.memory.used"]["points"]}
    assert pools >= {"Eden Space", "Tenured Gen", "Metaspace"}
    assert number(metrics["process.cpu.time"]["points"][0]) > 0


def test_deltas_add_up_to_the_total(
    collector: Collector, push: Callable[..., subprocess.Popen[str]], start_vmscope: StartVMScope
) -> None:
    service = f"delta{os.getpid()}"
    child = start_vmscope(f"-Dvmscope.service={service}", code="c = vmscope.counter('d.c'); c.add(2)")
    push(f"--vms={service}", OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE="delta")

    def points() -> list[Any]:
        found = [metrics for message in collector.decoded() for _, metrics in by_resource(message)]
        return [metrics["d.c"]["points"][0] for metrics in found if "d.c" in metrics]

    eventually(lambda: sum(map(number, points())) == 2, "the first delta")
    # Another VM changes the layout of the requests, and nothing is told again.
    other = start_vmscope(f"-Dvmscope.service={service}")
    eventually(lambda: any(each["process.pid"] == other.pid for each, _ in latest(collector)), "the other VM")
    child.ask("c.add(40)")
    eventually(lambda: sum(map(number, points())) >= 42, "the second delta")
    found = points()
    assert sum(map(number, found)) == 42
    for before, point in pairwise(found):
        assert point.start_time_unix_nano == before.time_unix_nano


def test_a_collector_that_is_busy_is_asked_again(
    collector: Collector, push: Callable[..., subprocess.Popen[str]], start_vmscope: StartVMScope
) -> None:
    start_vmscope()
    collector.statuses = [503, 429]
    process = push()
    eventually(lambda: bool(collector.requests), "the third attempt")
    assert collector.statuses == []
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert process.stderr is not None
    assert "503" in process.stderr.read()


def test_what_cannot_be_sent_is_limited(start_vmscope: StartVMScope) -> None:
    from vmscope.export.host import Host, Options
    from vmscope.export.push import Pusher, Target

    start_vmscope()
    host = Host(Options(by_pid=True))
    pusher = Pusher(host, Target("http://127.0.0.1:1"))
    for _ in range(100):
        pusher.read()
    assert len(pusher._queue) == 16
    assert pusher.lost == 84
    host.close()


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://user:word@x", "http://x:99999"])
def test_wrong_urls_are_errors(url: str) -> None:
    ended = subprocess.run([*COMMAND, f"--otlp={url}"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended
