"""docs/security.md names, for each channel, tests that are there."""

from __future__ import annotations

import ast

import pytest

from tests.security import ROOT, channels, rows
from vmscope.cli.autostart import NAME
from vmscope.environ import OPTIONS, RUN_OPTIONS

CHANNELS = {
    *(
        "Region and directory",
        "Reading regions",
        "Totals of ended processes",
        "Attach socket",
        "Attach note",
        "Signals",
        "Readings of /proc",
    ),
    *(
        "Environment",
        "`.pth` files",
        "Properties and option files",
        "Saved regions",
        "Heap dumps",
        "Flight recordings",
        "Stacks read from outside",
        "Logs and terminals",
    ),
    *("Agents and their paths", "Fork and exec", "Starting vmscope from outside", "Network", "The exporter"),
}


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / f"{path}.py").read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_channel_is_there() -> None:
    assert set(channels()) == CHANNELS


@pytest.mark.parametrize("channel", sorted(CHANNELS))
def test_a_channel_has_tests_that_exist(channel: str) -> None:
    named = channels()[channel]
    assert named
    assert [f"{path}::{name}" for path, name in named if name not in functions(path)] == []


def test_the_list_of_what_a_process_has_is_whole() -> None:
    """Each line says when, for C or for the twin; nothing is listed twice for one time."""
    found = [(row.kind, row.name, row.c, row.twin) for row in rows()]
    assert len(found) == len(set(found)) > 40
    assert [row for row in rows() if not row.c and not row.twin] == []


def test_variables_and_files_are_named() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert [name for name in (OPTIONS, RUN_OPTIONS, NAME, "vmscope_follow.pth") if f"`{name}`" not in text] == []
