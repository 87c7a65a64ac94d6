"""GC.heap_dump's file: whole or not there, nobody else's to read, compressed on demand.

What needs processes of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.diagnostics import refused
from tests.hprof import MAGIC
from tests.unit.test_command_operations import Call, serve
from vmscope import native


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dump itself is another test's: a short one, and long enough for several chunks."""

    def dump_heap(fd: int, client: object) -> tuple[int, int]:
        return 7, os.write(fd, MAGIC + bytes(3_000_000))

    monkeypatch.setattr(native, "dump_heap", dump_heap)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a megabyte."""
    if not ROOT or not shutil.which("mount"):
        pytest.skip("needs root and mount")
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, timeout=30, check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], timeout=30, check=True)


@pytest.mark.parametrize("options", ["", " -gz=1"])
def test_a_full_disk(tiny: Path, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # a real dump
    path = tiny / "a.hprof"
    said = refused(f"GC.heap_dump {path}{options}")
    assert said == f"Unable to write {path}: No space left on device; nothing is left of it"
    assert os.listdir(tiny) == []


def test_a_histogram_on_a_full_disk(tiny: Path) -> None:
    with open(tiny / "ballast", "wb", buffering=0) as ballast, suppress(OSError):
        while ballast.write(bytes(4096)):
            pass
    call = Call("inspectheap", "-all", str(tiny / "histogram"))
    serve(call)
    said = b"".join(call.parts).decode()
    assert said == f"-1\nUnable to create {tiny}/histogram: No space left on device\n"
    assert os.listdir(tiny) == ["ballast"]
