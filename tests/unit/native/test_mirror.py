"""The mirror: image, file, thread, in C and in Python."""

from __future__ import annotations

import errno
import os
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.implementations import both
from tests.wait import wait_for

MS = 1_000_000
CAPACITY = 8192
FIRST = 40  # where the first entry's value stands


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def mirror(native: Any) -> Iterator[Any]:
    made = native.Mirror(CAPACITY, time.monotonic_ns())
    yield made
    made.stop(1000 * MS)


def long_at(data: bytes | memoryview, offset: int) -> int:
    value: int = struct.unpack_from("=q", data, offset)[0]
    return value


def entry(size: int) -> bytes:
    """Bytes of an entry with room for a value of `size` bytes at offset 8: to the mirror only the length matters."""
    length = (8 + size + 7) & ~7
    return struct.pack("=i", length).ljust(length, b"\0")


def show(mirror: Any, slot: Any) -> int:
    """Appends an entry for the slot; where its value stands."""
    start = mirror.used or 32
    assert mirror.append(entry(getattr(slot, "capacity", 7) + 1), 1, ((slot, 0, 8),))
    return int(start) + 8


def open_file(mirror: Any, path: Path) -> None:
    path.write_bytes(bytes(mirror.image))
    status = path.stat()
    mirror.set_file(os.fsencode(path), status.st_dev, status.st_ino, mirror.used)


def test_the_image_shows_the_slots(native: Any, mirror: Any) -> None:
    counter, gauge, text = native.CounterSlot(), native.GaugeSlot(), native.TextSlot(10)
    first = show(mirror, counter)
    assert mirror.append(entry(5000), 1, ())
    second, third = show(mirror, gauge), show(mirror, text)
    assert (first, second, third) == (FIRST, 5064, 5080)
    counter.add(3)
    gauge.set(-4)
    text.set("grün")
    mirror.refresh()
    assert long_at(mirror.image, first) == 3
    assert long_at(mirror.image, second) == -4
    assert bytes(mirror.image[third : third + 11]) == "grün".encode().ljust(11, b"\0")
    text.set("x")
    mirror.refresh()
    assert bytes(mirror.image[third : third + 11]) == b"x".ljust(11, b"\0")


def test_many_slots(native: Any) -> None:
    mirror = native.Mirror(1 << 16, 0)
    slots = [native.GaugeSlot() for _ in range(1000)]
    offsets = [show(mirror, slot) for slot in slots]
    for i, slot in enumerate(slots):
        slot.set(i - 500)
    mirror.refresh()
    assert [long_at(mirror.image, offset) for offset in offsets] == [i - 500 for i in range(1000)]


def test_an_entry_is_appended_whole(native: Any, mirror: Any) -> None:
    assert (mirror.used, mirror.num_entries, mirror.overflow) == (0, 0, 0)
    data = bytes(range(4, 36))
    assert mirror.append(data, 1, ())
    mirror.refresh()
    assert bytes(mirror.image[32:64]) == data
    assert (mirror.used, mirror.num_entries, mirror.overflow) == (64, 1, 0)
    assert struct.unpack_from("=iiqii", mirror.image, 8)[::4] == (64, 1)


def test_a_copy_of_the_image(mirror: Any) -> None:
    assert mirror.copy() == (bytes(CAPACITY), 32)
    assert mirror.append(entry(8), 1, ())
    mirror.refresh()
    assert mirror.copy() == (bytes(mirror.image), 48)


def test_what_does_not_fit_is_counted(native: Any, mirror: Any) -> None:
    """HotSpot's rule: the last byte of the region stays free, and a smaller entry may still come."""
    room = CAPACITY - 32
    assert not mirror.append(entry(room - 8), 1, ())
    assert (mirror.used, mirror.num_entries, mirror.overflow) == (0, 0, room)
    assert mirror.append(entry(room - 24), 1, ())
    assert (mirror.used, mirror.num_entries, mirror.overflow) == (CAPACITY - 16, 1, room)
    assert not mirror.append(entry(8), 1, ())
    assert mirror.append(entry(0), 1, ())
    assert (mirror.used, mirror.num_entries, mirror.overflow) == (CAPACITY - 8, 2, room + 16)


@pytest.mark.parametrize("offset", [0, 3, 9, 16, 24, -8])
def test_no_value_outside_its_entry(native: Any, mirror: Any, offset: int) -> None:
    with pytest.raises(ValueError, match="offset"):
        mirror.append(entry(8), 1, ((native.CounterSlot(), 0, offset),))
    assert mirror.num_entries == 0


