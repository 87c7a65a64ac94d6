"""The registry: one counter a name, and the region that shows them."""

from __future__ import annotations

import itertools
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from vmscope.counters.kinds import BYTES, EVENTS, MONOTONIC, NONE, STRING, TICKS, VARIABLE, Constant, Counter, Text
from vmscope.counters.registry import Registry
from vmscope.errors import CounterExistsError, CounterNameError
from vmscope.memory.region import Region
from vmscope.wire import floats
from vmscope.wire.decode import decode

MAKERS: dict[str, Callable[[Registry, str], Any]] = {
    "counter": lambda registry, name: registry.counter(name),
    "gauge of floats": lambda registry, name: registry.float_gauge(name),
    "gauge": lambda registry, name: registry.gauge(name),
    "histogram": lambda registry, name: registry.histogram(name, bounds=[1]),
    "text": lambda registry, name: registry.text(name),
    "constant": lambda registry, name: registry.constant(name, 1),
}


@pytest.fixture
def registry() -> Registry:
    return Registry()


def values(region: Region) -> dict[str, int | str]:
    region.mirror.refresh()
    return decode(region.mirror.image).values(region.mirror.image)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_same_name_gives_the_same_counter(registry: Registry, kind: str) -> None:
    first = MAKERS[kind](registry, "a.b")
    assert MAKERS[kind](registry, "a.b") is first
    assert registry.get("a.b") is first
    assert list(registry) == [first]


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(MAKERS, 2)))
def test_another_kind_is_an_error(registry: Registry, first: str, second: str) -> None:
    MAKERS[first](registry, "a.b")
    with pytest.raises(CounterExistsError, match=f"a.b exists as a {first} and cannot be this {second}") as caught:
        MAKERS[second](registry, "a.b")
    assert caught.value.hint


def test_other_units_or_another_size_are_an_error(registry: Registry) -> None:
    registry.counter("c", units=BYTES)
    registry.gauge("g", units=BYTES)
    registry.text("t", capacity=10)
    registry.constant("k", 5, units=BYTES)
    registry.constant("s", "text")
    wrong: list[Callable[[], object]] = [
        lambda: registry.counter("c"),
        lambda: registry.counter("c", units=EVENTS),
        lambda: registry.gauge("g"),
        lambda: registry.text("t"),
        lambda: registry.text("t", capacity=11),
        lambda: registry.constant("k", 5),
        lambda: registry.constant("k", 6, units=BYTES),
        lambda: registry.constant("s", "other"),
        lambda: registry.constant("s", 1),
    ]
    for call in wrong:
        with pytest.raises(CounterExistsError):
            call()
    assert registry.constant("k", 5, units=BYTES).value == 5
    assert registry.constant("s", "text").units == STRING


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("name", ["", " ", "a b", "a\tb", "grün", "a\n", "a\x00", "\x7f"])
def test_bad_names(registry: Registry, kind: str, name: str) -> None:
    with pytest.raises(CounterNameError, match="choose another"):
        MAKERS[kind](registry, name)
    assert list(registry) == []


@pytest.mark.parametrize("name", ["a", "A.b-c_d", "!#$%&'()*+,/:;<=>?@[\\]^`{|}~", 'shop.sales{method="GET"}', "1"])
def test_good_names(registry: Registry, name: str) -> None:
    region = Region(4096)
    registry.attach(region)
    registry.counter(name).inc()
    assert values(region) == {name: 1}


def test_kinds_in_the_region(registry: Registry) -> None:
    region = Region(4096)
    registry.attach(region)
    registry.counter("c", units=EVENTS).add(3)
    registry.gauge("g", units=BYTES).set(-4)
    registry.text("t", capacity=7).set("seven and more")
    registry.constant("k", -5)
    registry.constant("s", "ä" * 600, limit=101)
    assert values(region) == {"c": 3, "g": -4, "t": "seven a", "k": -5, "s": "ä" * 50}
    entries = {
        entry.name: (chr(entry.data_type), entry.units, entry.variability, entry.vector_length)
        for entry in decode(region.mirror.image).entries
    }
    assert entries == {
        "c": ("J", EVENTS, 2, 0),
        "g": ("J", BYTES, 3, 0),
        "t": ("B", STRING, 3, 8),
        "k": ("J", NONE, 1, 0),
        "s": ("B", STRING, 1, 101),
    }


def bits(number: float) -> int:
    return int(struct.unpack("q", struct.pack("d", number))[0])


