"""The arithmetic of the benchmarks, and what they make of it; the figures themselves are `make bench`'s.

What needs processes of its own.
"""

from __future__ import annotations

import sys

import pytest

from benchmarks.measure import peak_memory, process


def test_a_process_that_fails_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="wait status 256"):
        process([sys.executable, "-c", "raise SystemExit(1)"])()


def test_the_peak_is_the_process_own_and_not_its_parents() -> None:
    ballast = bytearray(80_000_000)
    plain, large = (
        peak_memory([sys.executable, "-c", code], 1).values[0] for code in ("pass", "bytearray(50_000_000)")
    )
    assert plain < 40e6
    assert plain + 45e6 < large < len(ballast)
