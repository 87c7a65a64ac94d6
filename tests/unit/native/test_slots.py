"""Slots: the live values, in C and in Python."""

from __future__ import annotations

import math
import struct
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.implementations import both
from vmscope import native as native_package
from vmscope.counters.kinds import Counter, Gauge, Histogram, Text

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_counter_counts(native: Any) -> None:
    counter = native.CounterSlot()
    counter.inc()
    counter.add(41)
    counter.add(0)
    assert counter.value == 42


def test_a_gauge_goes_both_ways(native: Any) -> None:
    gauge = native.GaugeSlot()
    gauge.set(10)
    gauge.inc()
    gauge.dec()
    gauge.dec()
    gauge.add(-20)
    assert gauge.value == -11


@pytest.mark.parametrize(
    ("amount", "error"),
    [
        *[(-1, ValueError), (-1.0, ValueError), (-0.5, ValueError), (float("nan"), ValueError)],
        *[("1", TypeError), (None, TypeError), (1 << 63, OverflowError)],
    ],
)
def test_a_wrong_amount_is_an_error_and_changes_nothing(native: Any, amount: object, error: type[Exception]) -> None:
    counter = native.CounterSlot()
    counter.add(7)
    with pytest.raises(error):
        counter.add(amount)
    assert counter.value == 7


@pytest.mark.parametrize(("value", "error"), [(1.5, TypeError), ("x", TypeError), (-(1 << 63) - 1, OverflowError)])
def test_a_wrong_value_is_an_error_and_changes_nothing(native: Any, value: object, error: type[Exception]) -> None:
    gauge = native.GaugeSlot()
    gauge.set(7)
    for method in (gauge.set, gauge.add):
        with pytest.raises(error):
            method(value)
    assert gauge.value == 7


def bits(number: float) -> int:
    return int(struct.unpack("q", struct.pack("d", number))[0])


def test_amounts_that_are_not_whole_have_a_cell_of_their_own(native: Any) -> None:
    counter = native.CounterSlot()
    counter.add(2.0)
    counter.inc()
    assert (counter.value, type(counter.value), counter.cells) == (3, int, (3, 0))
    counter.add(0.25)
    counter.add(0.5)
    counter.add(4)
    assert (counter.value, counter.cells) == (7.75, (7, bits(0.75)))
    counter.add(2.0**70)
    counter.add(math.inf)
    assert (counter.value, counter.cells) == (math.inf, (7, bits(math.inf)))
    counter._reset()
    assert (counter.value, counter.cells) == (0, (0, 0))


def test_the_first_amount_that_is_not_whole_is_announced(native: Any) -> None:
    class Shown(native.CounterSlot):  # type: ignore[misc]
        def _show_fraction(self) -> None:
            shown.append(self.value)
            if len(shown) == 1:
                raise MemoryError

    shown: list[float] = []
    counter = Shown()
    counter.add(1)
    with pytest.raises(MemoryError):
        counter.add(0.5)
    assert counter.value == 1
    counter.add(0.5)
    counter.add(0.5)
    assert (shown, counter.value) == ([1, 1], 2.0)


def test_a_gauge_of_floats(native: Any) -> None:
    gauge = native.FloatGaugeSlot()
    assert (gauge.value, gauge.cells) == (0.0, (0,))
    gauge.set(1)
    gauge.inc()
    gauge.dec()
    gauge.dec()
    gauge.add(-0.5)
    assert (gauge.value, gauge.cells) == (-0.5, (bits(-0.5),))
    for method in (gauge.set, gauge.add):
        for wrong in ("1", None, b"1"):
            with pytest.raises(TypeError):
                method(wrong)
    assert gauge.value == -0.5
    gauge.set(math.inf)
    assert gauge.value == math.inf
    gauge._restore(2.5)
    assert gauge.value == 2.5
    gauge._reset()
    assert gauge.value == 0


def test_a_dict_of_slots_is_reset(native: Any) -> None:
    slots = {"c": native.CounterSlot(), "f": native.FloatGaugeSlot(), "h": native.HistogramSlot([1], 0)}
    slots["c"].add(1.5)
    slots["f"].set(2.5)
    slots["h"].observe(0.5)
    native.reset_slots(slots)
    assert [slots["c"].value, slots["f"].value, slots["h"].cells] == [0, 0, (0, 0, 0)]


def test_what_is_an_index_counts(native: Any) -> None:
    class Index:
        def __index__(self) -> int:
            return 5

    counter = native.CounterSlot()
    counter.add(Index())
    counter.add(True)
    assert counter.value == 6


def test_sums_wrap_around_at_64_bits(native: Any) -> None:
    gauge = native.GaugeSlot()
    gauge.set((1 << 63) - 1)
    gauge.inc()
    assert gauge.value == -(1 << 63)
    gauge.dec()
    assert gauge.value == (1 << 63) - 1


