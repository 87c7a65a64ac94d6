"""wire.codes and wire.text: numbers with names, and what people read."""

from __future__ import annotations

import pytest

from vmscope.wire import text
from vmscope.wire.codes import DataType, Flags, Units, Variability


def test_the_codes_are_hotspots() -> None:
    assert [(member.name, member.value) for member in Units] == [
        ("NONE", 1),
        ("BYTES", 2),
        ("TICKS", 3),
        ("EVENTS", 4),
        ("STRING", 5),
        ("HERTZ", 6),
    ]
    assert [(member.name, member.value) for member in Variability] == [
        ("CONSTANT", 1),
        ("MONOTONIC", 2),
        ("VARIABLE", 3),
    ]
    assert bytes(sorted(DataType)) == bytes(sorted(b"BZJISCDFVL["))
    assert bytes([DataType.LONG, DataType.BYTE]) == b"JB"
    assert list(Flags) == [Flags(1)]


def test_every_code_has_a_label() -> None:
    assert [text.UNITS[code] for code in Units] == [code.name.capitalize() for code in Units]
    assert [text.VARIABILITY[code] for code in Variability] == [code.name.capitalize() for code in Variability]
    assert len(text.UNITS) == len(Units) + 1
    assert len(text.VARIABILITY) == len(Variability) + 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-(2**63), "-9223372036854775808"),
        ("", '""'),
        ('a"b', '"a"b"'),
        ("a\\b\nc", '"a\\b\nc"'),
        ("é\x1b[1m", '"é\x1b[1m"'),
    ],
)
def test_values_are_shown_as_jcmd_shows_them(value: int | str, shown: str) -> None:
    assert text.value(value) == shown
    assert text.line("a.b", value) == f"a.b={shown}"


def test_names_are_sorted_by_utf_16() -> None:
    names = ["é", "a", "Z", "_", "\U0001f600", "\uff5e", "a.b", "a{"]
    assert sorted(names, key=text.order) == ["Z", "_", "a", "a.b", "a{", "é", "\U0001f600", "\uff5e"]
