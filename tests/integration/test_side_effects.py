"""docs/side-effects.md, compared with what a process shows before, during and after."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.side_effects import MODULES
from tests.support import PATIENCE
from vmscope import native

PAGE = (Path(__file__).parents[2] / "docs" / "side-effects.md").read_text(encoding="utf-8")
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    native.IMPLEMENTATION != "c" or sys.version_info[:2] != (3, 13),
    reason="the page names what stands so in CPython 3.13, with the extension",
)


def rows(title: str) -> list[list[str]]:
    """The cells of the rows of a section's table."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(cell: str) -> list[str]:
    return re.findall("`(.+?)`", cell)


def printed(*arguments: str) -> str:
    for name in MODULES.split():
        pytest.importorskip(name, reason="a module that an instrument attaches to")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VMSCOPE")}
    run = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def looked(*arguments: str) -> tuple[list[str], list[str]]:
    """What differs during, and after: of a class that another stands for, the class alone."""
    found = json.loads(printed("-m", "tests.side_effects", *arguments))
    during, after = ([each for each in names if each.rpartition(".")[0] not in names] for names in found.values())
    return during, after


STARTED = sorted(name for row in rows("A started VM") for name in names(row[0]))
UNDONE = sorted(name for row in rows("A started VM") if row[-1] == "by `stop()`" for name in names(row[0]))
INSTRUMENTS = {row[0]: names(row[1]) for row in rows("Instruments")}
EVENTS = {event: names(row[1]) for row in rows("Agents") for event in row[0].split(", ")}


def test_what_a_start_changes_stop_undoes() -> None:
    during, after = looked("start")
    assert during == STARTED
    assert after == sorted(set(STARTED) - set(UNDONE))


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_what_an_instrument_changes_stop_undoes(name: str) -> None:
    during, after = looked("instrument", name)
    assert during == INSTRUMENTS[name]
    assert after == UNDONE  # which was there when it was switched on


@pytest.mark.parametrize("event", EVENTS)
def test_what_an_event_changes_goes_with_its_environment(event: str) -> None:
    during, after = looked("events", event)
    assert during == sorted([*EVENTS[event], "SIGRTMAX"])
    assert after == ["SIGRTMAX"]


def test_what_run_adds() -> None:
    code = """
from tests.side_effects import state
found = state()
print(*(name for name in found if name.startswith("VMSCOPE") or name == "SIGRTMAX" and found[name]))
"""
    added = [name for row in rows("`vmscope run`") for name in names(row[0])]
    assert sorted(printed("-m", "vmscope", "run", "-c", code).split()) == sorted(added)


def test_the_page_has_every_instrument() -> None:
    from vmscope.instruments import INSTRUMENTS as KNOWN

    assert list(INSTRUMENTS) == [name for name, _, _ in KNOWN]
