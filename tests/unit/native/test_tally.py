"""Events counted by kind, in C and in Python."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.implementations import both


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


class Made:
    """A tally, and the slots that it asked for."""

    def __init__(self, native: Any, limit: int = 64, make: Callable[[str], Any] | None = None) -> None:
        self.total, self.other = native.CounterSlot(), native.CounterSlot()
        self.slots: dict[str, Any] = {}

        def new(kind: str) -> Any:
            assert type(kind) is str
            return self.slots.setdefault(kind, native.CounterSlot())

        self.tally = native.Tally(self.total, self.other, make or new, limit)

    @property
    def counts(self) -> dict[str, int]:
        return {kind: slot.value for kind, slot in self.slots.items()}


def test_kinds_up_to_the_limit(native: Any) -> None:
    made = Made(native, 2)
    for kind in "abacbcd€":
        made.tally.count(kind)
    assert made.counts == {"a": 2, "b": 2}
    assert (made.total.value, made.other.value) == (8, 4)


def test_off_and_on(native: Any) -> None:
    made = Made(native)
    assert made.tally.on
    made.tally.on = False
    made.tally.count("a")
    made.tally.audited("a", ())
    made.tally.raised(None, 0, ValueError())
    assert made.total.value == 0
    made.tally.on = True
    made.tally.count("a")
    assert made.total.value == 1


def test_an_exception_counts_where_it_is_raised(native: Any) -> None:
    made = Made(native)

    class Own(ValueError):
        pass

    def fail() -> None:
        raise Own

    made.tally.raised(None, 0, Own())
    try:
        fail()
    except Own as error:
        made.tally.raised(None, 0, error)  # two frames saw it: it was counted in the first
    try:
        raise KeyError
    except KeyError as error:
        made.tally.raised(None, 0, error)
    assert made.counts == {"Own": 1, "KeyError": 1}


@pytest.mark.parametrize(
    ("event", "family"), [("os.listdir", "os"), ("open", "open"), ("a.b.c", "a"), (".x", ""), ("", "")]
)
def test_the_family_of_an_audit_event(native: Any, event: str, family: str) -> None:
    made = Made(native)
    made.tally.audited(event, ())
    assert made.counts == {family: 1}


def test_what_is_raised_while_a_slot_is_made(native: Any) -> None:
    """What is no affair of the program's counts as other, once more each time; what is, such as Ctrl-C, goes on."""
    raises: list[type[BaseException]] = [RecursionError, MemoryError]

    def make(_: str) -> Any:
        made.tally.count("nested")
        if raises:
            raise raises.pop()
        return slot

    made, slot = Made(native, make=make), native.CounterSlot()
    for _ in range(4):
        made.tally.count("a")
    assert (made.other.value, slot.value) == (2 + 3, 2)
    raises.append(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        made.tally.count("b")
    made.tally.count("b")
    assert slot.value == 3


def test_slots_of_another_type_are_an_error(native: Any) -> None:
    slot = native.CounterSlot()
    for total, other in ((slot, 1), (None, slot)):
        with pytest.raises(TypeError, match="LongSlot"):
            native.Tally(total, other, str, 1)


def test_threads_lose_nothing(native: Any) -> None:
    made = Made(native)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [
            threading.Thread(target=lambda: [made.tally.count(f"kind{i % 10}") for i in range(2_000)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert made.total.value == 8_000
    assert made.other.value + sum(made.counts.values()) == 8_000
    assert made.other.value < 4_000  # what comes while a kind is being made; on a busy machine that may take a while
