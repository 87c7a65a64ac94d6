"""No update is lost and none hangs, whoever interrupts whom: signals, collections, threads. In C and in Python."""

from __future__ import annotations

import gc
import signal
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.implementations import both

KINDS = ["counter", "fraction", "gauge", "float gauge", "histogram", "float histogram", "labels"]
SIGNALS = {"c": 100_000, "python": 5_000}


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


class Metric:
    """A slot of some kind, how to update it once, and how often that was done."""

    def __init__(self, native: Any, kind: str) -> None:
        class Parent(native.CounterSlot):  # type: ignore[misc]
            def __init__(self) -> None:
                self.children: dict[str, Any] = {}

            def _child(self, labels: dict[str, str], full: bool) -> Any:
                return self.children.setdefault(str(sorted(labels.items())), native.CounterSlot())

        self.amount = 0.5 if kind in ("fraction", "float gauge", "float histogram") else 1
        if kind == "counter":
            self.slot = native.CounterSlot()
            self.update: Callable[[], object] = self.slot.inc
        elif kind == "fraction":
            self.slot = native.CounterSlot()
            self.update = lambda: self.slot.add(0.5)
        elif kind == "float gauge":
            self.slot = native.FloatGaugeSlot()
            self.update = lambda: self.slot.add(0.5)
        elif kind == "float histogram":
            self.slot = native.HistogramSlot([0.1, 0.2, 0.5], 0)
            self.update = lambda: self.slot.observe(0.5)
        elif kind == "gauge":
            self.slot = native.GaugeSlot()
            self.update = lambda: self.slot.add(1)
        elif kind == "histogram":
            self.slot = native.HistogramSlot([0.1, 0.2, 0.5])
            self.update = lambda: self.slot.observe(0.2)
        else:
            self.slot = Parent()
            self.numbers = iter(range(1 << 62))
            self.update = lambda: self.slot.labels(number=next(self.numbers) % 500).inc()

    @property
    def count(self) -> int:
        slot = self.slot
        if hasattr(slot, "children"):
            return sum(child.value for child in slot.children.values())
        if hasattr(slot, "bounds"):
            total = (
                slot.count * 200_000_000
                if self.amount == 1
                else struct.unpack("q", struct.pack("d", slot.count / 2))[0]
            )
            assert slot.cells == (total, 0, *((slot.count, 0) if self.amount == 1 else (0, slot.count)), 0)
            return int(slot.count)
        return int(slot.value / self.amount)


@pytest.fixture(params=KINDS)
def metric(request: pytest.FixtureRequest, native: Any) -> Metric:
    return Metric(native, request.param)


@pytest.mark.timeout(110)
def test_a_signal_handler_updates_what_is_being_updated(native: Any, metric: Metric) -> None:
    handled = updates = 0
    update = metric.update

    def handler(*_: object) -> None:
        nonlocal handled
        handled += 1
        update()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for wanted in range(1, SIGNALS[native.IMPLEMENTATION] + 1):
            signal.setitimer(signal.ITIMER_REAL, 1e-5)
            while handled < wanted:
                update()
                updates += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert metric.count == updates + handled


def test_a_collection_updates_what_is_being_updated(metric: Metric) -> None:
    called = 0

    def callback(phase: str, info: dict[str, int]) -> None:
        nonlocal called
        called += 1
        metric.update()

    thresholds = gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(5)
    try:
        updates = 0
        while called < 2_000:
            garbage: list[Any] = []
            garbage.append(garbage)
            metric.update()
            updates += 1
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(callback)
    assert metric.count == updates + called


def test_a_destructor_updates_what_is_being_updated(metric: Metric) -> None:
    class Dying:
        def __del__(self) -> None:
            metric.update()

    for _ in range(100):
        dying = Dying()
        dying.cycle = dying  # type: ignore[attr-defined]
        del dying
        metric.update()
    gc.collect()
    assert metric.count == 200


def test_threads_lose_nothing(metric: Metric) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    start = threading.Barrier(8)

    def work() -> None:
        start.wait(30)
        for _ in range(10_000):
            metric.update()

    threads = [threading.Thread(target=work) for _ in range(8)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert metric.count == 80_000


def test_threads_that_ask_for_the_same_child(native: Any) -> None:
    """Each set of labels is new to all of them at once, so that making children is what they compete for."""
    metric = Metric(native, "labels")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    start = threading.Barrier(4)
    found: list[list[int]] = []

    def work() -> None:
        start.wait(30)
        children = [metric.slot.labels(a=number, b="x") for number in range(500)]
        found.append([id(child) for child in children])

    threads = [threading.Thread(target=work) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert len(found) == 4
    assert [ids for ids in found if ids != found[0]] == []
    assert len(set(found[0])) == 500


def test_a_reader_sees_only_what_was_written(native: Any) -> None:
    gauge = native.GaugeSlot()
    values = [-1, 0x0102030405060708, 1 << 62]
    gauge.set(values[0])
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for value in values:
                gauge.set(value)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {gauge.value for _ in range(200_000)} <= set(values)
    finally:
        stop.set()
        writer.join()
