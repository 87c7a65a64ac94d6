"""The same counter and histogram by vmscope and by each of its peers, for a process that uses one of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.updates import BOUNDS

OURS = "vmscope"
PROMETHEUS = "prometheus_client"
MULTIPROCESS = "prometheus_client multiprocess"
DROPIN = "the drop-in"
OPENTELEMETRY = "OpenTelemetry"
METERS = (OURS, PROMETHEUS, MULTIPROCESS, OPENTELEMETRY)  # those that meet the hazards
LABELS = 170  # values of the label n


class Meter:
    """`statements`: how a program writes an update of `subjects[name]`, which is `f` in it. All updates add one."""

    statements = {"inc": "f.inc()", "observe": "f.observe(0.07)"}

    def __init__(self, counter: Any, histogram: Any, value: Callable[[], float]) -> None:
        self.subjects = {"inc": counter, "observe": histogram}
        self.value = value

    def inc(self) -> None:
        self.subjects["inc"].inc()

    def labelled(self, n: int) -> None:
        self.subjects["inc"].labels(n=n % LABELS).inc()


class OpenTelemetryMeter(Meter):
    statements = {"inc": "f.add(1)", "observe": "f.record(0.07)"}

    def inc(self) -> None:
        self.subjects["inc"].add(1)

    def labelled(self, n: int) -> None:
        self.subjects["inc"].add(1, {"n": n % LABELS})


def vmscope_meter(labelled: bool) -> Meter:
    import vmscope

    vmscope.start("-XX:PerfDataMemorySize=256k")
    if vmscope.status().path is None:
        raise RuntimeError(vmscope.status().reason)
    counter = vmscope.counter("benchmark.meter")
    histogram = vmscope.histogram("benchmark.meter.size", bounds=BOUNDS)
    if not labelled:
        return Meter(counter, histogram, lambda: counter.value)
    return Meter(counter, histogram, lambda: sum(counter.labels(n=n).value for n in range(LABELS)))


def prometheus_meter(labelled: bool) -> Meter:
    """In multiprocess mode if PROMETHEUS_MULTIPROC_DIR is set."""
    prometheus = import_module("prometheus_client")
    counter = prometheus.Counter("benchmark_meter", "of a benchmark", ["n"] if labelled else [])
    histogram = prometheus.Histogram("benchmark_size", "of a benchmark", buckets=BOUNDS)
    if not labelled:
        return Meter(counter, histogram, lambda: int(counter._value.get()))
    return Meter(counter, histogram, lambda: sum(int(counter.labels(n=n)._value.get()) for n in range(LABELS)))


def opentelemetry_meter(labelled: bool) -> Meter:
    export = import_module("opentelemetry.sdk.metrics.export")
    metrics = import_module("opentelemetry.sdk.metrics")
    reader = export.InMemoryMetricReader()
    made = metrics.MeterProvider(metric_readers=[reader]).get_meter("benchmark")

    def value() -> int:
        data = reader.get_metrics_data()
        groups = data.resource_metrics if data else []
        found = [metric for group in groups for scope in group.scope_metrics for metric in scope.metrics]
        return sum(point.value for metric in found if metric.name == "meter" for point in metric.data.data_points)

    histogram = made.create_histogram("size", explicit_bucket_boundaries_advisory=BOUNDS)
    return OpenTelemetryMeter(made.create_counter("meter"), histogram, value)


def dropin_meter(labelled: bool) -> Meter:
    import vmscope
    from vmscope.integrations.prometheus import install

    vmscope.start()
    install()
    return prometheus_meter(labelled)


MAKERS = {
    DROPIN: dropin_meter,
    OURS: vmscope_meter,
    PROMETHEUS: prometheus_meter,
    MULTIPROCESS: prometheus_meter,
    OPENTELEMETRY: opentelemetry_meter,
}


def environment(name: str, folder: str) -> dict[str, str]:
    """What a process that uses this meter finds in its environment; `folder` is empty and its own."""
    return {**os.environ, **({"PROMETHEUS_MULTIPROC_DIR": folder} if name in (MULTIPROCESS, DROPIN) else {})}


def make(name: str, labelled: bool = False) -> Meter:
    """With `labelled` the counter has the label n, and only `labelled()` updates it; `value()` is of all."""
    return MAKERS[name](labelled)