def test_a_fraction_makes_a_second_entry(registry: Registry) -> None:
    before = registry.counter("before", units=BYTES)
    before.add(0.5)
    region = Region(4096)
    registry.attach(region)
    later = registry.counter("later").labels(a="b")
    later.add(2.0)
    assert values(region) == {"before": 0, "before#f64": bits(0.5), "later": 0, 'later{a="b"}': 2}
    later.add(0.25)
    later.add(0.25)
    before.add(1)
    shown = {"before": 1, "before#f64": bits(0.5), "later": 0, 'later{a="b"}': 2, 'later{a="b"}#f64': bits(0.5)}
    assert values(region) == shown
    assert floats.with_floats(shown) == {"before": 1.5, "later": 0, 'later{a="b"}': 2.5}
    entries = {entry.name: (entry.units, entry.variability) for entry in decode(region.mirror.image).entries}
    assert entries["before#f64"] == entries["before"] == (BYTES, MONOTONIC)
    registry.detach()
    second = Region(4096)
    registry.attach(second)
    assert values(second) == shown


def test_a_forgotten_counter_leaves_no_entry_and_its_names_are_free(registry: Registry) -> None:
    counter, delay = registry.counter("forgotten"), registry.histogram("late", bounds=[1])
    counter.add(0.5)
    registry.forget([counter, delay])
    assert list(registry.numbers()) == []
    assert registry.gauge("late.sum").value == 0
    registry.counter("forgotten").add(0.25)
    assert [(name, floats.double(bits)) for name, bits, *_ in registry.numbers() if name == "forgotten#f64"] == [
        ("forgotten#f64", 0.25)
    ]


def test_after_a_fork_a_fraction_is_shown_anew(registry: Registry) -> None:
    counter = registry.counter("c")
    counter.add(0.5)
    registry.after_fork()
    region = Region(4096)
    registry.attach(region)
    assert values(region) == {"c": 0}
    counter.add(0.25)
    assert values(region) == {"c": 0, "c#f64": bits(0.25)}


def test_a_gauge_of_floats_in_the_region(registry: Registry) -> None:
    region = Region(4096)
    registry.attach(region)
    registry.float_gauge("g", units=BYTES).set(-0.5)
    registry.float_gauge("h").labels(a="b").set(0.25)
    shown = values(region)
    assert shown == {"g#f64": bits(-0.5), "h#f64": 0, 'h{a="b"}#f64': bits(0.25)}
    assert floats.with_floats(shown) == {"g": -0.5, "h": 0.0, 'h{a="b"}': 0.25}
    entry = decode(region.mirror.image).entries[0]
    assert (entry.units, entry.variability) == (BYTES, VARIABLE)


def test_no_two_entries_have_one_name(registry: Registry) -> None:
    registry.gauge("a#f64")
    region = Region(4096)
    registry.attach(region)
    counter = registry.counter("a")
    counter.add(0.5)
    assert (values(region), counter.value) == ({"a#f64": 0, "a": 0}, 0.5)
    registry.forget([counter])
    with pytest.raises(CounterExistsError, match="a#f64 exists, as which the gauge of floats"):
        registry.float_gauge("a")
    registry.counter("b").add(0.5)
    registry.float_gauge("c")
    for taken in ("b#f64", "c#f64"):
        with pytest.raises(CounterExistsError, match=f"{taken} is an entry of the"):
            registry.gauge(taken)


@pytest.mark.parametrize("moment", range(4))
def test_a_fraction_that_comes_while_a_region_is_filled_is_shown_once(registry: Registry, moment: int) -> None:
    """As in a signal handler."""
    counters = [registry.counter(name) for name in "abc"]

    class Interrupted(Region):
        moments = iter(range(10))

        def allocate(self, entries: Any) -> bool:
            if next(self.moments) == moment:
                counters[1].add(0.5)
            return super().allocate(entries)

    region = Interrupted(4096)
    registry.attach(region)
    counters[1].add(0.5)
    names = [entry.name for entry in decode(region.mirror.image).entries]
    assert sorted(names) == ["a", "b", "b#f64", "c"]


def test_counters_count_before_a_region_and_after_it(registry: Registry) -> None:
    counter = registry.counter("c")
    counter.inc()
    region = Region(4096)
    registry.attach(region)
    assert values(region) == {"c": 1}
    counter.inc()
    assert values(region) == {"c": 2}
    registry.detach()
    counter.inc()
    registry.counter("late").inc()
    assert counter.value == 3
    assert "late" not in values(region)
    second = Region(4096)
    registry.attach(second)
    assert values(second) == {"c": 3, "late": 1}


