"""Numbers on their way into an exporter's answer: added up, picked, and written into a text. On both forms."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.implementations import both

INTEGERS = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


def fill(native: Any, template: bytes, numbers: list[int], places: list[tuple[int, int]], others: Any = None) -> bytes:
    """With an end of its own; `places` are sources, and how many digits stand behind the point."""
    sources, digits = array("q", [source for source, _ in places]), bytes(digits for _, digits in places)
    found = native.fill(template, array("q", numbers), sources, digits, others or {}, b"end", 0)
    assert native.fill(template, array("q", numbers), sources, digits, others or {}, b"end", 1) == found
    assert native.fill(template, array("q", numbers), sources, digits, others or {}, b"end", len(found)) == found
    return bytes(found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), width=st.integers(1, 20))
def test_sums_are_exact(native: Any, data: st.DataObject, width: int) -> None:
    rows = data.draw(st.lists(st.lists(INTEGERS, min_size=width, max_size=width), max_size=5))
    numbers = array("q", [number for row in rows for number in row])
    assert native.add_columns(numbers, width) == [sum(row[column] for row in rows) for column in range(width)]


def test_sums_of_the_greatest_numbers(native: Any) -> None:
    assert native.add_columns(array("q", [2**63 - 1, -(2**63)] * 1000), 2) == [1000 * (2**63 - 1), -1000 * 2**63]


def test_numbers_that_are_not_rows(native: Any) -> None:
    for width in (0, -1, 2, 5):
        with pytest.raises(ValueError, match="are not rows of"):
            native.add_columns(array("q", [1, 2, 3]), width)
    with pytest.raises(TypeError, match="8 bytes"):
        native.add_columns(array("i", [1, 2]), 1)


def test_picking(native: Any) -> None:
    numbers = array("q", [2**63 - 1, -5, 7])
    assert native.pick(numbers, array("q", [2, 0, 1, 1])) == [7, 2**63 - 1, -5, -5]
    assert native.pick(numbers, array("q")) == []
    for place in (3, -1, 2**40):
        with pytest.raises(IndexError, match=f"no number at {place}"):
            native.pick(numbers, array("q", [place]))
    with pytest.raises(TypeError, match="8 bytes"):
        native.pick(numbers, array("i", [1]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=INTEGERS)
def test_whole_numbers(native: Any, number: int) -> None:
    assert fill(native, b"a %d\n%%b %a\n", [number], [(0, 0), (0, 0)]) == b"a %d\n%%b %d\nend" % (number, number)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=INTEGERS, digits=st.integers(1, 18))
def test_a_point_is_moved(native: Any, number: int, digits: int) -> None:
    """The text reads as the quotient, which no division rounds."""
    written = fill(native, b"%d ", [number], [(0, digits)]).removesuffix(b" end").decode()
    whole, point, part = written.lstrip("-").partition(".")
    assert point
    assert part == "0" or not part.endswith("0")
    assert (int(whole) * 10 ** len(part) + int(part)) * 10 ** (digits - len(part)) == abs(number)
    assert written.startswith("-") == (number < 0)
    assert float(written) == number / 10**digits


def test_what_is_computed(native: Any) -> None:
    others = {0: 10**30, 1: 0.1, 2: math.nan, 3: math.inf, 4: -math.inf, 5: b"5 # {}", 6: -3, 7: 1e300, 8: True}
    found = fill(native, b"%d %a %a %a %a %b %d %a %d\n", [9], [*[(-1, 0)] * 5, (0, 0), *[(-1, 0)] * 3], others)
    assert found == b"1000000000000000000000000000000 0.1 NaN +Inf -Inf 5 # {} -3 1e+300 1\nend"


@pytest.mark.parametrize(
    ("template", "places", "others", "error"),
    [
        (b"%d %d", [(0, 0)], {}, ValueError),
        (b"%d", [(0, 0), (0, 0)], {}, ValueError),
        (b"%d", [(1, 0)], {}, ValueError),
        (b"%d", [(0, 19)], {}, ValueError),
        (b"%s", [(0, 0)], {}, ValueError),
        (b"%d %", [(0, 0)], {}, ValueError),
        (b"%d", [(-1, 0)], {}, KeyError),
        (b"%d", [(-1, 0)], {0: "text"}, TypeError),
    ],
)
def test_a_template_that_does_not_fit(
    native: Any, template: bytes, places: list[tuple[int, int]], others: dict[int, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        fill(native, template, [5], places, others)
