"""native.Mapping, the extension's and the twin's: the same results, and no crash when the file shrinks."""

from __future__ import annotations

import faulthandler
import importlib
import mmap
import os
import signal
import struct
import threading
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vmscope.native.region import mapping as twin

PAGE = mmap.PAGESIZE


def extension() -> Any:
    try:
        return importlib.import_module("vmscope.native._native")
    except ImportError:
        pytest.skip("the extension is not built")


@pytest.fixture(params=["c", "python"])
def mapping_type(request: pytest.FixtureRequest) -> Any:
    return extension().Mapping if request.param == "c" else twin.Mapping


@pytest.fixture
def words(tmp_path: Path) -> tuple[Path, list[int]]:
    values = [(index * 0x9E3779B97F4A7C15 + 1) % 2**63 for index in range(4 * PAGE // 8)]
    path = tmp_path / "words"
    path.write_bytes(struct.pack(f"={len(values)}q", *values))
    return path, values


@pytest.fixture
def make(mapping_type: Any) -> Callable[[Path], Any]:
    def open_mapping(path: Path, size: int | None = None) -> Any:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            return mapping_type(fd, path.stat().st_size if size is None else size)
        finally:
            os.close(fd)

    return open_mapping


def test_read_gives_the_bytes_of_any_range(make: Callable[[Path], Any], words: tuple[Path, list[int]]) -> None:
    path, _ = words
    data = path.read_bytes()
    mapping = make(path)
    assert mapping.size == len(data)
    assert mapping.read(0, len(data)) == data
    for offset in (0, 1, 7, 8, 9, PAGE - 3, len(data) - 9):
        for length in (0, 1, 5, 7, 8, 9):
            assert mapping.read(offset, length) == data[offset : offset + length]


def test_read_in_order_gives_each_range(make: Callable[[Path], Any], words: tuple[Path, list[int]]) -> None:
    path, _ = words
    data = path.read_bytes()
    mapping = make(path)
    ranges = [(0, 32), (PAGE - 3, 11), (0, len(data)), (len(data), 0), (8, 8), (0, 32)]
    assert mapping.read_in_order(*ranges) == tuple(data[offset : offset + length] for offset, length in ranges)
    assert mapping.read_in_order() == ()


@pytest.mark.parametrize("wrong", [(-1, 1), (0, -1), (0, 4 * PAGE + 1), (4 * PAGE, 1), (2**62, 2**62)])
def test_read_in_order_refuses_ranges_outside(
    make: Callable[[Path], Any], words: tuple[Path, list[int]], wrong: tuple[int, int]
) -> None:
    mapping = make(words[0])
    os.truncate(words[0], 0)  # nothing is read where one range is wrong
    with pytest.raises(ValueError, match="outside"):
        mapping.read_in_order((0, 8), wrong)
    for no_range in (5, "ab", None, (0, "8"), ("0", 8)):
        with pytest.raises(TypeError):
            mapping.read_in_order((0, 8), no_range)


def test_a_size_that_is_no_multiple_of_a_word(make: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_bytes(b"abcdefghijk")
    mapping = make(path)
    assert mapping.read(0, 11) == b"abcdefghijk"
    assert mapping.read(9, 2) == b"jk"
    out = array("q", [0])
    mapping.gather(array("i", [0]), out)
    assert out.tobytes() == b"abcdefgh"
    with pytest.raises(ValueError, match="offset"):
        mapping.gather(array("i", [8]), out)


@pytest.mark.parametrize("code", ["i", "q"])
def test_gather_loads_the_words_at_the_offsets(
    make: Callable[[Path], Any], words: tuple[Path, list[int]], code: str
) -> None:
    path, values = words
    mapping = make(path)
    picked = [0, 5, 5, len(values) - 1, 17]
    out = array("q", bytes(8 * len(picked)))
    mapping.gather(array(code, [8 * index for index in picked]), out)
    assert out.tolist() == [values[index] for index in picked]
    mapping.gather(array(code), array("q"))


@pytest.mark.parametrize("offset", [-8, 4, 1, 4 * PAGE, 4 * PAGE - 4, 2**31 - 8])
def test_gather_refuses_offsets_outside_or_unaligned(
    make: Callable[[Path], Any], words: tuple[Path, list[int]], offset: int
) -> None:
    mapping = make(words[0])
    for code in "iq":
        with pytest.raises(ValueError, match="offset"):
            mapping.gather(array(code, [0, offset]), array("q", [0, 0]))


def test_gather_refuses_buffers_that_do_not_fit(make: Callable[[Path], Any], words: tuple[Path, list[int]]) -> None:
    mapping = make(words[0])
    for room in (0, 1, 3):
        with pytest.raises(ValueError, match="values need"):
            mapping.gather(array("i", [0, 8]), array("q", [0] * room))
    with pytest.raises(TypeError):
        mapping.gather(b"\0\0", array("q", [0, 0]))
    with pytest.raises((TypeError, BufferError)):
        mapping.gather(array("i", [0]), bytes(8))


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1), (0, 4 * PAGE + 1), (4 * PAGE, 1), (2**62, 2**62)])
def test_read_refuses_ranges_outside(
    make: Callable[[Path], Any], words: tuple[Path, list[int]], offset: int, length: int
) -> None:
    with pytest.raises(ValueError, match="outside"):
        make(words[0]).read(offset, length)