def test_some_come_first(registry: Registry) -> None:
    for name in "abcdef":
        registry.counter(name)
    region = Region(4096)
    registry.attach(region, [registry.counter("e"), registry.counter("b")])
    assert list(values(region)) == ["e", "b", "a", "c", "d", "f"]


def test_a_histogram_is_shown_whole_or_not_at_all(registry: Registry) -> None:
    region = Region(4096)
    registry.attach(region)
    registry.histogram("delay", bounds=[0.5, 1], units=TICKS).observe(0.75)
    registry.histogram("size", bounds=[10], units=BYTES).labels(path="/").observe(11)
    assert values(region) == {
        'delay.bucket{le="0.5"}': 0,
        'delay.bucket{le="1.0"}': 1,
        'delay.bucket{le="+Inf"}': 0,
        "delay.sum": 750_000_000,
        'size.bucket{le="10.0"}': 0,
        'size.bucket{le="+Inf"}': 0,
        "size.sum": 0,
        'size.bucket{le="10.0",path="/"}': 0,
        'size.bucket{le="+Inf",path="/"}': 1,
        'size.sum{path="/"}': 11,
    }
    wide = registry.histogram("wide", bounds=range(100))
    wide.observe(3)
    assert [name for name in values(region) if name.startswith("wide")] == []
    assert wide.count == 1
    entries = {entry.name: entry for entry in decode(region.mirror.image).entries}
    assert (entries["delay.sum"].units, entries['delay.bucket{le="0.5"}'].units) == (TICKS, EVENTS)
    assert {entry.variability for entry in entries.values()} == {MONOTONIC}


def test_the_sum_of_negative_values_is_variable(registry: Registry) -> None:
    kinds = {name: variability for name, _, _, variability, _, _ in registry.histogram("h", bounds=[-1, 1]).entries()}
    assert kinds.pop("h.sum") == VARIABLE
    assert set(kinds.values()) == {MONOTONIC}


def test_forgotten_counters_can_be_made_anew(registry: Registry) -> None:
    old = registry.constant("k", 1)
    registry.counter("c")
    registry.forget([old, Constant("never", 0)])
    assert registry.get("k") is None
    assert registry.constant("k", 2).value == 2
    assert registry.get("c") is not None


def test_in_a_forked_child(registry: Registry) -> None:
    region = Region(4096)
    registry.attach(region)
    counter, gauge, text = registry.counter("c"), registry.gauge("g"), registry.text("t")
    constant = registry.constant("k", 5)
    histogram = registry.histogram("h", bounds=[1])
    counter.inc()
    counter.labels(a="b").inc()
    gauge.set(-1)
    text.set("x")
    histogram.observe(3)
    registry.after_fork()
    assert histogram.cells == (0, 0, 0)
    assert counter.labels(a="b").value == 0
    assert (counter.value, gauge.value, text.value, constant.value) == (0, 0, "x", 5)
    registry.counter("late")
    assert "late" not in values(region), "that region is the parent's"


def test_threads_that_ask_for_the_same_counters(registry: Registry) -> None:
    region = Region(1 << 20)
    registry.attach(region)
    found: list[list[Counter]] = []
    start = threading.Barrier(4)

    def ask() -> None:
        start.wait(30)
        mine = [registry.counter(f"c.{i}") for i in range(500)]
        for counter in mine:
            counter.inc()
        found.append(mine)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 4
    assert [mine for mine in found if set(map(id, mine)) != set(map(id, found[0]))] == []
    assert values(region) == {f"c.{i}": 4 for i in range(500)}


def test_how_they_show_themselves(registry: Registry) -> None:
    delay = registry.histogram("h", bounds=[1])
    delay.observe(0.5)
    shown = [registry.counter("c"), registry.gauge("g"), Text("t", 3), Constant("k", 7), Constant("s", "x"), delay]
    assert [repr(counter) for counter in shown] == [
        "<vmscope.Counter c = 0>",
        "<vmscope.Gauge g = 0>",
        "<vmscope.Text t = ''>",
        "<vmscope.Constant k = 7>",
        "<vmscope.Constant s = 'x'>",
        "<vmscope.Histogram h: 1 values, sum 0.5>",
    ]


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1])
def test_a_constant_has_64_bits(registry: Registry, value: int) -> None:
    with pytest.raises(OverflowError):
        registry.constant("k", value)
    assert registry.get("k") is None


def test_a_text_has_32_kib(registry: Registry) -> None:
    with pytest.raises(ValueError, match="capacity"):
        registry.text("t", capacity=32769)
    with pytest.raises(ValueError, match="capacity"):
        registry.text("t", capacity=-1)
    assert registry.get("t") is None
