"""Histograms and their timers, in C and in Python."""

from __future__ import annotations

import asyncio
import math
import struct
import threading
import time
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.implementations import both

BOUNDS = [0.001, 0.01, 0.1, 1]


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_value_counts_up_to_its_bound(native: Any) -> None:
    histogram = native.HistogramSlot(BOUNDS)
    for value in (0.0005, 0.001, 0.0011, 1, 1.5, 100, -3):
        histogram.observe(value)
    assert histogram.bounds == (0.001, 0.01, 0.1, 1.0)
    assert histogram.cells[1:] == (3, 1, 0, 1, 2)
    assert histogram.count == 7
    assert histogram.sum == pytest.approx(99.5026)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 12, 99, 100])
def test_each_bucket_of_any_number_of_bounds(native: Any, count: int) -> None:
    histogram = native.HistogramSlot(range(count))
    for number in range(count):
        histogram.observe(number - 0.5)
        histogram.observe(number)
    histogram.observe(count)
    assert histogram.cells[1:] == (2,) * count + (1,)


@pytest.mark.parametrize("count", [0, 101])
def test_the_number_of_bounds_has_limits(native: Any, count: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 100 bounds, not {count}"):
        native.HistogramSlot(range(count))


@pytest.mark.parametrize(
    ("bounds", "error", "message"),
    [
        ([1, 1], ValueError, "1 is followed by 1"),
        ([2, 3, 1], ValueError, "3 is followed by 1"),
        ([1, math.inf], ValueError, "unlike inf"),
        ([math.nan], ValueError, "unlike nan"),
        ([-math.inf, 0], ValueError, "unlike -inf"),
        (["1"], TypeError, "must be real number, not str"),
        ([None], TypeError, "must be real number, not NoneType"),
        (5, TypeError, "not iterable"),
        ([10**400], OverflowError, "too large"),
    ],
)
def test_wrong_bounds_say_what_is_wrong(native: Any, bounds: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        native.HistogramSlot(bounds)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (math.nan, ValueError),
        (math.inf, OverflowError),
        (-math.inf, OverflowError),
        (9.3e9, OverflowError),
        (10**400, OverflowError),
        ("1", TypeError),
        (None, TypeError),
        (1j, TypeError),
    ],
)
def test_a_wrong_value_is_an_error_and_changes_nothing(native: Any, value: Any, error: type[Exception]) -> None:
    histogram = native.HistogramSlot(BOUNDS)
    histogram.observe(0.5)
    with pytest.raises(error):
        histogram.observe(value)
    assert histogram.cells == (500_000_000, 0, 0, 0, 1, 0)


def test_an_exemplar_is_noted_after_its_value(native: Any) -> None:
    noted = []

    class Histogram(native.HistogramSlot):  # type: ignore[misc]
        def _note(self, exemplar: dict[str, str], amount: float, /) -> None:
            noted.append((exemplar, amount, self.count))

    histogram = Histogram(BOUNDS)
    for exemplar in ({"trace_id": "a"}, {}, None):
        histogram.observe(0.5, exemplar=exemplar)
    native.HistogramSlot(BOUNDS).observe(1, exemplar={"trace_id": "a"})
    with pytest.raises(ValueError, match="nan"):
        histogram.observe(math.nan, exemplar={"trace_id": "b"})
    for arguments, keywords in (((), {}), ((1, {}), {}), ((1,), {"exempla": {}}), ((), {"exemplar": {}})):
        with pytest.raises(TypeError):
            histogram.observe(*arguments, **keywords)
    assert noted == [({"trace_id": "a"}, 0.5, 1)]
    assert histogram.count == 3


@pytest.mark.parametrize("value", [True, 1, 1.0, Fraction(1), Decimal(1)])
def test_what_is_a_real_number_counts(native: Any, value: Any) -> None:
    histogram = native.HistogramSlot(BOUNDS)
    histogram.observe(value)
    assert histogram.cells == (1_000_000_000, 0, 0, 0, 1, 0)


def test_the_scale_is_that_of_the_sum_only(native: Any) -> None:
    histogram = native.HistogramSlot([1000], 1)
    histogram.observe(2**40)
    histogram.observe(0.5)  # halves go to the even neighbour
    histogram.observe(1.5)
    assert histogram.cells == (2**40 + 2, 2, 1)
    with pytest.raises(ValueError, match="scale"):
        native.HistogramSlot([1], -1)


def test_with_the_scale_0_the_sum_is_a_double(native: Any) -> None:
    histogram = native.HistogramSlot([1, 1000], 0)
    histogram.observe(0.5)
    histogram.observe(1e300)
    bits = struct.unpack("q", struct.pack("d", 1e300))[0]
    assert (histogram.sum, histogram.count, histogram.cells) == (1e300, 2, (bits, 1, 0, 1))
    histogram.observe(math.inf)
    assert (histogram.sum, histogram.count) == (math.inf, 3)
    histogram.observe(math.nan)  # is more than nothing and less than nothing
    assert math.isnan(histogram.sum)
    assert histogram.count == 3
    histogram._reset()
    assert (histogram.sum, histogram.cells) == (0.0, (0, 0, 0, 0))


