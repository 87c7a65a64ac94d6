"""Programs that tests start, a file each: linted and typed. A folder has those of one test module."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def source(name: str) -> str:
    """A program's text, for `python -c`, for a file of the test's own, or for a part of a longer one: its first line is
    empty, so that what stands before it needs no end of line."""
    return "\n" + (FOLDER / f"{name}.py").read_text(encoding="utf-8")
