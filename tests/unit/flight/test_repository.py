"""The folder of chunks, where others may write around it; and chunks that become one file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vmscope.errors import OptionError
from vmscope.flight import repository
from vmscope.flight.recordings import limited
from vmscope.flight.repository import Chunk, Repository


def test_nobody_else_may_enter(tmp_path: Path) -> None:
    found = Repository(str(tmp_path / "new" / "folder"))
    assert os.stat(found.path).st_mode & 0o777 == 0o700
    assert os.path.dirname(found.path) == str(tmp_path / "new" / "folder")
    (Path(found.path) / "000000.jfr").write_bytes(b"chunk")
    found.remove()
    assert not os.path.exists(found.path)


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.strftime", lambda _: "NOW")
    taken, elsewhere = tmp_path / f"NOW_{os.getpid()}", tmp_path / "elsewhere"
    elsewhere.mkdir()
    taken.symlink_to(elsewhere)
    found = Repository(str(tmp_path))
    assert found.path == f"{taken}_1"
    found.remove()
    assert taken.is_symlink()
    assert elsewhere.exists()


def test_a_folder_where_others_may_rename_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(OptionError, match="others may rename"):
        Repository(str(tmp_path))
    tmp_path.chmod(0o1777)
    Repository(str(tmp_path)).remove()


def test_a_folder_that_was_replaced_is_neither_read_nor_removed(tmp_path: Path) -> None:
    found = Repository(str(tmp_path))
    os.rename(found.path, tmp_path / "moved")
    other = tmp_path / "other"
    other.mkdir()
    (other / "000000.jfr").write_bytes(b"another's")
    for is_link in (True, False):
        os.symlink(other, found.path) if is_link else os.mkdir(found.path)
        with pytest.raises(OSError, match=r"replaced|Not a directory|Too many"):
            repository.write(str(tmp_path / "out.jfr"), [Chunk("000000.jfr", 0, 1, 9, None)], found)
        found.remove()
        assert os.path.lexists(found.path)
        os.unlink(found.path) if is_link else os.rmdir(found.path)
    assert [*other.iterdir()]
    assert not (tmp_path / "out.jfr").exists()


def test_chunks_become_one_file(tmp_path: Path) -> None:
    found = Repository(str(tmp_path / "base"))
    (Path(found.path) / "000001.jfr").write_bytes(b"b" * 100_000)
    path = tmp_path / "out.jfr"
    path.write_bytes(b"an older one")
    chunks = [Chunk(None, 0, 1, 3, b"aaa"), Chunk("000001.jfr", 1, 2, 100_000, None)]
    assert repository.write(str(path), chunks, found) == 100_003
    assert path.read_bytes() == b"aaa" + b"b" * 100_000
    assert sorted(each.name for each in tmp_path.iterdir()) == ["base", "out.jfr"]


@pytest.mark.parametrize("what", ["symlink", "folder", "fifo"])
def test_nothing_but_a_file_is_replaced(tmp_path: Path, what: str) -> None:
    path, other = tmp_path / "out.jfr", tmp_path / "other"
    other.write_bytes(b"another's")
    if what == "symlink":
        path.symlink_to(other)
    elif what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(FileExistsError):
        repository.write(str(path), [Chunk(None, 0, 1, 3, b"aaa")], None)
    assert other.read_bytes() == b"another's"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other", "out.jfr"]


def test_a_chunk_that_is_gone_leaves_no_file(tmp_path: Path) -> None:
    found = Repository(str(tmp_path / "base"))
    with pytest.raises(FileNotFoundError):
        repository.write(str(tmp_path / "out.jfr"), [Chunk("000000.jfr", 0, 1, 9, None)], found)
    assert [each.name for each in tmp_path.iterdir()] == ["base"]


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_000)
    chunks = [Chunk(None, end - 100, end, 10, b"") for end in (700, 800, 900, 1_000)]
    assert limited(chunks, 0, 0) == chunks
    assert limited(chunks, 150, 0) == chunks[2:]
    assert limited(chunks, 0, 30) == chunks[1:]
    assert limited(chunks, 0, 1) == chunks[3:]
    assert limited(chunks, 150, 30) == chunks[2:]
    assert limited([], 1, 1) == []
