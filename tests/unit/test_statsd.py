"""What clients of statsd and datadog count, kept in the region."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from datadog.dogstatsd import base as of_datadog
from datadog.dogstatsd.base import DogStatsd
from statsd import StatsClient
from statsd.client import base as of_statsd

import vmscope
from vmscope.counters.registry import REGISTRY
from vmscope.instruments import statsd as instrument
from vmscope.integrations import statsd
from vmscope.wire.floats import with_floats


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As after install(); a datagram would be an error. What was made goes, for the next test."""

    def refuse(*_: object) -> None:
        raise AssertionError("a datagram is sent")

    monkeypatch.setattr(StatsClient, "_send", refuse)
    monkeypatch.setattr(DogStatsd, "_send_to_server", refuse)
    monkeypatch.setattr(statsd, "METRICS", statsd.Metrics())
    before = set(REGISTRY)
    undo = [instrument.attach(module) for module in (of_statsd, of_datadog)]
    yield
    assert [each() for each in undo] == [True, True]
    REGISTRY.forget(set(REGISTRY) - before)


def numbers(beginning: str) -> dict[str, object]:
    """What the region would have of these names, except what is 0."""
    found = {name: value for name, value, *_ in REGISTRY.numbers() if name.startswith(beginning)}
    return {name: value for name, value in with_floats(found).items() if value}


@pytest.fixture
def stats() -> Iterator[StatsClient]:
    client = StatsClient(prefix="test.shop")
    yield client
    client.close()


def dropped() -> int:
    return int(REGISTRY.counter(statsd.DROPPED, units=vmscope.Units.EVENTS).value)


def test_counters_of_statsd_are_exact_whatever_the_rate(stats: StatsClient) -> None:
    for _ in range(100):
        stats.incr("orders", rate=0.01)
    stats.incr("orders", 0.5)
    stats.decr("orders", 30)
    assert numbers("test.shop") == {"test.shop.orders": 100.5, "test.shop.orders.decrements": 30}


def test_gauges_of_statsd_are_set_and_changed(stats: StatsClient) -> None:
    stats.gauge("load", 2.5)
    stats.gauge("load", -1, delta=True)
    stats.gauge("debt", -3)
    assert numbers("test.shop") == {"test.shop.load": 1.5, "test.shop.debt": -3.0}


def test_times_of_statsd_are_histograms_in_seconds(stats: StatsClient) -> None:
    stats.timing("reply", 320)
    with stats.timer("reply"):
        pass
    with stats.pipeline() as pipe:
        pipe.timing("reply", 2)
    found = REGISTRY.get("test.shop.reply")
    assert isinstance(found, vmscope.Histogram)
    assert found.count == 3
    assert found.sum == pytest.approx(0.322, abs=0.1)
    assert found.bounds == statsd.SECONDS


def test_tags_of_datadog_are_labels() -> None:
    stats = DogStatsd(namespace="test", constant_tags=["env:prod"], disable_aggregation=True)
    stats.increment("hits", 2, tags=["code:200", "beta", "9lives:x", "le:1", "odd name:y z"])
    labels = '_9lives="x",_le="1",beta="true",code="200",env="prod",odd_name="y\\u0020z"'
    assert numbers("test.hits") == {f"test.hits{{{labels}}}": 2}


def test_distributions_of_datadog_have_sums_of_any_size() -> None:
    stats = DogStatsd(disable_aggregation=True)
    stats.histogram("test.size", 1e15)
    stats.distribution("test.size", 0.25)
    stats.distribution("test.size", 3, tags=["a:b"])
    assert numbers("test.size.sum") == {"test.size.sum": 1e15 + 0.25, 'test.size.sum{a="b"}': 3.0}
    assert numbers("test.size.bucket")['test.size.bucket{le="+Inf"}'] == 1


def test_what_datadog_aggregates_comes_with_its_flush() -> None:
    stats = DogStatsd(disable_background_sender=True)
    stats.increment("test.later", 3)
    stats.flush_aggregated_metrics()
    assert numbers("test.later") == {"test.later": 3}


def test_what_cannot_be_kept_is_counted(stats: StatsClient) -> None:
    before = dropped()
    stats.set("users", "somebody")
    stats.incr("kind")
    stats.timing("kind", 1)  # another kind of counter has that name
    stats.incr("count", "many")
    stats.incr("a name{of=odd}\n")
    assert dropped() - before == 3
    assert numbers("test.shop") == {"test.shop.kind": 1, "test.shop.a_name_of=odd__": 1}


def test_series_are_limited(stats: StatsClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statsd, "SERIES", 10)
    before = dropped()
    for number in range(30):
        stats.incr(f"user.{number}")
    assert len(numbers("test.shop")) == 10
    assert dropped() - before == 20


def test_a_disabled_client_counts_nothing() -> None:
    stats = DogStatsd(disable_aggregation=True)
    stats.disable_buffering = True
    stats._enabled = False
    stats.increment("test.disabled")
    assert numbers("test.disabled") == {}
