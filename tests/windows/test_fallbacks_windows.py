"""What a process does that cannot have a region: it counts in private memory, and says why."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.windows.programs import Program
from vmscope import win32

CODE = """
import logging
from vmscope import win32
from vmscope.memory import _windows

said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(f"{record.levelname}: {record.getMessage()}")
logging.getLogger("vmscope").addHandler(handler)
count = vmscope.counter("a.b")

def fail(*_):
    win32.ctypes.set_last_error(1450)
    return None

def tried(*options, failing="", **environment):
    kept = dict(os.environ)
    os.environ.update(environment)
    if failing:
        function = getattr(win32, failing)
        setattr(win32, failing, fail)
    said.clear()
    try:
        vmscope.start(*options)
        count.inc()
        status = vmscope.status()
        return status.path, status.reason, count.value, said
    finally:
        vmscope.stop()
        for name in environment:
            if name in kept:
                os.environ[name] = kept[name]
            else:
                del os.environ[name]
        if failing:
            setattr(win32, failing, function)
"""


class Outcome(NamedTuple):
    path: str | None
    reason: str
    counted: int
    said: list[str]


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    started = Program(CODE)
    yield started
    started.kill()


def tried(program: Program, *options: str, **environment: str) -> Outcome:
    """The outcome of a start under this environment; `failing` names a Win32 call that fails."""
    before = int(program.ask("count.value"))
    arguments = ", ".join([*map(repr, options), *(f"{name}={value!r}" for name, value in environment.items())])
    outcome = Outcome(*ast.literal_eval(program.ask(f"tried({arguments})")))
    assert outcome.counted == before + 1
    return outcome


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"TMP": r"\\nowhere\share"}, r"\\nowhere\share is not on a drive"),
        ({"TMP": r"Q:\nowhere"}, r"the volume of Q:\nowhere does not tell what it can do"),
        ({"TMP": r"C:\nowhere"}, r"C:\nowhere does not exist"),
        ({"USERNAME": r"a\b"}, "cannot be part of a path"),
        ({"failing": "_GetTempPath"}, "there is no temporary folder"),
        ({"failing": "_GetVolumeInformation"}, "does not tell what it can do"),
        ({"failing": "_OpenProcessToken"}, "this process's user is not known"),
        ({"failing": "_CreateFileMapping"}, "cannot map"),
        ({"failing": "_MapViewOfFile"}, "cannot map"),
        ({"failing": "_WriteFile"}, "cannot map"),
    ],
    ids=lambda value: "-".join(value) + "-" + "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_the_reason_is_told_and_counters_count(program: Program, environment: dict[str, str], reason: str) -> None:
    outcome = tried(program, **environment)
    assert outcome.path is None
    assert reason in outcome.reason
    if "failing" in environment and environment["failing"] not in ("_CreateFileMapping", "_MapViewOfFile"):
        assert "Windows error 1450" in outcome.reason
    assert not [line for line in outcome.said if line.startswith("WARNING")]


def test_rights_that_cannot_be_put_anew_are_a_warning(program: Program, folder: Path) -> None:
    (folder / f"hsperfdata_{win32.user_name()}").mkdir()
    outcome = tried(program, TMP=str(folder), failing="_SetFileSecurity")
    assert outcome.path is not None
    assert outcome.reason == ""
    [warning] = [line for line in outcome.said if line.startswith("WARNING")]
    assert "keeps its access rights, which may not be right" in warning
    assert "Windows error 1450" in warning


def test_a_volume_without_access_rights_is_refused_unless_that_is_bypassed(program: Program) -> None:
    place = os.environ.get("VMSCOPE_TEST_FAT")
    if not place:
        pytest.skip("VMSCOPE_TEST_FAT names no volume of the FAT kind (scripts/windows makes one as root)")
    assert win32.volume_flags(place) == 2  # no FILE_PERSISTENT_ACLS
    outcome = tried(program, TMP=place)
    assert outcome.path is None
    assert "keeps no access rights" in outcome.reason
    outcome = tried(program, "-XX:+PerfBypassFileSystemCheck", TMP=place)
    assert outcome.path is not None
    assert outcome.path.startswith(place)


def test_a_full_volume_is_told_at_the_start(program: Program) -> None:
    place = os.environ.get("VMSCOPE_TEST_FULL")
    if not place:
        pytest.skip("VMSCOPE_TEST_FULL names no full volume (scripts/windows makes one as root)")
    outcome = tried(program, TMP=place)
    assert outcome.path is None
    assert "Windows error 112" in outcome.reason
    assert [line for line in outcome.said if line.startswith("WARNING: no shared region")]
    assert os.listdir(os.path.join(place, f"hsperfdata_{win32.user_name()}")) == []
