"""Names of entries, taken apart, and what metrics are called for them."""

from __future__ import annotations

import pytest

from vmscope.counters.kinds import labelled
from vmscope.export.names import LONGEST_VALUE, Entry, legacy, snake, with_unit
from vmscope.wire.codes import Units


@pytest.mark.parametrize(
    ("name", "base", "labels", "marks"),
    [
        ("shop.sales", "shop.sales", (), set()),
        ('shop.sales{method="GET"}', "shop.sales", (("method", "GET"),), set()),
        ('a{b="c}#d",e="\\u0020\\""}', "a", (("b", "c}#d"), ("e", ' "')), set()),
        ("a#max", "a", (), {"max"}),
        ('a#f64#max{b="c"}', "a", (("b", "c"),), {"f64", "max"}),
        ('a{b="c"}#f64', "a", (("b", "c"),), {"f64"}),
        ('a{b="c",b="d"}', 'a{b="c",b="d"}', (), set()),  # twice the same label
        ('a{b="\\q"}', 'a{b="\\q"}', (), set()),
        ("a{b=c}", "a{b=c}", (), set()),
        ("a{", "a{", (), set()),
        ("}{", "}{", (), set()),
        ("", "", (), set()),
    ],
)
def test_an_entry_is_taken_apart(name: str, base: str, labels: tuple[tuple[str, str], ...], marks: set[str]) -> None:
    entry = Entry(name)
    assert (entry.base, entry.labels, set(entry.marks)) == (base, labels, marks)


@pytest.mark.parametrize("value", ["plain", "not found", '"\\', "ü", "\U0001f600", "a,b=c}"])
def test_labels_come_back_as_they_were_given(value: str) -> None:
    assert Entry(labelled("a", {"x": value, "y": "1"})).labels == (("x", value), ("y", "1"))


@pytest.mark.parametrize("value", ["\n", "\x1b[2J", "\u202e", "\ud800", "y" * 5000])
def test_labels_are_printable_and_short(value: str) -> None:
    ((_, found),) = Entry(labelled("a", {"x": value})).labels
    assert found.isprintable()
    assert 0 < len(found) <= LONGEST_VALUE


def test_metrics_names() -> None:
    assert legacy("shop.sales") == "shop_sales"
    assert legacy("9 lives") == "_9_lives"
    assert len(legacy("x" * 5000)) == 200
    assert snake("python.gil.waitTime") == "python_gil_wait_time"
    assert with_unit("a_total", Units.EVENTS, "counter") == "a"
    assert with_unit("a.seconds", Units.TICKS, "gauge") == "a.seconds"
    assert with_unit("a", Units.BYTES, "gauge") == "a_bytes"
    assert with_unit("a", 99, "gauge") == "a"