def test_a_closed_mapping_refuses_to_read(make: Callable[[Path], Any], words: tuple[Path, list[int]]) -> None:
    mapping = make(words[0])
    assert not mapping.closed
    mapping.close()
    mapping.close()
    assert mapping.closed
    with pytest.raises(ValueError, match="closed"):
        mapping.read(0, 8)
    with pytest.raises(ValueError, match="closed"):
        mapping.read_in_order((0, 8), (8, 8))
    with pytest.raises(ValueError, match="closed"):
        mapping.gather(array("i", [0]), array("q", [0]))


def test_what_cannot_be_mapped(mapping_type: Any, tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(ValueError, match="cannot map"):
            mapping_type(fd, 0)
        with pytest.raises(ValueError, match="cannot map"):
            mapping_type(fd, -1)
        with pytest.raises(OSError, match=r"(?i)device|directory"):
            mapping_type(fd, 8).read(0, 8)  # a directory
    finally:
        os.close(fd)
    with pytest.raises(OSError, match="descriptor"):
        mapping_type(2**20, 8)


def test_a_later_write_is_seen(make: Callable[[Path], Any], words: tuple[Path, list[int]]) -> None:
    path, _ = words
    mapping = make(path)
    with path.open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), struct.pack("=q", -7), PAGE)
    out = array("q", [0])
    mapping.gather(array("i", [PAGE]), out)
    assert out[0] == -7


@pytest.mark.parametrize("enabled", [True, False])
def test_truncation_is_an_error_and_no_crash(
    make: Callable[[Path], Any], words: tuple[Path, list[int]], enabled: bool
) -> None:
    path, values = words
    mapping = make(path)
    was = faulthandler.is_enabled()
    try:
        if enabled:
            faulthandler.enable(file=2)
        else:
            faulthandler.disable()
        os.truncate(path, PAGE)
        for _ in range(50):
            with pytest.raises(OSError, match="truncated"):
                mapping.read(0, 2 * PAGE)
            with pytest.raises(OSError, match="truncated"):
                mapping.gather(array("i", [0, 3 * PAGE]), array("q", [0, 0]))
            for ranges in ([(0, 8), (2 * PAGE, 8), (0, 8)], [(0, 8), (8, 8), (PAGE, 1)]):
                with pytest.raises(OSError, match="truncated"):
                    mapping.read_in_order(*ranges)
            assert mapping.read_in_order((0, 8), (PAGE - 8, 8)) == (mapping.read(0, 8), mapping.read(PAGE - 8, 8))
            assert mapping.read(0, 8) == struct.pack("=q", values[0])
        assert faulthandler.is_enabled() == enabled
    finally:
        if was:
            faulthandler.enable(file=2)
        else:
            faulthandler.disable()


def test_no_bytes_can_be_read_of_a_truncated_file_too(
    make: Callable[[Path], Any], words: tuple[Path, list[int]]
) -> None:
    path, _ = words
    mapping = make(path)
    os.truncate(path, 0)
    assert [mapping.read(offset, 0) for offset in (0, 1, 7, 8, PAGE + 1, mapping.size)] == [b""] * 6


