"""JFR.view, made in a live process, beside what the JDK's `jfr view` makes of the same recording."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import StartVMScope
from tests.oracle.raw_attach import ask
from tests.support import JDK, Child
from tests.wait import wait_for

pytestmark = pytest.mark.usefixtures("no_chunks_left")

CODE = """
import gc, threading, time

class Refused(Exception):
    pass

def first():
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        pass

def work():
    for _ in range(30):
        gc.collect()
        try:
            raise Refused("no")
        except Refused:
            pass
    first()
    return "done"
"""


@pytest.fixture
def recorded(start_vmscope: StartVMScope) -> Child:
    child = start_vmscope("-XX:StartFlightRecording:exceptions=all,settings=profile", code=CODE)
    assert child.ask("work()") == "done"
    return child


def view(child: Child, text: str) -> str:
    status, body = ask(child.pid, "jcmd", f"JFR.view {text}")
    assert status == "0"
    return body


def rows(text: str) -> list[list[str]]:
    """Of a table: what stands below the line of dashes."""
    found: list[list[str]] = []
    for line in text.partition("\n---")[2].split("\n")[1:]:
        if not line.strip():
            break
        found.append(line.split())
    return found


@pytest.mark.parametrize("name", ["hot-methods", "exception-by-type", "thread-cpu-load"])
def test_a_table_has_the_rows_of_the_jdk(recorded: Child, name: str, tmp_path: Path) -> None:
    jdk = JDK.find(21) or JDK.find(25)
    if jdk is None:
        pytest.skip("no JDK 21: run make jdks")
    if name == "thread-cpu-load":
        wait_for(lambda: "%" in view(recorded, name), "no event of it")
    mine = rows(view(recorded, name))
    status, reply = ask(recorded.pid, "jcmd", f"JFR.dump filename={tmp_path}/out.jfr")
    assert (status, "Dumped" in reply) == ("0", True)
    run = jdk.run("jfr", "view", "--width", "120", name, str(tmp_path / "out.jfr"))
    theirs = {row[0]: row[1:] for row in rows(run.stdout)}
    assert mine
    for method, *values in mine:
        if name == "hot-methods":  # a few more samples until the dump
            assert int(theirs[method][0]) >= int(values[0])
        elif name == "exception-by-type":
            assert theirs[method] == values
        else:
            assert method in theirs


def test_pauses(recorded: Child) -> None:
    text = view(recorded, "gc-pauses")
    assert text.startswith("\nGC Pauses\n---------\n\nTotal Pause Time: ")
    assert int(re.findall(r"Number of Pauses: (\d+)\n", text)[0]) >= 30
    assert re.search(r"\n\nTimespan: \d\d:\d\d:\d\d - \d\d:\d\d:\d\d\n$", text)


def test_all_views(recorded: Child) -> None:
    text = view(recorded, "all-views verbose=true")
    for title in ("Allocation by Class", "Contention by Site", "Exceptions by Type", "GC Pauses", "Thread CPU Load"):
        assert title in text
    assert "exception-by-type: thrownClass of jdk.JavaErrorThrow, jdk.JavaExceptionThrow" in text


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("", "The argument 'view' is mandatory"),
        ("nosuch", "Could not find a view or an event type named nosuch"),
        ("width=abc hot-methods", "Integer parsing error in command argument 'width'. Could not parse: abc."),
        ("truncate=middle hot-methods", "Truncate must be 'end' or 'beginning'"),
        ("cell-height=0 hot-methods", "Height must be at least 1"),
        ("hot-methods gc", "Unknown argument 'gc' in diagnostic command."),
        ("hot-methods", "No recording data available. Start a recording with JFR.start."),
    ],
)
def test_what_cannot_be_shown(start_vmscope: StartVMScope, text: str, reply: str) -> None:
    assert view(start_vmscope(), text).split("\n")[0] == reply


def test_width_and_truncation(recorded: Child) -> None:
    for line in view(recorded, "width=30 hot-methods").split("\n")[3:-3]:
        assert len(line) <= 29
    narrow = view(recorded, "width=30 truncate=beginning hot-methods")
    assert "...first()" in narrow or "first()" in narrow
    assert rows(view(recorded, "maxage=0s hot-methods")) == []
