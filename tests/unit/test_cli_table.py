"""Tables, numbers with units, and arguments, as people see and type them."""

from __future__ import annotations

import pytest

from vmscope.cli import _options, _table
from vmscope.cli._table import Column, Screen
from vmscope.cli.counters import matcher
from vmscope.errors import CommandLineError

COLUMNS = [Column("N", right=True), Column("NAME"), Column("WHAT")]


def screen(width: int | None = None, colour: bool = False) -> Screen:
    made = Screen()
    made.width, made.colour = width, colour
    return made


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert _table.render(COLUMNS, [["1", "a", "x"], ["1000", "name", ""]], screen()) == (
        "   N  NAME  WHAT\n   1  a     x\n1000  name\n"
    )
    assert _table.render(COLUMNS, [], screen()) == "N  NAME  WHAT\n"


def test_a_terminals_width_cuts_lines() -> None:
    rows = [["1", "a", "x" * 100]]
    lines = _table.render(COLUMNS, rows, screen(width=20)).splitlines()
    assert [len(line) for line in lines] == [13, 20]
    assert lines[1].endswith("x…")
    assert _table.render(COLUMNS, rows, screen()).splitlines()[1].endswith("x" * 100)


def test_colours_stand_around_lines_only() -> None:
    text = _table.render(COLUMNS, [["1", "a", "x"], ["2", "b", "y"]], screen(colour=True), dim=frozenset([1]))
    assert text.splitlines() == ["\x1b[1mN  NAME  WHAT\x1b[0m", "1  a     x", "\x1b[2m2  b     y\x1b[0m"]


def test_another_processs_text_cannot_move_the_cursor() -> None:
    assert "\x1b" not in _table.render(COLUMNS, [["\x1b", "\x07", "\x9b"]], screen())


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (999, "999B"),
        (1000, "1.0K"),
        (1024, "1.0K"),
        (102_300, "99.9K"),
        (102_400, "100K"),
        (1 << 20, "1.0M"),
        (92.5 * 2**20, "92.5M"),
        (5 << 30, "5.0G"),
        (3 << 40, "3.0T"),
        (5000 << 40, "5000T"),
    ],
)
def test_sizes(count: float, text: str) -> None:
    assert _table.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (0, "0s"),
        (0.00004, "0.0ms"),
        (0.0043, "4.3ms"),
        (0.09994, "99.9ms"),
        (0.09996, "100ms"),
        (0.421, "421ms"),
        (0.9999, "1.00s"),
        (9.87, "9.87s"),
        (12.49, "12.5s"),
        (59.96, "1m00s"),
        (185, "3m05s"),
        (3599.7, "1h00m"),
        (7620, "2h07m"),
        (86399.9, "1d00h"),
        (5 * 86400 + 3 * 3600, "5d03h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert _table.duration(seconds) == text


# -- arguments ------------------------------------------------------------------------------------

TAKES = {"--json": None, "--sort": "", "--watch": "2"}


@pytest.mark.parametrize(
    ("args", "options", "rest"),
    [
        ([], {}, []),
        (["--json", "7"], {"--json": ""}, ["7"]),
        (["7", "--sort=cpu", "8"], {"--sort": "cpu"}, ["7", "8"]),
        (["7", "--sort", "cpu", "8"], {"--sort": "cpu"}, ["7", "8"]),
        (["--watch", "7"], {"--watch": "2"}, ["7"]),
        (["--watch"], {"--watch": "2"}, []),
        (["--watch=5", "1"], {"--watch": "5"}, ["1"]),
        (["--", "--json", "-"], {}, ["--json", "-"]),
        (["-"], {}, ["-"]),
    ],
)
def test_options(args: list[str], options: dict[str, str], rest: list[str]) -> None:
    assert _options.parse("ps", args, TAKES) == (options, rest)


@pytest.mark.parametrize("args", [["-x"], ["--jsn"], ["--json=1"], ["--sort"], ["--sort="], ["--sort", ""]])
def test_options_that_it_does_not_take(args: list[str]) -> None:
    with pytest.raises(CommandLineError, match=r"^ps ") as caught:
        _options.parse("ps", args, TAKES)
    assert caught.value.hint == "vmscope ps --help shows what it takes"


def test_times_and_counts() -> None:
    assert [_options.seconds("stat", text) for text in ("2", "0.5", "2s", "500ms", "1e1", "5m", "1h")] == [
        2,
        0.5,
        2,
        0.5,
        10,
        300,
        3600,
    ]
    for text in ("", "0", "-1", "x", "1d", "m", "nan", "inf", "1e300", "ms", "1 s s"):
        with pytest.raises(CommandLineError):
            _options.seconds("stat", text)
    assert _options.count("stat", "12") == 12
    for text in ("", "0", "-1", "1.5", "x", "²", "9" * 12):
        with pytest.raises(CommandLineError):
            _options.count("stat", text)


@pytest.mark.parametrize(
    ("names", "matching"),
    [
        ([], ["sun.gc.cause", "sun.gcx", 'shop.sales{method="GET"}']),
        (["sun.gc"], ["sun.gc.cause"]),
        (["sun.gc.cause"], ["sun.gc.cause"]),
        (["sun.gc*"], ["sun.gc.cause", "sun.gcx"]),
        (["*sales*", "sun.g?x"], ["sun.gcx", 'shop.sales{method="GET"}']),
        (["SUN.gc"], []),
    ],
)
def test_counter_names(names: list[str], matching: list[str]) -> None:
    wanted = matcher(names)
    assert [name for name in ("sun.gc.cause", "sun.gcx", 'shop.sales{method="GET"}') if wanted(name)] == matching
