"""Every event of real recordings, field by field, beside `jfr print --json` of the JDK that made them."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tests.support import JDK, PATIENCE
from vmscope.flight.convert import recording
from vmscope.flight.convert.chunk import Value

TIMESTAMP, TIMESPAN, UNSIGNED = "jdk.jfr.Timestamp", "jdk.jfr.Timespan", "jdk.jfr.Unsigned"
NANOSECONDS = {"NANOSECONDS": 1, "MICROSECONDS": 1000, "MILLISECONDS": 10**6, "SECONDS": 10**9}
NEVER = (-(2**63), 2**63 - 1)  # no time, or one without an end: printed in another way by each version
CLOSE = 1000  # nanoseconds: the JDK computes times as floating point numbers


def printed(jdk: JDK, path: Path) -> list[dict[str, object]]:
    """What the JDK's jfr says of a recording's events."""
    run = subprocess.run(
        [jdk.tool("jfr"), "print", "--json", "--stack-depth", "2048", str(path)],
        check=True, timeout=PATIENCE, capture_output=True,
        env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8", "JAVA_TOOL_OPTIONS": "-Dfile.encoding=UTF-8"},
    )  # fmt: skip
    events = json.loads(run.stdout.decode())["recording"]["events"]
    assert isinstance(events, list)
    return events


def since_1970(text: str) -> int:
    """A printed time in nanoseconds."""
    found = re.fullmatch(r"([^.Z+]+)(?:\.(\d+))?(Z|\+00:00)", text)
    assert found, text
    whole = datetime.fromisoformat(f"{found[1]}+00:00")
    return int(whole.timestamp()) * 10**9 + int((found[2] or "").ljust(9, "0"))


def nanoseconds(text: str) -> int:
    """A printed duration."""
    found = re.fullmatch(r"PT(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d+))?S)?", text)
    assert found, text
    seconds = int(found[4] or 0) * 10**9 + int((found[5] or "").ljust(9, "0"))
    return (int(found[1] or 0) * 3600 + int(found[2] or 0) * 60) * 10**9 + (-seconds if found[3] else seconds)


def expected_number(value: Value, name: str) -> object:
    """A number of ours in the unit that the JDK prints: None where it means that there is none."""
    field = value.type.fields[name]
    number = value[name]
    assert isinstance(number, (int, float))
    for annotation, convert in ((TIMESTAMP, value.chunk.time), (TIMESPAN, value.chunk.nanoseconds)):
        unit = field.annotations.get(annotation)
        if unit and isinstance(number, int):
            if number in NEVER:
                return None
            if unit == ["TICKS"]:
                return convert(number)
            return number * NANOSECONDS.get(unit[0].removesuffix("_SINCE_EPOCH"), 1)
    return number


def compare_value(value: Value, theirs: dict[str, object], place: str) -> None:
    """Each field, and none is missing."""
    assert list(theirs) == list(value.type.fields), place
    for name, theirs_field in theirs.items():
        compare(value, name, theirs_field, f"{place}.{name}")


def compare(value: Value, name: str, theirs: object, place: str) -> None:
    ours = value[name]
    if isinstance(ours, list):
        assert isinstance(theirs, list), place
        assert len(theirs) == len(ours), place
        for mine, other in zip(ours, theirs, strict=True):
            assert isinstance(mine, Value), place
            compare_value(mine, other, place)
    elif isinstance(ours, Value):
        assert isinstance(theirs, dict), place
        compare_value(ours, theirs, place)
    elif isinstance(ours, (int, float)) and not isinstance(ours, bool):
        mine = expected_number(value, name)
        if mine is None:
            return
        if isinstance(theirs, str) and theirs.startswith("PT"):
            assert abs(nanoseconds(theirs) - int(str(mine))) <= CLOSE, place
        elif isinstance(theirs, str):
            assert abs(since_1970(theirs) - int(str(mine))) <= CLOSE, place
        elif isinstance(mine, float) and theirs is not None:
            assert isinstance(theirs, (int, float)), place
            assert math.isclose(mine, theirs, rel_tol=1e-6), place
        elif UNSIGNED in value.type.fields[name].annotations:  # which JDK 17 does not look at
            assert isinstance(theirs, int), place
            assert isinstance(mine, int), place
            assert (mine - theirs) % (1 << value.type.fields[name].type.bits) == 0, place
        else:
            assert mine == theirs, place
    else:
        assert ours == theirs, place


def end(event: Value) -> tuple[int, int]:
    """The JDK prints the events of a chunk as they ended."""
    return event.chunk.position, event.number("startTime") + event.number("duration")


@pytest.mark.parametrize("version", [17, 21, 25])
def test_each_field_of_each_event_is_read_as_the_jdk_reads_it(
    recording_of: Callable[[int], tuple[JDK, Path]], version: int
) -> None:
    jdk, path = recording_of(version)
    theirs = printed(jdk, path)
    ours = sorted(recording.events(str(path)), key=end)
    assert len(ours) == len(theirs)

    for event, other in zip(ours, theirs, strict=True):
        values = other["values"]
        assert isinstance(values, dict)
        assert event.type.name == other["type"]
        compare_value(event, values, event.type.name)
