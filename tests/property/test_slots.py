"""In whatever order they are called: C slots and their twins hold the same values and raise the same, word for word."""

from __future__ import annotations

import math
import re
import types
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.implementations import both

NUMBERS = [
    *(0, 1, -1, 5, 2**30 - 1, 2**30, -(2**30), 2**31, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, 10**400),
    *(0.0, -0.0, 0.5, 1.5, 2.5, -3.25, 1e-9, 9.2e9, 9.3e9, 1e300, math.inf, -math.inf, math.nan),
]
arguments = st.one_of(
    st.sampled_from(NUMBERS),
    st.integers(-100, 100),
    st.integers(-(2**64), 2**64),
    st.floats(),
    st.fractions(max_denominator=100),
    st.booleans(),
    st.none(),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.just(1j),
)
label_values = st.one_of(st.text(max_size=3), st.integers(0, 3), st.booleans(), st.none(), st.sampled_from([1.0, 0.5]))
labels = st.dictionaries(st.sampled_from(["a", "b", "self", "größe", "a b"]), label_values, max_size=3)
bounds = st.one_of(
    st.lists(st.sampled_from(NUMBERS), max_size=3),
    st.lists(st.integers(-5, 5), min_size=1, max_size=12, unique=True).map(sorted),
    st.sampled_from([None, 5, "abc", ["1"], [1, None], range(100), range(101), [Fraction(1, 3), 1]]),
)


def calls(*names: str, without: tuple[str, ...] = ()) -> Any:
    """One call of a method: its name, its positional arguments, its labels."""
    one = st.tuples(st.sampled_from(names), st.tuples(arguments), st.just({}))
    bare: Any = st.tuples(st.sampled_from(without), st.just(()), st.just({}))
    wrong = st.tuples(st.sampled_from(names + without), st.lists(arguments, max_size=2).map(tuple), st.just({}))
    labelled = st.tuples(st.just("labels"), st.lists(arguments, max_size=1).map(tuple), labels)
    return st.one_of(one, bare, wrong, labelled)


PROGRAMS = {
    "CounterSlot": calls("add", "_restore", without=("inc", "_reset")),
    "FloatGaugeSlot": calls("add", "set", "_restore", without=("inc", "dec", "_reset")),
    "GaugeSlot": calls("add", "set", without=("inc", "dec", "_reset")),
    "HistogramSlot": calls("observe", without=("_reset",)),
    "TextSlot": st.tuples(st.just("set"), st.tuples(st.one_of(st.text(), arguments)), st.just({})),
}
MADE = {
    "CounterSlot": st.just(()),
    "FloatGaugeSlot": st.just(()),
    "GaugeSlot": st.just(()),
    "HistogramSlot": st.one_of(st.tuples(bounds), st.tuples(bounds, st.sampled_from([0, -1, 1, 10**9]))),
    "TextSlot": st.tuples(st.integers(-1, 12)),
}
COUNT = re.compile(r"TypeError: .*(takes|missing) .* arguments?\b")  # CPython's words differ for C and Python
PUBLIC = ("value", "capacity", "bounds", "cells", "count", "sum")

Program = tuple[tuple[Any, ...], list[tuple[str, tuple[Any, ...], dict[str, Any]]]]


def programs(kind: str) -> st.SearchStrategy[Program]:
    return st.tuples(MADE[kind], st.lists(PROGRAMS[kind], max_size=20))


def state(slot: Any) -> dict[str, Any]:
    found = {name: getattr(slot, name) for name in PUBLIC if hasattr(slot, name)}
    value = found.get("value", found.get("sum"))
    if isinstance(value, float) and math.isnan(value):
        del found["cells"]  # not a number has many bits
    return found


def outcome(call: Any, *positional: Any, **named: Any) -> tuple[Any, Any]:
    try:
        return "returned", call(*positional, **named)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        return "raised", "too many or too few arguments" if COUNT.match(message) else message


def trace(native: Any, kind: str, program: Program) -> list[Any]:
    """What each call came to, and the public state after it; children are numbered as they are made."""
    children: list[Any] = []

    def child(self: Any, labels: dict[str, str], full: bool) -> Any:
        children.append(native.CounterSlot())
        return children[-1]

    base = getattr(native, kind)
    made = types.new_class(kind, (base,), exec_body=lambda body: body.update(_child=child))
    made_arguments, steps = program
    word, slot = outcome(made, *made_arguments)
    if word == "raised":
        return [slot]
    found: list[Any] = [repr(state(slot))]
    for name, positional, named in steps:
        word, value = outcome(getattr(slot, name), *positional, **named)
        if word == "returned" and value is not None:
            value.inc()
            value = children.index(value)
        found.append((name, word, value, repr(state(slot)), [one.value for one in children]))
    return found


FORMS = [parameter.values[0] for parameter in both()]
pytestmark = pytest.mark.skipif(None in FORMS, reason="the extension is not built")


def agree(kind: str, program: Program) -> None:
    ours, twins = (trace(native, kind, program) for native in FORMS)
    assert ours == twins


@given(programs("CounterSlot"))
@example(((), [("add", (2**63 - 1,), {}), ("inc", (), {}), ("add", (True,), {}), ("labels", (), {})]))
def test_counters(program: Program) -> None:
    agree("CounterSlot", program)


@given(programs("GaugeSlot"))
@example(((), [("set", (-(2**63),), {}), ("dec", (), {}), ("add", (-(2**63),), {}), ("set", (1.0,), {})]))
def test_gauges(program: Program) -> None:
    agree("GaugeSlot", program)


@given(programs("FloatGaugeSlot"))
@example(((), [("add", (value,), {}) for value in NUMBERS]))
def test_gauges_of_floats(program: Program) -> None:
    agree("FloatGaugeSlot", program)


@given(programs("HistogramSlot"))
@example((([0, 1], 0), [("observe", (value,), {}) for value in NUMBERS]))
@example((([0, 1],), [("observe", (value,), {}) for value in NUMBERS]))
@example((([0, 1], 1), [("observe", (value,), {}) for value in NUMBERS]))
def test_histograms(program: Program) -> None:
    agree("HistogramSlot", program)


@given(programs("TextSlot"))
def test_texts(program: Program) -> None:
    agree("TextSlot", program)
