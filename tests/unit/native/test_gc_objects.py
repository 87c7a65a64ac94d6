"""The garbage collector's objects: which are given, and that nobody's tuple is held while it is being filled."""

from __future__ import annotations

import gc
import sys
import threading
import time
import types
from typing import Any

import pytest

from tests.implementations import both


@pytest.mark.parametrize("native", both())
def test_all_but_tuples_and_frozensets(native: Any) -> None:
    kept: list[object] = [[], {1: []}, test_of_a_class, types.SimpleNamespace(), native]
    given = {id(each): each for each in native.tracked_objects(None)}
    assert [type(each) for each in given.values() if type(each) in (tuple, frozenset)] == []
    assert [each for each in kept if id(each) not in given] == []
    assert gc.isenabled()


@pytest.mark.parametrize("native", both())
def test_of_a_class(native: Any) -> None:
    given = native.tracked_objects(types.FunctionType)
    assert {type(each) for each in given} == {types.FunctionType}
    assert any(each is test_all_but_tuples_and_frozensets for each in given), given
    assert native.tracked_objects(bool) == []


@pytest.mark.parametrize("native", both()[:1])  # the twin may be interrupted
@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="other threads always run")
def test_tuples_that_are_being_filled_are_left_alone(native: Any) -> None:
    stop = threading.Event()
    failed: list[BaseException] = []
    made: list[int] = []

    def slowly(number: int) -> int:
        time.sleep(0.0002)  # others make objects in between
        return number

    def work() -> None:
        try:
            while not stop.is_set():
                made.append(len(tuple(slowly(each) for each in range(15))))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    held: list[list[object]] = []
    while len(made) < 20 and thread.is_alive():
        held[:] = [native.tracked_objects(None)]
    stop.set()
    thread.join()
    assert failed == []
    assert held
