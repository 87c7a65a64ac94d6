"""docs/security.md as data: its channels with the tests that hold them, and what a process has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "security.md"
CHANNELS, PROCESS = "The channels", "What a process has"
KINDS = {
    "Threads": "thread",
    "Signals with a handler": "signal",
    "Socket names": "socket name",
    "Shared memory": "memory",
    "Descriptors": "descriptor",
    "Files": "file",
}
TEST = re.compile(r"`((?:integration|unit|fuzz|oracle|property)/(?:\w+/)*test_\w+)::(test_\w+)`")


class Row(NamedTuple):
    """One thing that a process has, by C and by the twin: when, or, of a file, what is done to it; "" for never."""

    kind: str
    name: str
    c: str
    twin: str


def section(title: str) -> str:
    """What stands below a heading of the second level."""
    return PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def parts(title: str) -> dict[str, str]:
    """The parts of a section, by their headings."""
    _, *found = re.split(r"^### (.+)$", section(title), flags=re.MULTILINE)
    return dict(zip(found[::2], found[1::2], strict=True))


def channels() -> dict[str, list[tuple[str, str]]]:
    """The tests, by file and name, of each channel."""
    return {channel: TEST.findall(text) for channel, text in parts(CHANNELS).items()}


def rows() -> list[Row]:
    """What a process has, line by line."""
    found = []
    for title, text in parts(PROCESS).items():
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line]
        for names, c, twin, _ in lines:
            found += [Row(KINDS[title], name, c, twin) for name in re.findall("`(.+?)`", names)]
    return found
