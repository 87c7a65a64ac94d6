"""Labels: names of children, in C and in Python; and the children themselves."""

from __future__ import annotations

import enum
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.implementations import both
from vmscope.counters.kinds import BYTES, Counter, labelled
from vmscope.counters.registry import Registry
from vmscope.errors import CounterExistsError, CounterNameError


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def counter(native: Any) -> Any:
    """A slot that remembers the labels for which it was asked to make children."""

    class Parent(native.CounterSlot):  # type: ignore[misc]
        def __init__(self) -> None:
            self.made: list[tuple[dict[str, str], bool]] = []

        def _child(self, labels: dict[str, str], full: bool) -> Any:
            self.made.append((labels, full))
            return native.CounterSlot()

    return Parent()


def test_a_child_is_made_once(counter: Any) -> None:
    child = counter.labels(method="GET", code="200")
    assert counter.labels(method="GET", code="200") is child
    labels = {"method": "GET", "code": "200"}
    assert counter.labels(**labels) is child
    assert counter.labels(method="GET", code="404") is not child
    assert counter.labels(method="GET") is not child
    assert [labels for labels, _ in counter.made] == [
        {"method": "GET", "code": "200"},
        {"method": "GET", "code": "404"},
        {"method": "GET"},
    ]


def test_any_values_at_one_place_of_a_program(counter: Any) -> None:
    """Texts made anew for each call, equal to others or not, whose memory is used again and again."""
    found: dict[tuple[str, str], Any] = {}
    for number in range(5_000):
        one, two = str(number * 7 % 40), "x" * (number % 11)
        child = counter.labels(one=one, two=two)
        assert found.setdefault((one, two), child) is child
    assert len(set(found.values())) == len(found) == len(counter.made) == 440


def test_values_are_texts(counter: Any) -> None:
    class Text(str):
        def __hash__(self) -> int:
            return 1

    class Method(enum.Enum):
        GET = 1

    assert counter.labels(code=200) is counter.labels(code="200")
    assert counter.labels(code=1) is not counter.labels(code=True)
    assert counter.labels(code=1) is not counter.labels(code=1.0)
    assert counter.labels(code=Text("200")) is counter.labels(code="200")
    assert counter.labels(code=Method.GET) is counter.labels(code="Method.GET")
    assert {type(value) for labels, _ in counter.made for value in labels.values()} == {str}


def test_what_are_no_labels(counter: Any) -> None:
    for positional, named in [((), {}), (("GET",), {}), (("GET",), {"method": "GET"})]:
        with pytest.raises(TypeError):
            counter.labels(*positional, **named)
    assert counter.made == []


def test_what_its_maker_raises_is_raised(native: Any, counter: Any) -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        counter.labels(a="1", b=Unprintable())
    with pytest.raises(AttributeError, match="_child"):
        native.CounterSlot().labels(a="1")


def test_a_label_may_be_called_self(counter: Any) -> None:
    assert counter.labels(self="1") is counter.labels(self="1")


def test_no_more_than_2000_are_remembered(counter: Any) -> None:
    children = [counter.labels(number=number) for number in range(2000)]
    assert len(set(children)) == 2000
    assert [full for _, full in counter.made if full] == []
    counter.labels(number=2000)
    counter.labels(number=2000)
    assert counter.made[2000:] == [({"number": "2000"}, True)] * 2
    assert counter.labels(number=5) is children[5]


def test_children_of_each_kind() -> None:
    registry = Registry()
    counter = registry.counter("sales", units=BYTES)
    child = counter.labels(method="GET", code=200)
    assert type(child) is Counter
    assert (child.name, child.units) == ('sales{code="200",method="GET"}', BYTES)
    assert counter.labels(code=200, method="GET") is child
    assert registry.counter('sales{code="200",method="GET"}', units=BYTES) is child
    gauge = registry.gauge("depth").labels(queue="a")
    gauge.set(-3)
    assert (gauge.name, gauge.value) == ('depth{queue="a"}', -3)
    histogram = registry.histogram("delay", bounds=[1, 2]).labels(path="/")
    histogram.observe(1.5)
    assert [entry[:2] for entry in histogram.entries()] == [
        ('delay.bucket{le="1.0",path="/"}', 0),
        ('delay.bucket{le="2.0",path="/"}', 1),
        ('delay.bucket{le="+Inf",path="/"}', 0),
        ('delay.sum{path="/"}', 1_500_000_000),
    ]


def test_children_beyond_the_limit_share_one() -> None:
    registry = Registry()
    counter = registry.counter("sales")
    for number in range(2000):
        counter.labels(number=number, side="a")
    beyond = counter.labels(number=2000, side="a")
    assert beyond.name == 'sales{overflow="true"}'
    assert counter.labels(number=2001) is beyond
    assert counter.labels(side="a", number=7) is counter.labels(number=7, side="a")


@pytest.mark.parametrize("label", ["größe", "a b", "1a", "", "a-b"])
def test_a_label_is_a_name(label: str) -> None:
    counter = Registry().counter("sales")
    with pytest.raises(CounterNameError, match="label"):
        counter.labels(**{label: "x"})


def test_labels_of_labels() -> None:
    with pytest.raises(CounterNameError, match="has its labels already"):
        Registry().counter("sales").labels(a="b").labels(c="d")


def test_le_belongs_to_the_buckets() -> None:
    with pytest.raises(CounterNameError, match="buckets"):
        Registry().histogram("delay", bounds=[1]).labels(le="1")
    assert Registry().gauge("limit").labels(le="1").name == 'limit{le="1"}'


def test_the_entries_of_a_histogram_are_taken() -> None:
    registry = Registry()
    registry.counter("other.sum")
    registry.histogram("delay", bounds=[1])
    with pytest.raises(CounterExistsError, match="histogram delay"):
        registry.counter("delay.sum")
    with pytest.raises(CounterExistsError, match=r"other\.sum"):
        registry.histogram("other", bounds=[1])
    assert [counter.name for counter in registry] == ["other.sum", "delay"]
    assert registry.histogram("delay", bounds=(1.0,)) is registry.get("delay")
    with pytest.raises(CounterExistsError):
        registry.histogram("delay", bounds=[2])


@given(st.text())
def test_any_value_comes_back_from_its_name(value: str) -> None:
    name = labelled("sales", {"b": value, "a": "x"})
    assert name.isascii()
    assert name.isprintable()
    assert " " not in name
    assert name.startswith('sales{a="x",b="')
    assert json.loads(name.removeprefix('sales{a="x",b=').removesuffix("}")) == value
