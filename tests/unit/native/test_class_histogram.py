"""The census of objects: whichever way an object is kept, it is counted, once, with its size."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.implementations import apart


class Plain:
    def __init__(self, number: object) -> None:
        self.number = number
        self.text = f"a text of {number}"


class Slotted:
    __slots__ = ("kept",)

    def __init__(self, kept: object) -> None:
        self.kept = kept


class Number(float):
    __slots__ = ()  # so that the collector does not know it


class Boasting:
    called = False

    def __sizeof__(self) -> int:
        type(self).called = True
        return 10**9


def counted(native: Any, kind: type) -> tuple[int, int]:
    """Objects and bytes of a class."""
    rows = [row for row in native.count_objects() if row[0] is kind]
    assert len(rows) <= 1
    return rows[0][1:] if rows else (0, 0)


def in_closure(thing: object) -> Callable[[], object]:
    return lambda: thing


KEPT: dict[str, Callable[[list[Any]], object]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "values": lambda things: dict(enumerate(things)),
    "keys": lambda things: dict.fromkeys(things, 0),
    "keys of a derived class": lambda things: OrderedDict.fromkeys(things),
    "values of a derived class": lambda things: defaultdict(list, enumerate(things)),
    "attributes": lambda things: [Plain(each) for each in things],
    "slots": lambda things: [Slotted(each) for each in things],
    "cells": lambda things: [in_closure(each) for each in things],
    "class attributes": lambda things: type("Kept", (), {f"a{i}": each for i, each in enumerate(things)}),
    "nested tuples": lambda things: [((each,),) for each in things],
}


@pytest.mark.parametrize("native", apart())
def test_what_the_collector_does_not_know(native: Any) -> None:
    kinds: dict[type, str] = {}
    kept, sizes = [], {}
    for how, keep in KEPT.items():
        for base in (float, str):
            kind = type(f"{base.__name__} in {how}", (base,), {"__slots__": ()})
            things = [kind(number) for number in range(50)]
            sizes[kind] = sum(map(sys.getsizeof, things))
            kinds[kind] = how
            kept.append(keep(things))
    del things
    for _ in range(2):
        rows = {row[0]: row[1:] for row in native.count_objects() if row[0] in kinds}
        assert rows == {kind: (50, sizes[kind]) for kind in kinds}
        gc.collect()  # after which it knows fewer tuples and dictionaries
    del kept
    native.count_objects()  # before 3.13 the twin leaves a copy of its variables in a frame, until it looks again
    gc.collect()
    assert [row for row in native.count_objects() if row[0] in kinds] == []


@pytest.mark.parametrize("native", apart())
def test_objects_with_attributes(native: Any) -> None:
    kept = [Plain(number) for number in range(100)]
    assert counted(native, Plain) == (100, sum(map(sys.getsizeof, kept)))
    kept[7].__dict__["other"] = 1
    assert counted(native, Plain) == (100, sum(map(sys.getsizeof, kept)))


@pytest.mark.parametrize("native", apart())
def test_a_shared_object_counts_once(native: Any) -> None:
    one = Number(1)
    kept = [[one] * 10, {1: one}, (one,), one]
    assert counted(native, Number) == (1, sys.getsizeof(one))
    del kept


@pytest.mark.parametrize("native", apart())
def test_what_only_a_running_function_has(native: Any) -> None:
    one = Number(2)
    assert counted(native, Number) == (1, sys.getsizeof(one))
    del one
    assert counted(native, Number) == (0, 0)


@pytest.mark.parametrize("native", apart())
def test_what_only_code_and_ranges_have(native: Any) -> None:
    before = counted(native, range)[0], counted(native, int)[0]
    kept = [range(10**10 + number) for number in range(30)]
    assert counted(native, range)[0] == before[0] + 30
    assert counted(native, int)[0] >= before[1] + 30
    code = compile("x = 12345.5, 'a constant that nobody else has'", "<code>", "exec")
    floats = counted(native, float)[0]
    del code
    assert counted(native, float)[0] == floats - 1
    del kept


@pytest.mark.parametrize("native", apart())
def test_sizes_are_those_of_getsizeof(native: Any) -> None:
    gc.collect()
    gc.disable()
    try:
        rows = {id(row[0]): row for row in native.count_objects()}
        sizes: dict[int, list[int]] = {}
        for thing in gc.get_objects():
            if "__sizeof__" not in dir(type(thing)) or type(type(thing).__sizeof__).__name__ != "method_descriptor":
                continue
            sizes.setdefault(id(type(thing)), []).append(sys.getsizeof(thing))
    finally:
        gc.enable()
    # Of those that the collector always knows, and that neither this test nor the twin has made more of.
    checked = 0
    for key, found in sizes.items():
        kind, count, size = rows.get(key, (None, 0, 0))
        if kind in (tuple, dict, list, set, frozenset, type(sys._getframe())) or kind is None:
            continue
        if count == len(found):
            assert size == sum(found), kind
            checked += 1
    assert checked > len(sizes) * 0.8


@pytest.mark.parametrize("native", apart())
def test_the_classes_of_ctypess_classes(native: Any) -> None:
    """From CPython 3.13 on their `__sizeof__` is told of its class besides the object."""
    made = [type(f"Pair{number}", (ctypes.Structure,), {}) for number in range(5)]
    kind = type(made[0])
    gc.collect()
    rows = {row[0]: row for row in native.count_objects()}
    # Before 3.12 Structure itself is a static type, of which the collector does not know.
    found = {id(each): each for each in (ctypes.Structure, *gc.get_objects()) if type(each) is kind}
    assert rows[kind][1] == len(found)
    assert rows[kind][2] == sum(map(sys.getsizeof, found.values()))


@pytest.mark.parametrize("native", apart())
def test_no_code_of_the_program_runs(native: Any) -> None:
    kept = [Boasting() for _ in range(5)]
    count, size = counted(native, Boasting)
    assert count == 5
    assert 0 < size < 1000
    assert not Boasting.called
    del kept


@pytest.mark.parametrize("native", apart())
@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_stays_as_it_was(native: Any, enabled: bool) -> None:
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        collections = sum(each["collections"] for each in gc.get_stats())
        native.count_objects()
        assert gc.isenabled() is enabled
        if native.IMPLEMENTATION == "c":
            assert sum(each["collections"] for each in gc.get_stats()) == collections
    finally:
        (gc.enable if was else gc.disable)()


@pytest.mark.parametrize("native", apart())
def test_deep_nesting(native: Any) -> None:
    deep: Any = Number(3)
    for _ in range(100_000):
        deep = (deep,)
    kept = [deep]
    assert counted(native, Number)[0] == 1
    while type(deep) is tuple:
        kept[0] = deep = deep[0]
