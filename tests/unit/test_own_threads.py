"""What the program sees of its garbage collector while a call of ours holds it off."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.support import PATIENCE
from vmscope import native, own_threads


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    yield
    gc.set_threshold(*before)


def in_a_call(work: Callable[[], object]) -> list[object]:
    found: list[object] = []
    own_threads.without_collection(lambda: found.append(work()))
    return found


def test_the_first_threshold_is_out_of_reach_and_the_programs_own_is_known() -> None:
    assert in_a_call(gc.get_threshold) == [(native.NO_COLLECTION, 11, 12)]
    assert in_a_call(own_threads.thresholds) == [(701, 11, 12)]
    assert gc.get_threshold() == own_threads.thresholds() == (701, 11, 12)


def test_a_call_that_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        own_threads.without_collection(lambda: 1 // 0)
    assert gc.get_threshold() == (701, 11, 12)


def test_what_the_program_sets_meanwhile_stays() -> None:
    in_a_call(lambda: gc.set_threshold(702, 13))
    assert gc.get_threshold() == own_threads.thresholds() == (702, 13, 12)
    in_a_call(lambda: gc.set_threshold(gc.get_threshold()[0], 14))
    assert gc.get_threshold() == (702, 14, 12)
    in_a_call(lambda: gc.set_threshold(0))
    assert gc.get_threshold() == (0, 14, 12)
    assert in_a_call(gc.get_threshold) == [(0, 14, 12)]


def test_what_the_program_puts_back_too_late_lasts_until_the_next_call() -> None:
    [read] = in_a_call(gc.get_threshold)
    assert isinstance(read, tuple)
    gc.set_threshold(*read)
    assert own_threads.thresholds() == (701, 11, 12)
    assert in_a_call(own_threads.thresholds) == [(701, 11, 12)]
    assert gc.get_threshold() == (701, 11, 12)


def test_two_calls_at_once() -> None:
    inside, over = threading.Event(), threading.Event()

    def first() -> None:
        inside.set()
        over.wait(PATIENCE)

    thread = threading.Thread(target=own_threads.without_collection, args=(first,))
    thread.start()
    try:
        assert inside.wait(PATIENCE)
        assert in_a_call(gc.get_threshold) == [(native.NO_COLLECTION, 11, 12)]
        assert gc.get_threshold() == (native.NO_COLLECTION, 11, 12)
    finally:
        over.set()
        thread.join(PATIENCE)
    assert gc.get_threshold() == (701, 11, 12)


def test_the_sampler_shows_the_programs_own() -> None:
    slots = {f"gc.threshold.{generation}": native.LongSlot() for generation in range(3)}
    sampler = native.Sampler(slots)
    sampler.sample()
    in_a_call(sampler.sample)
    assert [slot.value for slot in slots.values()] == [701, 11, 12]
