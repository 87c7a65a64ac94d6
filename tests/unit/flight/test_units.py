"""Sizes and times in replies."""

from __future__ import annotations

import pytest

from vmscope.flight.units import size, timespan

S = 1_000_000_000


@pytest.mark.parametrize(
    ("number", "text", "short"),
    [
        (0, "0 bytes", "0"),
        (1, "1 bytes", "1"),
        (1_536, "1.5 kB", "1.5kB"),
        (271_360, "265.0 kB", "265.0kB"),
        (1_035_473, "1011.2 kB", "1011.2kB"),
        (250 << 20, "250.0 MB", "250.0MB"),
        (1 << 30, "1.0 GB", "1.0GB"),
        (3 << 50, "3072.0 TB", "3072.0TB"),
    ],
)
def test_sizes(number: int, text: str, short: str) -> None:
    assert (size(number), size(number, "")) == (text, short)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(0, "0ns"), (1, "1ns"), (1_500_000, "1500us"), (S, "1s"), (90 * S, "90s"), (3_600 * S, "1h"), (604_800 * S, "7d")],
)
def test_timespans(nanoseconds: int, text: str) -> None:
    assert timespan(nanoseconds) == text
