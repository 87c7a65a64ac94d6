"""native.encode_entries: what wire.encode makes of each entry, and where the slots' values stand. On both forms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.implementations import both
from vmscope.errors import CounterNameError
from vmscope.wire import decode, encode

NAMES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40)
VALUES = st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=40)
CODES = st.integers(-128, 127)


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_prologue_without_entries(native: Any) -> None:
    assert encode.prologue() == native.EMPTY_PROLOGUE
    assert decode.prologue(native.EMPTY_PROLOGUE).num_entries == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(NAMES, VALUES, CODES, CODES), max_size=5))
def test_the_bytes_are_those_of_each_entry(native: Any, rows: list[tuple[str, int | bytes, int, int]]) -> None:
    data, bindings = native.encode_entries([(*row, None, 0) for row in rows])
    assert bindings == ()
    assert data == b"".join(
        encode.entry(name, value=value, units=units, variability=variability)
        for name, value, units, variability in rows
    )


def test_bindings_say_where_the_values_stand(native: Any) -> None:
    number, text, cells = native.CounterSlot(), native.TextSlot(20), native.HistogramSlot([1.0])
    data, bindings = native.encode_entries(
        (("n", 5, 1, 2, number, 0), ("t.x", b"abc", 5, 3, text, 0), ("c", 7, 1, 1, None, 0), ("h", 9, 4, 2, cells, 2))
    )
    assert [(slot, cell) for slot, cell, _ in bindings] == [(number, 0), (text, 0), (cells, 2)]
    offsets = [offset for *_, offset in bindings]
    assert data[offsets[0] :][:8] == (5).to_bytes(8, "little" if encode.NATIVE_BIG is False else "big")
    assert data[offsets[1] :][:21] == b"abc".ljust(21, b"\0")  # the room of the slot, not of the value
    assert data[offsets[2] :][:8] == (9).to_bytes(8, "little" if encode.NATIVE_BIG is False else "big")


@pytest.mark.parametrize("name", ["", "a b", "a\n", "\x7f", "ä", "a\0", "\ud800"])
def test_a_name_that_is_not_printable(native: Any, name: str) -> None:
    with pytest.raises(CounterNameError) as caught:
        native.encode_entries([("good", 1, 1, 1, None, 0), (name, 1, 1, 1, None, 0)])
    assert str(caught.value) == f"counter name {name!r} is not printable ASCII without blanks; choose another"


@pytest.mark.parametrize(
    ("value", "units", "variability"), [(2**63, 1, 1), (-(2**63) - 1, 1, 1), (1, 128, 1), (1, 1, -129)]
)
def test_a_number_that_its_field_cannot_hold(native: Any, value: int, units: int, variability: int) -> None:
    with pytest.raises(OverflowError):
        native.encode_entries([("a", value, units, variability, None, 0)])


@pytest.mark.parametrize("entry", [("a", 1.5, 1, 1, None, 0), ("a", "text", 1, 1, None, 0), (5, 1, 1, 1, None, 0)])
def test_what_is_not_an_entry(native: Any, entry: tuple[object, ...]) -> None:
    with pytest.raises((TypeError, AttributeError)):
        native.encode_entries([entry])
