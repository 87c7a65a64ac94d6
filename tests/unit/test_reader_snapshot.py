"""Reading a region that its owner goes on writing: nothing half, nothing torn, nothing that nobody wrote."""

from __future__ import annotations

import importlib
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import corpus
from tests.fuzz import mutate
from tests.published import CONSTANT, entries, image, region
from vmscope import native
from vmscope.errors import FormatError, ReadTimeout, StaleRegion
from vmscope.native.region import mapping as twin
from vmscope.reader import snapshot
from vmscope.reader.snapshot import RETRIES, Reader
from vmscope.wire import decode, encode

Open = Callable[[Path], Reader]


@pytest.fixture(params=["c", "python"])
def read(request: pytest.FixtureRequest) -> Open:
    """Opens a file as a Reader, through the extension's Mapping and through the twin's."""
    kind: Any = twin.Mapping
    if request.param == "c":
        try:
            kind = importlib.import_module("vmscope.native._native").Mapping
        except ImportError:
            pytest.skip("the extension is not built")

    def opened(path: Path) -> Reader:
        with path.open("rb") as file:
            return Reader(kind(file.fileno(), os.fstat(file.fileno()).st_size), str(path), 4711)

    return opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "region"


def rewrite(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), content, offset)


# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", corpus.names())
def test_all_regions_again_and_again(read: Open, path: Path, name: str) -> None:
    """The first look, and those through a structure, give what the decoder gives; other byte order and 1.0 too."""
    path.write_bytes(corpus.load(name))
    reader = read(path)
    wanted = decode.decode(corpus.load(name)).values(corpus.load(name))
    for _ in range(4):
        assert reader.values() == wanted
    taken = reader.snapshot()
    assert taken.values == wanted
    assert taken.settled
    assert abs(taken.taken - time.time_ns()) < 10**10


def test_a_later_look_sees_later_values(read: Open, path: Path) -> None:
    path.write_bytes(region({"a": 1, "text": "one", "b": 2}))
    reader = read(path)
    for step in range(5):
        assert reader.values() == {"a": step or 1, "text": f"{step}" if step else "one", "b": 2}
        at = {row[1]: row[7] for row in reader.structure().rows}
        rewrite(path, at["a"], struct.pack("=q", step + 1))
        rewrite(path, at["text"], f"{step + 1}\0".encode())


def test_a_value_on_its_own(read: Open, path: Path) -> None:
    path.write_bytes(corpus.load("made-big-endian"))
    reader = read(path)
    values = reader.values()
    for _, name, data_type, _, _, _, length, start in reader.structure().rows:
        assert reader.value(data_type, start, length) == values[name]


