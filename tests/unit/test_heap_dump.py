"""GC.heap_dump's file: whole or not there, nobody else's to read, compressed on demand."""

from __future__ import annotations

import gzip
import io
import os
import stat
from pathlib import Path

import pytest

from tests.diagnostics import refused, run
from tests.hprof import MAGIC
from tests.unit.test_command_operations import Call, serve
from vmscope import commands, native
from vmscope.commands import heap_dump


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dump itself is another test's: a short one, and long enough for several chunks."""

    def dump_heap(fd: int, client: object) -> tuple[int, int]:
        return 7, os.write(fd, MAGIC + bytes(3_000_000))

    monkeypatch.setattr(native, "dump_heap", dump_heap)


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.hprof"
    umask = os.umask(0o777)
    try:
        said = run(f"GC.heap_dump {path}")
    finally:
        os.umask(umask)
    assert path.read_bytes() == MAGIC + bytes(3_000_000)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a.hprof"]
    lines = said.splitlines()
    assert lines[0] == f"Dumping heap to {path} ..."
    assert lines[1].startswith(f"Heap dump file created [{path.stat().st_size} bytes in ")
    assert len(lines) == 2


def test_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap_dump, "TELL", -1)
    path = tmp_path / "a.hprof.gz"
    said = run(f"GC.heap_dump {path} -gz=1")
    assert gzip.decompress(path.read_bytes()) == MAGIC + bytes(3_000_000)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a.hprof.gz"]
    shares = [int(line[:-1]) for line in said.splitlines() if line.endswith("%")]
    assert shares == sorted(set(shares))
    assert shares[-1] == 100
    assert f"[{path.stat().st_size} bytes in " in said


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.hprof"
    path.write_text("mine")
    assert refused(f"GC.heap_dump {path}") == f"Unable to create {path}: File exists; -overwrite replaces it"
    assert path.read_text() == "mine"
    run(f"GC.heap_dump {path} -overwrite")
    assert path.read_bytes().startswith(MAGIC)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a.hprof"]


def test_only_a_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "target").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for name in ("folder", "pipe", "link"):
        assert "it is not a file" in refused(f"GC.heap_dump {tmp_path / name} -overwrite")
        assert "File exists" in refused(f"GC.heap_dump {tmp_path / name}")
    assert (tmp_path / "target").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "pipe", "target"]


def test_one_that_comes_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.hprof"

    def dump_heap(fd: int, client: object) -> tuple[int, int]:
        path.write_text("mine")
        return 1, os.write(fd, MAGIC)

    monkeypatch.setattr(native, "dump_heap", dump_heap)
    assert refused(f"GC.heap_dump {path}") == f"Unable to write {path}: File exists; nothing is left of it"
    assert path.read_text() == "mine"
    assert os.listdir(tmp_path) == ["a.hprof"]


def test_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    run(f"GC.heap_dump {tmp_path / 'a.hprof'}")
    assert os.listdir(tmp_path) == ["a.hprof"]


def test_a_client_that_has_gone(tmp_path: Path) -> None:
    class Gone(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        commands.execute(f"GC.heap_dump {tmp_path / 'a.hprof'} -gz=1", Gone())
    assert os.listdir(tmp_path) == []


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    run(f"GC.heap_dump {tmp_path / 'a'}")
    run(f"GC.heap_dump {tmp_path / 'b'} -gz=9")
    refused(f"GC.heap_dump {tmp_path / 'b'}")
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("level", ["0", "10", "-1"])
def test_levels(tmp_path: Path, level: str) -> None:
    said = refused(f"GC.heap_dump {tmp_path / 'a'} -gz={level}")
    assert said == f"Compression level out of range (1-9): {level}"
    assert os.listdir(tmp_path) == []


def test_where_no_file_can_be(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a.hprof"
    assert refused(f"GC.heap_dump {path}") == f"Unable to create {path}: No such file or directory"


@pytest.mark.parametrize("options", ["", " -gz=1"])
def test_nothing_is_sent_before_the_objects_are_written(
    options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For what is sent first has the status, which no later failure can take back."""
    path = tmp_path / "a.hprof"
    call = Call("jcmd", f"GC.heap_dump {path}{options}")

    def dump_heap(fd: int, client: object) -> tuple[int, int]:
        assert call.parts == []
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(native, "dump_heap", dump_heap)
    serve(call)
    expected = f"-1\nUnable to write {path}: No space left on device; nothing is left of it\n"
    assert b"".join(call.parts).decode() == expected
    assert os.listdir(tmp_path) == []
