"""What code alone tells: the `with` blocks around an instruction, and whose method is called."""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from vmscope.tool.model import blocking_analysis
from vmscope.tool.model.blocking_analysis import GLOBALS, FramePlan

LOCK = threading.Lock()


class Owner:
    """Locks in every kind of place."""

    shared = threading.RLock()

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.__hidden = threading.RLock()
        self.many = {"a": threading.Lock()}

    def blocks(self, tell: Callable[[], None]) -> list[Any]:
        local = threading.Lock()
        for _ in range(2):
            with self.lock, self.__hidden:
                try:
                    with local:
                        pass
                    with LOCK:
                        tell()
                finally:
                    with self.many["a"]:
                        pass
        return [self.lock, self.__hidden, LOCK]

    def cells(self, tell: Callable[[], None]) -> list[Any]:
        local = threading.Lock()

        def inner() -> list[Any]:
            with local, Owner.shared:
                tell()
            return [local, Owner.shared]

        return inner()

    def subscript(self, tell: Callable[[], None]) -> list[Any]:
        with self.many["a"]:
            tell()
        return [None]

    def handler(self, tell: Callable[[], None]) -> list[Any]:
        try:
            with LOCK:
                raise LookupError
        except LookupError:
            with self.lock:
                tell()
        return [self.lock]

    def generator(self, tell: Callable[[], None]) -> list[Any]:
        def values() -> Any:
            with self.lock:
                tell()
                yield 1

        return [*values()] and [self.lock]


def kept(frame: FrameType, slots: tuple[int, ...]) -> tuple[object, ...]:
    from vmscope.native.stacks import stack_snapshot

    return stack_snapshot.kept(frame, slots)


@pytest.mark.parametrize("name", ["blocks", "cells", "subscript", "handler", "generator"])
def test_blocks_around_an_instruction(name: str) -> None:
    found: list[list[object]] = []

    def tell() -> None:
        frame = sys._getframe(1)
        plan = FramePlan(frame.f_code, frame.f_lasti, False, False)
        values = kept(frame, plan.slots)
        found.append([block.source.find(values) if block.source else None for block in plan.blocks])

    expected = getattr(Owner(), name)(tell)
    assert found
    assert found == [expected] * len(found)


class Told:
    """Has every method that blocks, and tells by whose frame it was called."""

    def __init__(self) -> None:
        self.found: list[object] = []
        self.inner = self

    def acquire(self, *_: object, **__: object) -> bool:
        frame = sys._getframe(1)
        plan = FramePlan(frame.f_code, frame.f_lasti, True, False)
        self.found.append(plan.wait.find(kept(frame, plan.slots)) if plan.wait else None)
        return plan.waits

    get = join = acquire

    def other(self, *_: object, **__: object) -> bool:
        frame = sys._getframe(1)
        return FramePlan(frame.f_code, frame.f_lasti, True, False).waits

    def __enter__(self) -> bool:
        return self.acquire() and False

    def __exit__(self, *_: object) -> None:
        pass


TOLD = Told()


def test_calls() -> None:
    told = Told()
    found = [told.acquire()]
    found.append(told.acquire(True, timeout=sum([1, 2])))
    found.append(told.inner.inner.get(block=True))
    found.append(TOLD.acquire(1))
    for _ in range(100):  # as the interpreter has it once it is warm
        del told.found[3:]
        told.acquire()
    assert found == [True] * 4
    assert (told.found, TOLD.found) == ([told] * 4, [TOLD])
    told.acquire()
    after = told.other()
    within = told.other(told.join)
    assert not after, "what was called before is not what is called"
    assert not within


def test_what_a_with_block_enters() -> None:
    def enters() -> None:
        with TOLD:
            pass

    code = enters.__code__
    begin = min(begin for begin, *_ in blocking_analysis.entries(code))  # behind what enters
    plan = FramePlan(code, begin - 2, True, False)
    assert plan.waits
    assert plan.wait is not None
    assert (plan.wait.slot, plan.wait.attributes) == (GLOBALS, ("TOLD",))


def test_a_method_that_is_called_by_another_name() -> None:
    lock = _thread.RLock()  # of C, whatever other tests have made of threading's
    source = blocking_analysis.ValueSource(0, ())
    source.method = True
    assert source.find((lock.acquire,)) is lock
    assert source.find((lock.release,)) is None
    assert source.find((len,)) is None
    assert source.find((None,)) is None


class Slots:
    __slots__ = ("here", "missing")

    def __init__(self) -> None:
        self.here = 1


class Asks:
    """Nothing of the program runs to look at it."""

    def __init__(self) -> None:
        self.plain = 2

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)

    @property
    def computed(self) -> int:
        raise AssertionError


def test_attributes_without_running_anything() -> None:
    assert blocking_analysis.attribute(Slots(), "here") == 1
    assert blocking_analysis.attribute(Slots(), "missing") is None
    assert blocking_analysis.attribute(Asks(), "plain") == 2
    assert blocking_analysis.attribute(Asks(), "absent") is None
    assert type(blocking_analysis.attribute(Asks(), "computed")) is property
    assert blocking_analysis.attribute(Owner, "shared") is Owner.shared
    assert blocking_analysis.attribute(Owner(), "shared") is Owner.shared
    assert blocking_analysis.attribute(sys.modules[__name__], "LOCK") is LOCK
    assert blocking_analysis.attribute(None, "anything") is None
