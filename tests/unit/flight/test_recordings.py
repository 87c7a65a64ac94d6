"""Which chunks a recording has a part in, and what names of files mean."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from vmscope.flight.recordings import Recording, resolve
from vmscope.flight.repository import Chunk
from vmscope.flight.settings import Settings


def test_a_clock_that_is_set_back_hides_no_chunk() -> None:
    recording = Recording(Settings(["none"]))
    earlier, later = Chunk("000000.jfr", 5_000, 6_000, 1, None), Chunk("000001.jfr", 1_000, 2_000, 1, None)
    assert not recording.covers(earlier), "it has not begun"
    recording.begin, recording.before = 6_000, frozenset([earlier.key])
    assert not recording.covers(earlier)
    assert recording.covers(later)


def test_names_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vmscope.flight.recordings._now", lambda: "NOW")
    recording = Recording(Settings(["none"]))
    recording.id = 7
    pid = os.getpid()
    (tmp_path / "folder").mkdir()
    assert resolve("", recording) == f"{tmp_path}/hotspot-pid-{pid}-id-7-NOW.jfr"
    assert resolve("") == f"{tmp_path}/hotspot-pid-{pid}-NOW.jfr"
    assert resolve("folder", recording) == f"{tmp_path}/folder/hotspot-pid-{pid}-id-7-NOW.jfr"
    assert resolve("a-%p-%t.jfr") == f"{tmp_path}/a-{pid}-NOW.jfr"
    assert resolve("/x/../y.jfr") == "/y.jfr"


def test_the_time_in_names() -> None:
    assert re.fullmatch(r".*-\d{4}(_\d\d){5}\.jfr", resolve(""))