def test_truncation_in_many_threads_at_once(make: Callable[[Path], Any], words: tuple[Path, list[int]]) -> None:
    path, values = words
    mapping = make(path)
    os.truncate(path, PAGE)
    seen: list[int] = []

    def read() -> None:
        lost = 0
        for _ in range(300):
            try:
                mapping.read(PAGE - 8, 16)
            except OSError:
                lost += 1
            assert mapping.read(8, 8) == struct.pack("=q", values[1])
        seen.append(lost)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [300] * 4


def test_truncation_with_sigbus_blocked(make: Callable[[Path], Any], words: tuple[Path, list[int]]) -> None:
    mapping = make(words[0])
    os.truncate(words[0], PAGE)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGBUS, signal.SIGUSR2})
    try:
        with pytest.raises(OSError, match="truncated"):
            mapping.read(PAGE, 8)
        with pytest.raises(OSError, match="truncated"):
            mapping.read_in_order((0, 8), (PAGE, 8))
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before | {signal.SIGBUS, signal.SIGUSR2}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_truncation_while_a_long_read_runs(mapping_type: Any, tmp_path: Path) -> None:
    """A writer shrinks and grows the file as fast as it can: every read is whole or an error."""
    path = tmp_path / "shrinking"
    size = 2 << 20
    path.write_bytes(bytes(size))
    with path.open("r+b") as file:
        mapping = mapping_type(file.fileno(), size)
    stop = threading.Event()

    def shrink() -> None:
        while not stop.is_set():
            os.truncate(path, PAGE)
            os.truncate(path, size)

    writer = threading.Thread(target=shrink)
    writer.start()
    try:
        whole = lost = 0
        while whole + lost < 60:
            try:
                first, second = mapping.read_in_order((0, PAGE), (0, size))
                assert (len(first), len(second)) == (PAGE, size)
                assert len(mapping.read(0, size)) == size
                whole += 1
            except OSError:
                lost += 1
    finally:
        stop.set()
        writer.join()
    assert whole + lost == 60


def test_close_waits_for_reads_in_other_threads(mapping_type: Any, tmp_path: Path) -> None:
    path = tmp_path / "long"
    size = 4 << 20
    path.write_bytes(b"\xff" * size)
    for _ in range(10):
        with path.open("rb") as file:
            mapping = mapping_type(file.fileno(), size)
        results: list[object] = []

        def read(mapping: Any = mapping, results: list[object] = results) -> None:
            try:
                results.append(mapping.read(0, size) == b"\xff" * size)
            except (ValueError, OSError) as error:
                results.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        mapping.close()
        reader.join()
        assert results[0] is True or isinstance(results[0], (ValueError, OSError))


def test_gather_all_fills_one_buffer_and_names_the_lost(mapping_type: Any, tmp_path: Path) -> None:
    mappings = []
    for number in range(5):
        path = tmp_path / str(number)
        path.write_bytes(struct.pack("=q", number) * (2 * PAGE // 8))
        with path.open("rb") as file:
            mappings.append(mapping_type(file.fileno(), 2 * PAGE))
    jobs = [(mapping, array("i", [0, PAGE])) for mapping in mappings]
    out = array("q", [-1] * 10)
    assert mapping_type.gather_all(jobs, out) == []
    assert out.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    os.truncate(tmp_path / "1", PAGE)
    os.truncate(tmp_path / "3", 0)
    assert mapping_type.gather_all(jobs, out) == [1, 3]
    assert out.tolist() == [0, 0, 0, 0, 2, 2, 0, 0, 4, 4]
    watched, seen = array("q", [8, PAGE - 8]), array("q", [-1] * 10)
    out = array("q", [-1] * 10)
    assert mapping_type.gather_all(jobs, out, watched, seen) == [1, 3]
    assert out.tolist() == [0, 0, 0, 0, 2, 2, 0, 0, 4, 4]
    assert seen.tolist() == [0, 0, 0, 0, 2, 2, 0, 0, 4, 4]
    with pytest.raises(ValueError, match="too small"):
        mapping_type.gather_all(jobs, out, watched, seen[:9])
    with pytest.raises(ValueError, match="more values"):
        mapping_type.gather_all(jobs, out, watched, array("q", [0] * 11))
    with pytest.raises(ValueError, match="too small"):
        mapping_type.gather_all(jobs, array("q", [0] * 9))
    with pytest.raises(ValueError, match="more values"):
        mapping_type.gather_all(jobs, array("q", [0] * 11))
    with pytest.raises(ValueError, match="offset"):
        mapping_type.gather_all([(mappings[0], array("i", [4]))], array("q", [0]))
