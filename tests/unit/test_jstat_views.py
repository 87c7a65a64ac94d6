"""Views: headers, cells, expressions, the language. What JDK 17 makes of them is in tests/oracle."""

from __future__ import annotations

import pytest

from tests import corpus
from vmscope.cli._old_names import with_new_names
from vmscope.cli._standard_views import OPTIONS, UNSUPPORTED_OPTIONS, standard_view, uptime_column
from vmscope.cli._view_language import UnarySignError, ViewSyntaxError, all_views, find_view
from vmscope.cli._views import NAN, TextOperandError, View, ViewColumn, aligned, divide, evaluate, number
from vmscope.wire import decode

GCUTIL = """\
  S0     S1     E      O      M     CCS    YGC     YGCT     FGC    FGCT     CGC    CGCT       GCT   
  0.00  68.77  70.37  16.34  37.67   3.81     14     0.008     1     0.002     0     0.000     0.010"""  # noqa: W291


def shown(option: str, region: str) -> str:
    view = standard_view(option, unsupported=True)
    assert view is not None
    return f"{view.header()}\n{view.row(decode.values(corpus.load(region)))}"


def test_a_standard_view() -> None:
    assert shown("gcutil", "17.0.15-debian-g1") == GCUTIL


@pytest.mark.parametrize("option", [*OPTIONS, *UNSUPPORTED_OPTIONS, "timestamp"])
def test_a_vm_without_counters_has_dashes(option: str) -> None:
    view = standard_view(option, unsupported=True)
    assert view is not None
    cells = view.row({}).split()
    assert set(cells) == {"-"}
    assert len(cells) == len(view.columns)


def test_what_is_no_standard_view() -> None:
    assert standard_view("gcutils") is None
    assert standard_view("") is None
    assert standard_view("classload") is None


def test_total_collection_time_counts_absent_collectors_as_none() -> None:
    view = standard_view("gc")
    assert view is not None
    values = {"sun.gc.collector.0.time": 1_500_000_000, "sun.os.hrt.frequency": 1_000_000_000}
    assert view.row(values).split()[-1] == "1.500"
    assert view.row(values).split()[-2] == "-"


def test_uptime_by_the_machines_clock() -> None:
    column = uptime_column()
    assert column.cell({"jstat.timestamp": 5_250, "sun.rt.createVmBeginTime": 1_000}) == "            4.2"
    assert column.cell({"jstat.timestamp": 5_250}).strip() == "-"


@pytest.mark.parametrize(
    ("header", "width", "heading", "cell"),
    [
        ("^x^", 5, "  x  ", "    7"),
        ("^x^", 4, " x  ", "   7"),
        ("^x", 3, "x  ", "  7"),
        ("x^", 3, "  x", "  7"),
        ("x", 3, "x", "  7"),
        ("x^y", 3, "x^y", "  7"),
        ("^wide^", 2, "wide", "   7"),
        ("^^", 1, "   ", "  7"),
        ("", 2, "", " 7"),
    ],
)
def test_marks_of_a_header(header: str, width: int, heading: str, cell: str) -> None:
    column = ViewColumn(header, 7.0, "0" if header != "^^" else "000", width=width, align="right")
    assert column.heading == heading
    assert column.cell({}).replace("007", "  7") == cell


@pytest.mark.parametrize(
    ("text", "width", "align", "result"),
    [
        ("ab", 2, "center", "ab"),
        ("ab", 3, "center", "ab "),
        ("ab", 5, "center", " ab  "),
        ("ab", 4, "left", "ab  "),
        ("ab", 4, "right", "  ab"),
        ("abc", 1, "right", "abc"),
    ],
)
def test_alignment(text: str, width: int, align: str, result: str) -> None:
    assert aligned(text, width, align) == result


def test_evaluation() -> None:
    values: dict[str, int | str] = {"a": 6, "b": 4, "t": "text", "zero": 0}
    assert evaluate(("-", ("*", "a", "b"), 1.0), values, NAN) == 23
    assert evaluate(("/", "a", "b"), values, NAN) == 1.5
    assert evaluate("t", values, NAN) == "text"
    assert evaluate(("+", "nowhere", "a"), values, 0.0) == 6
    for expression in (("/", "a", "zero"), ("+", "nowhere", "a"), "nowhere"):
        value = evaluate(expression, values, NAN)
        assert value != value
    with pytest.raises(TextOperandError, match=r"text in arithmetic: 'text' \+ 6.0"):
        evaluate(("+", "t", "a"), values, NAN)


def test_division_by_the_scales_that_are_zero() -> None:
    assert divide(5.0, 0.0) == float("inf")
    assert divide(-5.0, 0.0) == float("-inf")
    assert divide(0.0, 0.0) != divide(0.0, 0.0)


@pytest.mark.parametrize(
    ("value", "pattern", "text"),
    [
        (0.5, "0", "0"),
        (1.5, "0", "2"),
        (2.5, "0", "2"),
        (0.25, "0.0", "0.2"),
        (-0.2, "0", "-0"),
        (float("nan"), "0.00", "-"),
        (float("inf"), "0.00", "∞"),
        (0.0005, "0.000", "0.000"),  # so it is in Java, though the double lies above the tie
        (37657205641425.59, "0.000", "37657205641425.590"),
        (float(2**60), "0", "1152921504606846980"),
        (9.223372036854775807e18, "0.0", "9223372036854776000.0"),
    ],
)
def test_numbers(value: float, pattern: str, text: str) -> None:
    assert number(value, pattern) == text


def test_old_names() -> None:
    region = next(name for name in corpus.names() if name.startswith("made-v1"))
    old = decode.values(corpus.load(region))
    new = with_new_names(old)
    assert "sun.gc.collector.0.invocations" not in old
    assert new["sun.gc.collector.0.invocations"] == old["hotspot.gc.collector.0.invocations"]
    assert old.items() <= new.items()
    modern = decode.values(corpus.load("17.0.15-debian-g1"))
    assert with_new_names(modern) is modern


def test_a_view_in_the_language() -> None:
    text = """
        option other { column { header "x" data 1 } }
        option mine {
          column { header "^A^" data (a + b) / 2 width 8 align right format "0.00" scale K required true } // comment
          column { header "^B" data name /* another
            comment */ align left width 3 }
        }
        option mine { }
    """
    view = find_view(text, "mine")
    assert view is not None
    assert view.header() == "   A     B  "
    assert view.row({"a": 1024, "b": 3072, "name": "it"}) == "    2.00 it "
    assert view.names() == {"a", "b", "name"}
    assert [view.name for view in all_views(text)] == ["other", "mine", "mine"]
    assert find_view(text, "absent") is None
    assert find_view("", "mine") is None


def test_errors_of_the_language() -> None:
    with pytest.raises(ViewSyntaxError, match=r"^Syntax error at line 2: Expected CHARACTER '\}', Found \"EOF\"$"):
        find_view('option x {\n column { header "x" data 1 }', "x")
    with pytest.raises(ViewSyntaxError, match=r"^Missing header statement in column 1$"):
        find_view('option x { column { header "x" data 1 } column { data 1 } }', "x")
    with pytest.raises(UnarySignError, match="line 1"):
        find_view("option x { column { data -1 } }", "x")


def test_views_are_found_without_a_look_at_those_before() -> None:
    view = find_view('option broken { column { data } } option good { column { header "x" data 1 } }', "good")
    assert isinstance(view, View)
    assert view.row({}) == "1"