@given(amounts=st.lists(INT64, max_size=20))
@settings(deadline=None)
def test_any_sums_agree(amounts: list[int]) -> None:
    values = []
    for parameter in both():
        if parameter.values[0] is None:
            continue
        gauge = parameter.values[0].GaugeSlot()
        for amount in amounts:
            gauge.add(amount)
        values.append(gauge.value)
    assert values == [(sum(amounts) + (1 << 63)) % (1 << 64) - (1 << 63)] * len(values)


@pytest.mark.parametrize(
    ("text", "capacity", "shown"),
    [
        ("open", 64, "open"),
        ("", 64, ""),
        ("abcdef", 4, "abcd"),
        ("aé", 2, "a"),  # é has two bytes
        ("a\N{SNOWMAN}b", 4, "a\N{SNOWMAN}"),
        ("\N{GRINNING FACE}", 3, ""),
        ("ab\0cd", 64, "ab"),
        ("\udcff.txt", 64, "?.txt"),
        ("x", 0, ""),
    ],
)
def test_a_text_is_cut_between_characters(native: Any, text: str, capacity: int, shown: str) -> None:
    slot = native.TextSlot(capacity)
    slot.set(text)
    assert slot.value == shown
    assert slot.capacity == capacity


@given(text=st.text(), capacity=st.integers(0, 40))
def test_any_text_is_cut_alike(text: str, capacity: int) -> None:
    values = set()
    for parameter in both():
        if parameter.values[0] is not None:
            slot = parameter.values[0].TextSlot(capacity)
            slot.set(text)
            values.add(slot.value)
    (value,) = values
    assert text.encode("utf-8", "replace").startswith(value.encode())
    assert len(value.encode()) <= capacity


def test_a_text_takes_no_other_type(native: Any) -> None:
    slot = native.TextSlot(8)
    slot.set("kept")
    with pytest.raises(TypeError):
        slot.set(b"bytes")
    assert slot.value == "kept"


@pytest.mark.parametrize("capacity", [-1, 32_769])
def test_a_text_has_a_limit(native: Any, capacity: int) -> None:
    with pytest.raises(ValueError, match="capacity"):
        native.TextSlot(capacity)


def test_texts_are_read_whole(native: Any) -> None:
    slot = native.TextSlot(4000)
    texts = ["a" * 4000, "b" * 3999]
    slot.set(texts[0])
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for text in texts:
                slot.set(text)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(2_000):
            assert slot.value in texts
    finally:
        stop.set()
        writer.join()


def test_a_subclass_takes_arguments_of_its_own(native: Any) -> None:
    class Named(native.CounterSlot):  # type: ignore[misc]
        __slots__ = ("name",)

        def __init__(self, name: str) -> None:
            self.name = name

    counter = Named("a")
    counter.inc()
    assert (counter.name, counter.value) == ("a", 1)


def test_a_subclass_may_have_methods_of_its_own(native: Any) -> None:
    class Loud(native.CounterSlot):  # type: ignore[misc]
        def inc(self) -> None:
            self.add(10)

    class Louder(Loud):
        pass

    class Quiet(Louder):
        def add(self, amount: int) -> None:
            super().add(amount // 10)

    values = []
    for kind in (Loud, Louder, Quiet):
        counter = kind()
        counter.inc()
        values.append(counter.value)
    assert values == [10, 10, 1]


@pytest.mark.parametrize("kind", [Counter, Gauge, Histogram, Text])
def test_the_fast_call_of_a_method_in_c_is_for_objects_of_its_own_type(kind: type) -> None:
    """The interpreter takes it where an object's type is just the one that the method's descriptor names."""
    if native_package.IMPLEMENTATION != "c":
        pytest.skip("the extension is not built, or VMSCOPE_NATIVE=0")
    updates = [getattr(kind, name) for name in ("inc", "dec", "add", "set", "observe") if hasattr(kind, name)]
    assert updates
    assert [update for update in updates if update.__objclass__ is not kind] == []


def test_numbers_go_back_to_zero(native: Any) -> None:
    """In a forked child; texts, and what is no slot, stay."""
    counter, gauge, text = native.CounterSlot(), native.GaugeSlot(), native.TextSlot(8)
    histogram = native.HistogramSlot((1.0, 2.0))
    counter.add(3)
    gauge.set(-4)
    text.set("kept")
    histogram.observe(1.5)
    native.reset_slots({"a": counter, "b": gauge, "c": text, "d": histogram, "e": object()})
    assert (counter.value, gauge.value, text.value) == (0, 0, "kept")
    assert set(histogram.cells) == {0}
    with pytest.raises((TypeError, AttributeError)):
        native.reset_slots(3)