def test_the_second_look_parses_nothing(read: Open, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(corpus.load("17.0.15-debian-g1"))
    reader = read(path)
    reader.snapshot()
    wanted = reader.values()

    def refuse(*_: object) -> None:
        raise AssertionError("parsed again")

    for name in ("scan", "read"):
        monkeypatch.setattr(native, name, refuse)
    assert reader.values() == wanted


def test_numbers_that_are_not_aligned(read: Open, path: Path) -> None:
    """No HotSpot lays them out so, but the JDK's reader takes them."""
    made = bytearray(image(entries({"first": 2**60 + 1, "odd1": 2**61 + 3})))
    last = decode.decode(bytes(made)).entries[1]
    struct.pack_into("=i", made, last.offset + 16, last.data_offset - last.offset - 4)
    path.write_bytes(bytes(made))
    reader = read(path)
    wanted = decode.decode(bytes(made)).values(bytes(made))
    for _ in range(4):
        assert reader.values() == wanted
    rewrite(path, last.data_offset - 4, struct.pack("=q", 5))
    assert reader.values()["odd1"] == 5


# -- the structure grows --------------------------------------------------------------------------


class Writer:
    """Adds entries as vmscope does: the body, then its length, then the prologue."""

    def __init__(self, path: Path, size: int = 65536) -> None:
        path.write_bytes(image([], size=size))
        self.fd = os.open(path, os.O_RDWR)
        self.end = 32
        self.count = 0

    def add(self, entry: bytes) -> None:
        os.pwrite(self.fd, entry[4:], self.end + 4)
        os.pwrite(self.fd, entry[:4], self.end)
        self.end += len(entry)
        self.count += 1
        self.publish()

    def publish(self) -> None:
        os.pwrite(self.fd, struct.pack("=i", self.end), 8)
        os.pwrite(self.fd, struct.pack("=i", self.count), 28)
        os.pwrite(self.fd, struct.pack("=q", time.monotonic_ns()), 16)


def number(name: str, value: int) -> bytes:
    return encode.entry(name, units=1, variability=3, value=value)


def test_new_entries_are_found(read: Open, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(path)
    reader = read(path)
    assert reader.values() == {}
    wanted: dict[str, int | str] = {}
    parsed_from: list[int] = []
    scan = native.scan

    def watched(data: bytes, offset: int, big: bool) -> object:
        parsed_from.append(offset)
        return scan(data, offset, big)

    monkeypatch.setattr(native, "scan", watched)
    for count in range(1, 40):
        writer.add(number(f"n.{count}", count))
        wanted[f"n.{count}"] = count
        if count % 3 == 0:
            writer.add(encode.entry(f"t.{count}", units=5, variability=1, value=b"text"))
            wanted[f"t.{count}"] = "text"
        assert reader.values() == wanted
    assert len(parsed_from) >= 30
    assert parsed_from[-1] > 1000  # it goes on from the last known entry, and not from the first


def test_an_entry_whose_text_comes_later(read: Open, path: Path) -> None:
    """HotSpot writes an entry, and then its text: an empty constant is looked at again."""
    path.write_bytes(image(entries({"early": ""}, variability=CONSTANT)))
    reader = read(path)
    reader.snapshot()
    assert reader.values() == {"early": ""}
    rewrite(path, reader.structure().rows[0][7], b"late\0")
    assert reader.values() == {"early": "late"}


def test_a_prologue_that_lies(read: Open, path: Path) -> None:
    """Read as the JDK's reader does, which looks at neither `used` nor the count; in bounded time."""
    good = region({"one": 1, "two": 2, "text": "three"})
    wanted: dict[str, int | str] = {"one": 1, "two": 2, "text": "three"}
    for used in (0, -1, 1, 31, 32, 33, 40, 72, 100, 2**31 - 1, len(good), len(good) - 2):
        for count in (0, -5, 1, 3, 4, 2**31 - 1):
            made = bytearray(good)
            struct.pack_into("=i", made, 8, used)
            struct.pack_into("=i", made, 28, count)
            path.write_bytes(bytes(made))
            reader = read(path)
            begin = time.thread_time()
            for _ in range(4):
                assert reader.values() == wanted, (used, count)
            assert time.thread_time() - begin < 2


class Counted:
    """A mapping that counts the bytes that are read, and the calls that read them."""

    def __init__(self, mapping: Any) -> None:
        self._mapping = mapping
        self.size = mapping.size
        self.count = self.calls = 0

    def read(self, offset: int, length: int) -> bytes:
        self.count += length
        self.calls += 1
        data: bytes = self._mapping.read(offset, length)
        return data

    def read_in_order(self, *ranges: tuple[int, int]) -> tuple[bytes, ...]:
        self.count += sum(length for _, length in ranges)
        self.calls += 1
        data: tuple[bytes, ...] = self._mapping.read_in_order(*ranges)
        return data

    def gather(self, offsets: memoryview, out: memoryview) -> None:
        self.count += len(out) * 8
        self._mapping.gather(offsets, out)

    def grow(self, size: int) -> bool:
        return bool(self._mapping.grow(size))


def counted(reader: Reader) -> Counted:
    mapping = Counted(reader.mapping)
    reader.mapping = mapping  # type: ignore[assignment]
    return mapping


@pytest.mark.parametrize("used", [8 << 20, 2**31 - 1, (8 << 20) - 64])
@pytest.mark.parametrize("count", [3, 2**31 - 1])
def test_no_more_is_copied_than_there_is(read: Open, path: Path, used: int, count: int) -> None:
    """Whatever a region of 8 MiB says, its three entries are all that is there."""
    values: dict[str, int | str] = {"one": 1, "two": 2, "text": "three"}
    made = bytearray(region(values, size=8 << 20))
    struct.pack_into("=i", made, 8, used)
    struct.pack_into("=i", made, 28, count)
    path.write_bytes(made)
    reader = read(path)
    mapping = counted(reader)
    assert reader.some(("one",)) == {"one": 1}
    assert mapping.count <= 300 << 10
    for _ in range(4):
        assert reader.values() == values
    assert mapping.count <= 4 << 20


CLOCKED: dict[str, int | str] = {"vmscope.version": "1", "sun.os.hrt.ticks": 4, "text": "quiet", "n": 7}


@pytest.mark.parametrize("values", [CLOCKED, {"sun.os.hrt.ticks": 5, "n": 7}, {"n": 7}])
def test_the_first_values_take_one_call_where_the_region_was_looked_at(
    read: Open, path: Path, values: dict[str, int | str]
) -> None:
    """Each call has a guard: the listing of VMs looks at what each is, and its user then reads the values.

    A JVM's clock has nothing to say of its texts, and not every region has one.
    """
    path.write_bytes(region(values))
    reader = read(path)
    mapping = counted(reader)
    assert reader.some(("n",)) == {"n": 7}
    assert mapping.calls == 2
    assert reader.values() == values
    assert mapping.calls == 3


def test_what_was_seen_of_a_region_does_not_hide_what_has_come_since(read: Open, path: Path) -> None:
    """Between the look at what a VM is and the first values it adds entries, or begins to replace texts."""
    writer = Writer(path)
    for name, value in CLOCKED.items():
        texts = isinstance(value, str) and encode.entry(name, units=5, variability=1, value=value.encode())
        writer.add(texts or number(name, int(value)))
    reader = read(path)
    assert reader.some(("n",)) == {"n": 7}
    writer.add(number("more", 8))
    assert reader.values() == {**CLOCKED, "more": 8}
    assert reader.some(("more",)) == {"more": 8}
    assert reader.values() == {**CLOCKED, "more": 8}


@pytest.mark.parametrize("seen", [True, False])
def test_a_first_read_during_which_the_region_is_made_anew(read: Open, path: Path, seen: bool) -> None:
    """It does not count: the prologue is read before the entries and after them."""

    class Changing(Counted):
        def read_in_order(self, *ranges: tuple[int, int]) -> tuple[bytes, ...]:
            before = super().read_in_order(*ranges[:-1])
            rewrite(path, 0, region({"n": 9}, stamp=9))
            return before + super().read_in_order(ranges[-1])

    path.write_bytes(region({"n": 7}, stamp=5))
    reader = read(path)
    reader.mapping = Changing(reader.mapping)  # type: ignore[assignment]
    if seen:
        assert reader.some(("n",)) == {"n": 7}
    assert reader.values() == {"n": 9}


@pytest.mark.parametrize("seen", [True, False])
def test_texts_that_are_being_replaced_at_the_first_read(
    read: Open, path: Path, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    """An odd clock says so, whether the region was looked at before or not."""
    monkeypatch.setattr(snapshot, "_TEXT_PAUSES", (0.0,))
    path.write_bytes(region(CLOCKED))
    reader = read(path)
    clock = next(row[7] for row in read(path).structure().rows if row[1] == "sun.os.hrt.ticks")
    if seen:
        reader.some(("n",))
    rewrite(path, clock, struct.pack("=q", 5))
    assert reader.values()["text"] == "quiet"
    assert not reader.whole
    rewrite(path, clock, struct.pack("=q", 6))
    assert reader.snapshot().whole


def test_a_large_region_is_copied_twice_at_most(read: Open, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never stands still, too."""
    values: dict[str, int | str] = {f"n.{number}": number for number in range(60_000)}
    made = bytearray(region(values, size=4 << 20))
    struct.pack_into("=i", made, 28, 2**31 - 1)
    path.write_bytes(made)
    reader = read(path)
    mapping = counted(reader)
    stamps = iter(range(2, 1000))
    parse = native.scan

    def scan(*arguments: Any) -> Any:
        rewrite(path, 16, struct.pack("=q", next(stamps)))
        return parse(*arguments)

    monkeypatch.setattr(native, "scan", scan)
    with pytest.raises(FormatError, match="changed in each of 1 copies"):
        reader.structure()
    assert mapping.count < 3 * len(made)


def test_a_region_of_more_entries_than_can_be_read(read: Open, path: Path) -> None:
    long = [encode.entry(f"t.{number}", units=5, variability=3, value=b"x", capacity=1 << 20) for number in range(17)]
    path.write_bytes(image(long, size=20 << 20))
    reader = read(path)
    mapping = counted(reader)
    for _ in range(3):
        with pytest.raises(FormatError, match="take more than 16,777,216 bytes") as caught:
            reader.values()
        assert (caught.value.path, caught.value.pid) == (str(path), 4711)
    assert mapping.count < 8 * len(long) << 20
    with pytest.raises(FormatError, match="no counter of its first 262,144 bytes"):
        reader.some(("t.0",))


def test_a_read_has_a_time(read: Open, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, int | str] = {"one": 1, "text": "two"}
    made = bytearray(region(values))
    struct.pack_into("=i", made, 28, 5)  # it says that there are more
    path.write_bytes(made)
    monkeypatch.setattr(snapshot, "PATIENCE", -1.0)
    for look in (Reader.structure, Reader.values):
        with pytest.raises(ReadTimeout, match="cannot be read within") as caught:
            look(read(path))
        assert (caught.value.path, caught.value.pid) == (str(path), 4711)
        assert caught.value.hint
    assert read(path).some(("one",)) == {"one": 1}
    path.write_bytes(region(values))
    reader = read(path)
    reader.structure()
    with pytest.raises(ReadTimeout):  # its texts
        reader.values()


@pytest.mark.parametrize("name", corpus.names())
def test_some_counters(read: Open, path: Path, name: str) -> None:
    """The same values as those of a whole look."""
    path.write_bytes(corpus.load(name))
    reader = read(path)
    wanted = decode.values(corpus.load(name))
    asked = (*list(wanted)[::7], "java.property.java.home", "sun.rt.createVmBeginTime", "not.there", "sun.gc")
    wanted = {key: wanted[key] for key in asked if key in wanted}
    assert reader.some(asked) == reader.some(asked, sound=True) == wanted


def test_some_counters_of_a_region_that_has_their_names_elsewhere(read: Open, path: Path) -> None:
    """In a text, or as the end of a longer name: no such counter, and no error."""
    path.write_bytes(region({"a.text": "x" * 40 + "wanted", "longer.wanted": 3, "z": 4}))
    assert read(path).some(("wanted",)) == {}
    path.write_bytes(region({"a.text": "wanted", "wanted": 5, "longer.wanted": 3, "b.text": "x" * 40 + "wanted"}))
    assert read(path).some(("wanted", "longer.wanted")) == {"wanted": 5, "longer.wanted": 3}


@pytest.mark.parametrize(
    ("offset", "content"),
    [(0, b"xxxx"), (5, b"\x09"), (32, b"\xff\xff\xff\x7f"), (32, b"\x02\0\0\0"), (44, b"Q"), (46, b"\x07")],
)
def test_what_is_no_region(read: Open, path: Path, offset: int, content: bytes) -> None:
    path.write_bytes(region({"one": 1}))
    rewrite(path, offset, content)
    reader = read(path)
    for _ in range(3):
        with pytest.raises(FormatError) as caught:
            reader.values()
        assert caught.value.path == str(path)
        assert caught.value.pid == 4711


@pytest.mark.parametrize("size", [0, 1, 7, 31, 32, 33, 36, 40])
def test_very_short_files(read: Open, path: Path, size: int) -> None:
    path.write_bytes(region({"one": 1})[:32].ljust(size, b"\0")[:size] if size else b"")
    if size == 0:
        with pytest.raises(ValueError, match="cannot map"):
            read(path)
        return
    try:
        wanted: object = decode.decode(path.read_bytes()).values(path.read_bytes())
    except FormatError as error:
        wanted = type(error)
    try:
        found: object = read(path).values()
    except FormatError as error:
        found = type(error)
    assert found == wanted


def test_an_entry_that_is_there_before_the_prologue_counts_it(read: Open, path: Path) -> None:
    """It is read, and what else changes in the prologue does not make it vanish."""
    writer = Writer(path)
    writer.add(number("one", 1))
    os.pwrite(writer.fd, number("two", 2), writer.end)
    reader = read(path)
    assert reader.snapshot().values == {"one": 1, "two": 2}
    rewrite(path, 12, struct.pack("=i", 96))  # overflow
    assert reader.values() == {"one": 1, "two": 2}
    writer.add(number("two", 2))
    writer.add(number("three", 3))
    assert reader.values() == {"one": 1, "two": 2, "three": 3}


def test_damaged_regions(read: Open, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the prologue says of its size: the values that the decoder finds in all of it, or its error."""
    monkeypatch.setattr(snapshot, "_PAUSES", (0.0,) * RETRIES)
    readable = 0
    for number in range(600):
        data = mutate.mutant(3, number)
        path.write_bytes(data)
        try:
            wanted: object = decode.decode(data).values(data)
        except FormatError as error:
            wanted = type(error)
        reader = read(path)
        for _ in range(4):
            try:
                found: object = reader.values()
            except FormatError as error:
                found = type(error)
            assert found == wanted, number
        readable += isinstance(wanted, dict)
        reader.mapping.close()
    assert 150 < readable < 500


# -- regions that end or begin anew ---------------------------------------------------------------


def test_a_truncated_region_is_stale(read: Open, path: Path) -> None:
    path.write_bytes(region({f"n.{i}": i for i in range(500)}, size=65536))
    reader = read(path)
    reader.snapshot()
    assert reader.values()["n.499"] == 499
    os.truncate(path, 4096)
    for _ in range(3):
        with pytest.raises(StaleRegion, match="was truncated") as caught:
            reader.values()
        assert (caught.value.pid, caught.value.path) == (4711, str(path))
    os.truncate(path, 0)
    with pytest.raises(StaleRegion):
        reader.prologue()
    with pytest.raises(StaleRegion):
        read_again(read, path)


def read_again(read: Open, path: Path) -> None:
    os.truncate(path, 4096)
    reader = read(path)
    os.truncate(path, 0)
    reader.values()


def test_a_region_that_another_vm_made_anew_in_the_same_file(read: Open, path: Path) -> None:
    """HotSpot takes over a file of its name: the old structure must not be laid over the new numbers."""
    begin = {"sun.rt.createVmBeginTime": 1000}
    for new in (
        region({**begin}, stamp=5),
        region({f"x.{i}": 7 for i in range(300)} | {"sun.rt.createVmBeginTime": 2000}, stamp=9),
        region({"b": 1, "sun.rt.createVmBeginTime": 2000, "a": 1}),
        region({"a": 1, "sun.rt.createVmBeginTime": 2000, "b": 1}),
        bytes(8 * 4096),
    ):
        path.write_bytes(region({"a": 1, **begin, "b": 2}))
        reader = read(path)
        reader.snapshot()
        assert reader.values() == {"a": 1, "b": 2, **begin}
        rewrite(path, 0, new)
        with pytest.raises((StaleRegion, FormatError)):
            reader.values()