def test_a_family_is_appended_whole_or_not_at_all(native: Any, mirror: Any) -> None:
    histogram = native.HistogramSlot([1, 2])
    bindings = tuple((histogram, cell, 8 + 16 * cell) for cell in range(4))
    assert mirror.append(entry(8) * 4, 4, bindings)
    histogram.observe(1.5)
    histogram.observe(3)
    mirror.refresh()
    assert (mirror.used, mirror.num_entries) == (32 + 4 * 16, 4)
    assert [long_at(mirror.image, FIRST + 16 * cell) for cell in range(4)] == [4_500_000_000, 0, 1, 1]
    assert mirror.append(entry(CAPACITY - mirror.used - 32 - 8), 1, ())
    assert not mirror.append(entry(8) * 4, 4, bindings)
    assert (mirror.overflow, mirror.num_entries) == (4 * 16, 5)


def test_bindings_fill_chunks(native: Any, mirror: Any) -> None:
    slots = [native.HistogramSlot(range(97)) for _ in range(5)]
    for slot in slots:
        assert mirror.append(entry(8) * 99, 99, tuple((slot, cell, 8 + 16 * cell) for cell in range(99)))
        slot.observe(98)
    mirror.refresh()
    for number in range(5):
        assert long_at(mirror.image, FIRST + 16 * (99 * number + 98)) == 1


