"""The collector's probe against gc's own numbers, in C and in Python."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

from tests.implementations import both


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


class Node:
    def __init__(self) -> None:
        self.me = self


def test_counts_are_gc_s_own(native: Any) -> None:
    slots = tuple(tuple(native.LongSlot() for _ in range(4)) for _ in range(3))
    longest, cause, last_cause = native.GaugeSlot(), native.TextSlot(80), native.TextSlot(80)
    probe = native.GcProbe(slots, longest, cause, last_cause)
    assert (cause.value, last_cause.value) == ("No GC", "No GC")
    before = gc.get_stats()
    times, pauses, causes = [0, 0, 0], [0], set()
    started = 0

    def witness(phase: str, info: dict[str, int]) -> None:
        nonlocal started
        if phase == "start":
            causes.add((cause.value, info["generation"]))
            started = time.monotonic_ns()
        else:
            pauses.append(time.monotonic_ns() - started)
            times[info["generation"]] += pauses[-1]

    gc.callbacks.append(probe)
    gc.callbacks.append(witness)
    try:
        for generation in (0, 1, 2, 2, 0, 0):
            for _ in range(50):
                Node()
            gc.collect(generation)
    finally:
        gc.callbacks.remove(witness)
        gc.callbacks.remove(probe)
    after = gc.get_stats()
    for generation in range(3):
        count, spent, collected, uncollectable = (slot.value for slot in slots[generation])
        assert count == after[generation]["collections"] - before[generation]["collections"]
        assert collected == after[generation]["collected"] - before[generation]["collected"]
        assert uncollectable == 0
        assert abs(spent - times[generation]) <= max(200_000, times[generation] * 0.05)
    assert slots[2][0].value >= 2
    assert causes == {("generation 0", 0), ("generation 1", 1), ("generation 2", 2)}
    assert (cause.value, last_cause.value) == ("No GC", "generation 0")
    assert max(pauses) * 0.95 - 200_000 <= longest.value <= max(pauses) * 1.05 + 200_000


def test_it_never_raises_into_the_collector(native: Any) -> None:
    slots = tuple(tuple(native.LongSlot() for _ in range(4)) for _ in range(3))
    longest, cause = native.GaugeSlot(), native.TextSlot(5)
    probe = native.GcProbe(slots, longest, cause, native.TextSlot(80))
    probe("stop", {"generation": 0})  # no start before it
    probe("start", {})
    probe("stop", {})
    probe("start", {"generation": 7})
    probe("stop", {"generation": 7, "collected": 1, "uncollectable": 1})
    assert [slot.value for row in slots for slot in row if slot.value] == []
    assert (longest.value, cause.value) == (0, "No GC")


@pytest.mark.parametrize("wrong", [(), ((), (), ()), ((1, 2, 3, 4),) * 3])
def test_it_takes_three_rows_of_four_slots(native: Any, wrong: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        native.GcProbe(wrong, native.GaugeSlot(), native.TextSlot(80), native.TextSlot(80))


def test_it_takes_a_number_and_two_texts(native: Any) -> None:
    slots = tuple(tuple(native.LongSlot() for _ in range(4)) for _ in range(3))
    number, text = native.GaugeSlot(), native.TextSlot(80)
    for wrong in ((text, text, text), (number, number, text), (number, text, number), (1, text, text)):
        with pytest.raises(TypeError):
            native.GcProbe(slots, *wrong)
