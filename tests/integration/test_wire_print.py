"""wire.text shows a region as jcmd PID PerfCounter.print does, byte for byte."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import corpus
from tests.conftest import StartPython
from tests.support import JDK
from vmscope.wire import decode, text


@pytest.fixture
def region(start_python: StartPython) -> Iterator[Path]:
    """Where a live process that publishes nothing would have its region."""
    child = start_python("print('ready', flush=True); input()")
    directory = Path("/tmp", f"hsperfdata_{pwd.getpwuid(os.geteuid()).pw_name}")
    directory.mkdir(mode=0o755, exist_ok=True)
    path = directory / str(child.pid)
    yield path
    path.unlink(missing_ok=True)


def shown(data: bytes) -> list[str]:
    values = {**decode.prologue_values(decode.prologue(data), len(data)), **decode.values(data)}
    return [text.line(name, values[name]) for name in sorted(values, key=text.order)]


@pytest.mark.parametrize("name", ["made-texts", "made-numbers", "17.0.15-debian-g1"])
def test_as_jcmd_shows_it(jdk: JDK, region: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    data = corpus.load(name)
    region.write_bytes(data)
    run = jdk.run("jcmd", region.name, "PerfCounter.print")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout == "\n".join([f"{region.name}:", *shown(data), ""])