@pytest.mark.parametrize("binding", [(0, 8), 5, ("x", 0, 8), (None, 0, 8)])
def test_a_binding_is_a_slot_a_cell_and_an_offset(mirror: Any, binding: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        mirror.append(entry(8), 1, (binding,))
    assert mirror.used == 0


@pytest.mark.parametrize("cell", [-1, 4])
def test_a_cell_that_the_slot_lacks(native: Any, mirror: Any, cell: int) -> None:
    with pytest.raises(ValueError, match="cell"):
        mirror.append(entry(8), 1, ((native.HistogramSlot([1, 2]), cell, 8),))
    with pytest.raises(ValueError, match="cell"):
        mirror.append(entry(8), 1, ((native.GaugeSlot(), 1, 8),))
    with pytest.raises(ValueError, match="cell"):
        mirror.append(entry(8), 1, ((native.CounterSlot(), 2, 8),))


def test_no_text_outside_its_entry(native: Any, mirror: Any) -> None:
    assert mirror.append(entry(8), 1, ((native.TextSlot(7), 0, 8),))
    with pytest.raises(ValueError, match="offset"):
        mirror.append(entry(8), 1, ((native.TextSlot(8), 0, 8),))
    with pytest.raises(ValueError, match="whole entries"):
        mirror.append(bytes(15), 1, ())


def test_only_slots_are_shown(mirror: Any) -> None:
    with pytest.raises(TypeError):
        mirror.append(entry(8), 1, ((5, 0, 8),))
    with pytest.raises(TypeError):
        mirror.set_clock("x")


@pytest.mark.parametrize("capacity", [0, 31, 33, -8])
def test_an_image_has_room_for_a_prologue(native: Any, capacity: int) -> None:
    with pytest.raises(ValueError, match="image"):
        native.Mirror(capacity, 0)


def test_the_thread_writes_what_changed(native: Any, mirror: Any, tmp_path: Path) -> None:
    path = tmp_path / "region"
    counter, text = native.CounterSlot(), native.TextSlot(10)
    show(mirror, counter)
    where = show(mirror, text)
    open_file(mirror, path)
    mirror.start(5 * MS)
    counter.add(5)
    text.set("abc")
    wait_for(lambda: long_at(path.read_bytes(), FIRST) == 5)
    wait_for(lambda: path.read_bytes()[where : where + 4] == b"abc\0")
    assert mirror.error == 0


def test_stopping_makes_a_last_copy(native: Any, mirror: Any, tmp_path: Path) -> None:
    path = tmp_path / "region"
    counter = native.CounterSlot()
    show(mirror, counter)
    open_file(mirror, path)
    mirror.start(60_000 * MS)
    counter.add(5)
    assert mirror.stop(5000 * MS)
    assert long_at(path.read_bytes(), FIRST) == 5
    counter.add(5)
    time.sleep(0.05)  # a stopped thread would write by now
    assert long_at(path.read_bytes(), FIRST) == 5


def test_new_entries_come_whole(native: Any, mirror: Any, tmp_path: Path) -> None:
    """A reader that looks all the time meets a zero length, or an entry with all of its bytes."""
    path = tmp_path / "region"
    open_file(mirror, path)
    mirror.start(1 * MS)
    seen = 0
    with path.open("rb", buffering=0) as file:
        for i in range(200):
            body = bytes([i % 255 + 1]) * 28
            assert mirror.append(struct.pack("=i", 32) + body, 1, ())
            end = time.monotonic() + 30
            while seen <= i and time.monotonic() < end:
                data = os.pread(file.fileno(), CAPACITY, 0)
                at = 32 + 32 * seen
                if data[at : at + 4] != bytes(4):
                    assert data[at + 4 : at + 32] == bytes([seen % 255 + 1]) * 28
                    seen += 1
    assert seen == 200


def test_the_prologue_follows(native: Any, mirror: Any, tmp_path: Path) -> None:
    path = tmp_path / "region"
    assert mirror.append(entry(0), 1, ())
    open_file(mirror, path)
    mirror.start(1 * MS)
    assert not mirror.append(entry(CAPACITY), 1, ())
    assert mirror.append(entry(0), 1, ())
    wait_for(lambda: struct.unpack_from("=ii", path.read_bytes(), 8) == (48, CAPACITY + 8))
    wait_for(lambda: struct.unpack_from("=i", path.read_bytes(), 28) == (2,))
    assert long_at(path.read_bytes(), 16) > 0


def test_the_clock_moves(native: Any, mirror: Any) -> None:
    clock = native.LongSlot()
    show(mirror, clock)
    mirror.set_clock(clock)
    mirror.refresh()
    first = long_at(mirror.image, FIRST)
    mirror.refresh()
    assert 0 < first < long_at(mirror.image, FIRST)


def test_an_idle_mirror_backs_off(native: Any, mirror: Any) -> None:
    clock, counter = native.LongSlot(), native.CounterSlot()
    show(mirror, clock)
    where = show(mirror, counter)
    mirror.set_clock(clock)
    mirror.start(1 * MS)
    time.sleep(1.2)  # 1, 2, 4 ... 512 ms
    before = mirror.visits
    time.sleep(1.1)  # how often it comes in that time
    assert mirror.visits - before <= 3
    counter.inc()
    wait_for(lambda: long_at(mirror.image, where) == 1, seconds=5)


def test_a_file_cut_short_does_not_grow_again(native: Any, mirror: Any, tmp_path: Path) -> None:
    path = tmp_path / "region"
    counter = native.CounterSlot()
    show(mirror, counter)
    open_file(mirror, path)
    mirror.start(1 * MS)
    wait_for(lambda: mirror.writes > 0)
    os.truncate(path, 0)
    counter.inc()
    wait_for(lambda: mirror.error == errno.EIO)
    assert path.stat().st_size == 0


def test_a_file_put_in_its_place_is_not_written(native: Any, mirror: Any, tmp_path: Path) -> None:
    path = tmp_path / "region"
    counter = native.CounterSlot()
    show(mirror, counter)
    open_file(mirror, path)
    other = tmp_path / "other"
    other.write_bytes(bytes(CAPACITY))
    other.rename(path)
    counter.inc()
    mirror.start(1 * MS)
    wait_for(lambda: mirror.error == errno.ESTALE)
    assert path.read_bytes() == bytes(CAPACITY)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_what_the_program_has_under_its_number_stays_open(native: Any, mirror: Any, tmp_path: Path) -> None:
    """Where a fork stops the thread before its next look at the file. The extension's has a table of its own."""
    show(mirror, native.CounterSlot())
    open_file(mirror, tmp_path / "region")
    mirror.start(3_600_000 * MS)
    wait_for(lambda: mirror.visits)
    (tmp_path / "other").touch()
    with open(tmp_path / "other") as other:
        number = getattr(mirror, "_fd", other.fileno())
        os.dup2(other.fileno(), number)
        native.before_fork()
        try:
            assert os.path.samestat(os.fstat(number), os.fstat(other.fileno()))
        finally:
            native.after_fork_in_parent()
        if number != other.fileno():
            os.close(number)


def test_a_mapped_file_is_the_image(native: Any, mirror: Any, tmp_path: Path) -> None:
    """Entries stand in the file at once, values at the next refresh; nothing is written to it, and nothing is open."""
    path = tmp_path / "region"
    counter, text = native.CounterSlot(), native.TextSlot(10)
    show(mirror, counter)
    open_file(mirror, path)
    where = show(mirror, text)  # after the file was made
    before = os.listdir("/proc/self/fd")
    mirror.map_file()
    if native.IMPLEMENTATION == "c":
        assert len(os.listdir("/proc/self/fd")) == len(before)
    later = show(mirror, counter)
    assert path.read_bytes()[later - 8 : later] == entry(8)[:8]
    assert bytes(mirror.image) == path.read_bytes()
    counter.add(5)
    text.set("abc")
    mirror.refresh()
    assert (long_at(path.read_bytes(), FIRST), long_at(path.read_bytes(), later)) == (5, 5)
    assert path.read_bytes()[where : where + 4] == b"abc\0"
    mirror.start(1 * MS)
    counter.add(2)
    wait_for(lambda: long_at(path.read_bytes(), later) == 7)
    counter.inc()
    assert mirror.stop(5000 * MS)
    assert long_at(path.read_bytes(), FIRST) == 8
    assert (mirror.writes, mirror.error) == (0, 0)


def test_a_mapped_file_cut_short_is_left_alone(native: Any, mirror: Any, tmp_path: Path) -> None:
    path = tmp_path / "region"
    counter = native.CounterSlot()
    show(mirror, counter)
    open_file(mirror, path)
    mirror.map_file()
    mirror.start(1 * MS)
    wait_for(lambda: mirror.visits > 0)
    os.truncate(path, 0)  # a store beyond its end would be a SIGBUS
    counter.inc()
    wait_for(lambda: mirror.error == errno.EIO)
    visits = mirror.visits
    wait_for(lambda: mirror.visits > visits)
    assert path.stat().st_size == 0


def test_what_cannot_be_mapped(native: Any, mirror: Any, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no file"):
        mirror.map_file()
    path = tmp_path / "region"
    open_file(mirror, path)
    os.truncate(path, 100)
    with pytest.raises(OSError) as cut:
        mirror.map_file()
    path.rename(tmp_path / "other")
    path.write_bytes(bytes(CAPACITY))
    with pytest.raises(OSError) as replaced:
        mirror.map_file()
    assert (cut.value.errno, replaced.value.errno) == (errno.EIO, errno.ESTALE)
    counter = native.CounterSlot()
    counter.inc()
    where = show(mirror, counter)
    mirror.refresh()
    assert long_at(mirror.image, where) == 1
    assert path.read_bytes() == bytes(CAPACITY)


def test_save_writes_the_whole_image(native: Any, mirror: Any, tmp_path: Path) -> None:
    counter = native.CounterSlot()
    show(mirror, counter)
    counter.add(9)
    path = tmp_path / "saved"
    path.write_bytes(b"x" * 100_000)
    mirror.save(os.fsencode(path))
    assert path.stat().st_size == CAPACITY
    assert long_at(path.read_bytes(), FIRST) == 9
    with pytest.raises(OSError, match="No such file"):
        mirror.save(os.fsencode(tmp_path / "missing" / "saved"))


def test_a_saved_file_is_private(native: Any, mirror: Any, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    mirror.save(os.fsencode(path))
    assert path.stat().st_mode & 0o777 == 0o600


def test_one_mirror_runs_at_a_time(native: Any, mirror: Any) -> None:
    mirror.start(5 * MS)
    with pytest.raises(RuntimeError, match="running mirror"):
        native.Mirror(CAPACITY, 0).start(5 * MS)
    assert mirror.stop(1000 * MS)
    mirror.start(5 * MS)


@pytest.mark.parametrize("interval", [0, -1])
def test_the_interval_is_positive(mirror: Any, interval: int) -> None:
    with pytest.raises(ValueError, match="0 ns"):
        mirror.start(interval)


def test_the_program_sees_no_thread_and_no_descriptor(mirror: Any, tmp_path: Path, native: Any) -> None:
    if native.IMPLEMENTATION != "c":
        pytest.skip("the twin's thread shares the descriptor table")
    before = os.listdir("/proc/self/fd")
    open_file(mirror, tmp_path / "region")
    mirror.start(1 * MS)
    wait_for(lambda: mirror.writes > 0)
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert threading.active_count() == len(threading.enumerate())
    assert [thread for thread in threading.enumerate() if "vmscope" in thread.name] == []
