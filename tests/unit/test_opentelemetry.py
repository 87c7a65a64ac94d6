"""OpenTelemetry's metrics API, whose instruments are counters of the region."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterable, Iterator

import pytest
from opentelemetry.metrics import CallbackOptions, Observation

from tests.wait import wait_for
from vmscope.counters.registry import REGISTRY
from vmscope.integrations import asked as asking
from vmscope.integrations.opentelemetry import Meter, MeterProvider
from vmscope.wire.floats import with_floats


@pytest.fixture
def provider() -> Iterator[MeterProvider]:
    """What it makes goes, for the next test."""
    before = set(REGISTRY)
    provider = MeterProvider()
    yield provider
    provider.shutdown()
    REGISTRY.forget(set(REGISTRY) - before)


@pytest.fixture
def meter(provider: MeterProvider) -> Meter:
    return provider.get_meter("shop", "1.0")


def numbers(beginning: str = "otel.") -> dict[str, object]:
    """What the region would have of these names, except what is 0."""
    found = {name: value for name, value, *_ in REGISTRY.numbers() if name.startswith(beginning)}
    return {name: value for name, value in with_floats(found).items() if value}


def test_counters_and_their_attributes(meter: Meter) -> None:
    orders = meter.create_counter("otel.orders", "{order}")
    orders.add(2)
    orders.add(0.5)
    orders.add(-1)
    orders.add(3, {"http.method": "GET", "retry": True, "9": 1, "le": 2})
    meter.create_counter("otel.orders", "{order}").add(1)
    assert numbers() == {"otel.orders": 3.5, 'otel.orders{_9="1",_le="2",http_method="GET",retry="true"}': 3}


def test_attributes_of_any_type_are_labels(meter: Meter) -> None:
    orders = meter.create_counter("otel.orders")
    for _ in range(2):
        orders.add(1, {"sizes": [1, 2]})
    assert numbers() == {'otel.orders{sizes="[1,\\u00202]"}': 2}


def test_sets_of_attributes_are_limited(meter: Meter) -> None:
    orders = meter.create_counter("otel.orders")
    for number in range(2_100):
        orders.add(1, {"user": number})
    found = numbers()
    assert len(found) == 2_000
    assert found['otel.orders{otel_metric_overflow="true"}'] == 101


def test_gauges_go_up_and_down(meter: Meter) -> None:
    active = meter.create_up_down_counter("otel.active")
    active.add(3)
    active.add(-1.5)
    meter.create_gauge("otel.load").set(0.25, {"core": 1})
    assert numbers() == {"otel.active": 1.5, 'otel.load{core="1"}': 0.25}


@pytest.mark.parametrize(("unit", "amount"), [("s", 0.3), ("ms", 300)])
def test_times_are_histograms_in_seconds(meter: Meter, unit: str, amount: float) -> None:
    meter.create_histogram("otel.time", unit).record(amount)
    assert numbers() == {'otel.time.bucket{le="0.5"}': 1, "otel.time.sum": 300_000_000}


def test_histograms_have_the_bounds_that_are_asked_for(meter: Meter) -> None:
    meter.create_histogram("otel.size", "By", explicit_bucket_boundaries_advisory=[10, 20]).record(15)
    meter.create_histogram("otel.other").record(3, {"a": "b"})
    found = numbers()
    assert found['otel.size.bucket{le="20.0"}'] == found['otel.other.bucket{le="5.0",a="b"}'] == 1
    assert found["otel.size.sum"] == 15


def test_observable_instruments_are_asked(provider: MeterProvider, meter: Meter) -> None:
    sums = iter([10, 25, 5])

    def total(_: CallbackOptions) -> Iterable[Observation]:
        yield Observation(next(sums), {"disk": "a"})

    def waiting() -> Generator[Iterable[Observation], CallbackOptions, None]:
        for number in (7, 8):
            yield [Observation(number)]

    meter.create_observable_counter("otel.read", [total])
    meter.create_observable_gauge("otel.queue", [waiting()])
    meter.create_observable_up_down_counter("otel.open", [lambda _: [Observation(-2)]])
    provider.force_flush()
    assert numbers() == {'otel.read{disk="a"}': 10, "otel.queue": 7.0, "otel.open": -2.0}
    provider.force_flush()
    provider.force_flush()
    assert numbers() == {'otel.read{disk="a"}': 30, "otel.queue": 8.0, "otel.open": -2.0}


def test_a_thread_asks_until_the_provider_is_shut_down(
    provider: MeterProvider, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "INTERVAL", 0.01)
    asked = threading.Semaphore(0)

    def answer(_: CallbackOptions) -> Iterable[Observation]:
        asked.release()
        return [Observation(1)]

    meter.create_observable_gauge("otel.asked", [answer])
    assert [asked.acquire(timeout=30) for _ in range(3)] == [True] * 3
    provider.shutdown()
    wait_for(lambda: all(thread.name != "opentelemetry observables" for thread in threading.enumerate()))


def test_a_callback_that_fails_is_logged_and_the_others_are_asked(
    provider: MeterProvider, meter: Meter, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: CallbackOptions) -> Iterable[Observation]:
        raise OSError("no such sensor")

    meter.create_observable_gauge("otel.bad", [fail, lambda _: [Observation(4)]])
    with caplog.at_level(logging.WARNING):
        provider.force_flush()
    assert "a callback of an OpenTelemetry instrument has failed" in caplog.text
    assert numbers() == {"otel.bad": 4.0}


def test_a_name_of_another_kind_counts_nothing_and_says_so(meter: Meter, caplog: pytest.LogCaptureFixture) -> None:
    meter.create_counter("otel.kind").add(1)
    with caplog.at_level(logging.WARNING):
        meter.create_histogram("otel.kind").record(1)
        meter.create_gauge("otel.kind").set(5)
    assert "an instrument of OpenTelemetry counts nothing: otel.kind exists as a counter" in caplog.text
    assert numbers() == {"otel.kind": 1}