def test_the_sum_wraps_around_at_64_bits(native: Any) -> None:
    histogram = native.HistogramSlot([1])
    for _ in range(2):
        histogram.observe(9e9)
    assert histogram.cells == (18 * 10**18 - 2**64, 0, 2)


def test_a_reset_forgets_all(native: Any) -> None:
    histogram = native.HistogramSlot(BOUNDS)
    histogram.observe(1)
    histogram._reset()
    assert histogram.cells == (0,) * 6


def test_time_as_a_context_manager(native: Any) -> None:
    histogram = native.HistogramSlot([0.0001, 0.02, 30])
    with histogram.time():
        time.sleep(0.03)  # the duration that is measured
    assert histogram.cells[1:] == (0, 0, 1, 0)
    assert 0.03 <= histogram.sum < 30


def test_what_is_raised_is_timed_and_goes_on(native: Any) -> None:
    histogram = native.HistogramSlot(BOUNDS)
    with pytest.raises(KeyboardInterrupt), histogram.time():
        raise KeyboardInterrupt
    assert histogram.count == 1


def test_one_timer_may_be_entered_again(native: Any) -> None:
    histogram = native.HistogramSlot([0.02, 30])
    timer = histogram.time()
    with timer:
        with timer, timer, timer:
            pass
        assert histogram.cells[1:] == (3, 0, 0)
        time.sleep(0.03)  # the duration that is measured
    assert histogram.cells[1:] == (3, 1, 0)


def test_one_timer_serves_many_threads(native: Any) -> None:
    histogram = native.HistogramSlot([0.04, 30])
    timer = histogram.time()
    entered = threading.Barrier(2)

    def quick() -> None:
        entered.wait(30)
        time.sleep(0.05)  # the duration that must not be measured
        with timer:
            pass

    thread = threading.Thread(target=quick)
    thread.start()
    with timer:
        entered.wait(30)
        thread.join()
    assert histogram.cells[1:] == (1, 1, 0)


def test_a_timer_that_was_not_entered_is_not_left(native: Any) -> None:
    histogram = native.HistogramSlot(BOUNDS)
    timer = histogram.time()
    with pytest.raises(RuntimeError, match="not entered"):
        timer.__exit__(None, None, None)
    assert histogram.count == 0


def test_a_timer_may_be_left_on_another_thread(native: Any) -> None:
    """A generator that a thread pool goes on with: what it raises is the program's, and nothing of ours."""
    histogram = native.HistogramSlot([0.02, 30])
    timer = histogram.time()

    def values() -> Iterator[int]:
        with timer:
            yield 1
            time.sleep(0.03)  # the duration that is measured

    generator = values()
    next(generator)
    thread = threading.Thread(target=list, args=[generator])
    thread.start()
    thread.join()
    assert histogram.cells[1:] == (0, 1, 0)

    generator = values()
    next(generator)
    failed: list[BaseException] = []

    def throw() -> None:
        try:
            generator.throw(KeyError("the program's"))  # type: ignore[attr-defined]
        except KeyError as error:
            failed.append(error)

    thread = threading.Thread(target=throw)
    thread.start()
    thread.join()
    assert [type(error) for error in failed] == [KeyError]
    assert histogram.count == 2


def test_time_as_a_decorator(native: Any) -> None:
    histogram = native.HistogramSlot(BOUNDS)

    @histogram.time()  # type: ignore[untyped-decorator]
    def factorial(number: int) -> int:
        """Doc."""
        return 1 if number < 2 else number * int(factorial(number - 1))

    assert factorial(number=5) == 120
    assert (factorial.__name__, factorial.__doc__) == ("factorial", "Doc.")
    assert histogram.count == 5

    class Shop:
        @histogram.time()  # type: ignore[untyped-decorator]
        def sell(self, price: int) -> int:
            return price

    assert Shop().sell(3) == 3
    assert histogram.count == 6


def test_a_coroutine_is_timed_until_it_returns(native: Any) -> None:
    histogram = native.HistogramSlot([0.02, 30])

    @histogram.time()  # type: ignore[untyped-decorator]
    async def answer(seconds: float) -> float:
        await asyncio.sleep(seconds)  # the duration that is measured
        return seconds

    async def both_at_once() -> None:
        assert list(await asyncio.gather(answer(0.03), answer(0.0))) == [0.03, 0.0]

    asyncio.run(both_at_once())
    assert histogram.cells[1:] == (1, 1, 0)


def test_a_generator_is_timed_until_it_ends(native: Any) -> None:
    histogram = native.HistogramSlot([0.02, 30])

    @histogram.time()  # type: ignore[untyped-decorator]
    def echo() -> Iterator[object]:
        got = yield 1
        time.sleep(0.03)  # the duration that is measured
        yield got

    generator = echo()
    assert histogram.count == 0
    assert next(generator) == 1
    assert generator.send("sent") == "sent"
    assert list(generator) == []
    assert histogram.cells[1:] == (0, 1, 0)


def test_an_asynchronous_generator_is_refused(native: Any) -> None:
    async def values() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(TypeError, match=r"values is an asynchronous generator"):
        native.HistogramSlot(BOUNDS).time()(values)
