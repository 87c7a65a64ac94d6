"""Recordings that a test writes: both kinds of integers, every encoding of strings, damage anywhere."""

from __future__ import annotations

import pickle
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.flight.jfr_writer import START, Writer, varint
from tests.support import JDK, PATIENCE
from vmscope.errors import RecordingFormatError
from vmscope.flight.convert import encoding, recording
from vmscope.flight.convert.chunk import Value

TEXT = "Größe 你好 😀"
NUMBERS = ["z boolean", "b byte", "c char", "s short", "i int", "l long", "f float", "d double"]
WIDE = {"test.Pair": ["left int", "right *jdk.types.Symbol"], "jdk.types.Symbol": ["string java.lang.String"]}


def written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def fields_of(value: Value) -> dict[str, object]:
    """All of it, nested."""

    def plain(one: object) -> object:
        if isinstance(one, list):
            return [plain(each) for each in one]
        return fields_of(one) if isinstance(one, Value) else one

    return {name: plain(value[name]) for name in value.type.fields}


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("minor", [0, 1])
def test_each_type_of_number_and_string_comes_out_as_it_went_in(tmp_path: Path, compressed: bool, minor: int) -> None:
    fields = ["startTime long", *NUMBERS, "text java.lang.String", "pooled *jdk.types.Symbol", "pair test.Pair",
              "pairs test.Pair[]", "longs long[]", "symbols *jdk.types.Symbol[]",
              "texts java.lang.String[]"]  # fmt: skip
    writer = Writer({"test.All": fields}, WIDE, compressed=compressed, minor=minor)
    symbol = writer.pooled("jdk.types.Symbol", TEXT)
    numbers = [True, -3, 0xD83D, -30_000, -(2**31), -(2**63), 1.5, -2.25]
    texts: list[bytes | str | None] = [
        None, b"\1", TEXT, b"\5" + writer.number("int", 3) + "Grö".encode("latin-1"),
        b"\4" + writer.number("int", 2) + writer.number("char", 0xD83D) + writer.number("char", 0xDE00),
    ]  # fmt: skip
    writer.event("test.All", START, *numbers, TEXT, symbol, (7, symbol), [(8, symbol), (-9, 0)], [1, -1, 2**40],
                 [symbol, 99], texts)  # fmt: skip
    (event,) = recording.events(written(tmp_path / "a.jfr", writer.chunk()), "test.All")
    assert fields_of(event) == {
        "startTime": START, "z": True, "b": -3, "c": 0xD83D, "s": -30_000, "i": -(2**31), "l": -(2**63), "f": 1.5,
        "d": -2.25, "text": TEXT, "pooled": TEXT, "pair": {"left": 7, "right": TEXT},
        "pairs": [{"left": 8, "right": TEXT}, {"left": -9, "right": None}], "longs": [1, -1, 2**40],
        "symbols": [TEXT, None], "texts": [None, "", TEXT, "Grö", "😀"],
    }  # fmt: skip
    assert event.start == START


@pytest.mark.parametrize("compressed", [True, False])
def test_a_string_may_stand_in_the_pool_of_strings(tmp_path: Path, compressed: bool) -> None:
    writer = Writer({"test.Text": ["startTime long", "text java.lang.String"]}, {}, compressed=compressed)
    key = writer.pooled("java.lang.String", TEXT)
    writer.event("test.Text", START, b"\2" + writer.number("long", key))
    writer.event("test.Text", START, b"\2" + writer.number("long", 77))
    path = written(tmp_path / "a.jfr", writer.chunk())
    assert [event["text"] for event in recording.events(path)] == [TEXT, None]


def test_the_jdk_reads_what_the_tests_write(jdk: JDK, tmp_path: Path) -> None:
    """Else it would be a format of the tests' own. The JDK's own reader knows compressed integers alone."""
    writer = Writer()
    writer.sample("jdk.ExecutionSample", "main", "shop/Orders.main", "shop/Orders.price")
    path = written(tmp_path / "a.jfr", writer.chunk() * 2)
    command = [jdk.tool("jfr"), "print", path]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    assert shown.count("jdk.ExecutionSample {") == 2
    assert shown.count("shop.Orders.price()") == 2


def test_times_are_those_of_the_chunk_s_clock(tmp_path: Path) -> None:
    writer = Writer(ticks_per_second=10**6)
    writer.event("jdk.JavaMonitorEnter", START + 500, 2000, writer.thread("main"), writer.stack("a.b"), 0)
    (event,) = recording.events(written(tmp_path / "a.jfr", writer.chunk()), "jdk.JavaMonitorEnter")
    assert (event.start - START, event.duration) == (500_000, 2_000_000)


def test_events_of_other_types_are_passed_over_and_chunks_follow_each_other(tmp_path: Path) -> None:
    writer = Writer()
    for number in range(300):
        writer.sample("jdk.ExecutionSample", "main", "shop.a", f"shop.f{number}")
        writer.wait("main", 1, "shop.a")
    path = written(tmp_path / "a.jfr", writer.chunk() + Writer().chunk() + writer.chunk())
    found = list(recording.events(path, "jdk.ExecutionSample", "jdk.NotThere"))
    assert len(found) == 600
    stack = found[299].value("stackTrace")
    assert stack is not None
    method = stack.values("frames")[0].value("method")
    assert method is not None
    assert method.text("name") == "f299"
    assert len(list(recording.events(path))) == 1200


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints(value: int) -> None:
    data = varint(value) + b"\xff"
    raw, at = encoding.varint(data, 0)
    assert (encoding.signed(raw, 64), at) == (value, len(data) - 1)
    assert encoding.varints(data, 0, 1) == ([raw], at)


# -- damage ---------------------------------------------------------------------------------------


def small() -> Writer:
    writer = Writer()
    writer.sample("jdk.ExecutionSample", "main", "shop/Orders.main", "shop/Orders.price")
    writer.wait("main", 3, "shop/Orders.main")
    return writer


def read_all(path: str) -> int:
    """Looks at every value; how many events there are."""
    events = list(recording.events(path))
    for event in events:
        fields_of(event)
    return len(events)


HEADER_FAULTS: dict[str, tuple[int, bytes, str]] = {
    "magic": (0, b"FLX\0", "no flight recording"),
    "version": (4, b"\0\3", "version 3.1 of the format"),
    "unfinished": (64, b"\xff", "not finished"),
    "no size": (8, bytes(8), "not finished"),
    "small": (8, struct.pack(">q", 67), "a chunk of 67 bytes"),
    "negative": (8, struct.pack(">q", -1), "a chunk of -1 bytes"),
    "too large": (8, struct.pack(">q", 1 << 60), f"a chunk of {1 << 60} bytes, where"),
    "types elsewhere": (24, struct.pack(">q", 1 << 40), f"an event at {1 << 40}"),
    "types before": (24, struct.pack(">q", -5), "an event at -5"),
    "pools elsewhere": (16, struct.pack(">q", 1 << 40), f"an event at {1 << 40}"),
    "no ticks": (56, bytes(8), "0 ticks in a second"),
}


@pytest.mark.parametrize("fault", HEADER_FAULTS)
def test_a_wrong_header_is_an_error_that_says_where(tmp_path: Path, fault: str) -> None:
    at, data, message = HEADER_FAULTS[fault]

    def change(chunk: bytearray) -> None:
        chunk[at : at + len(data)] = data

    good = small().chunk()
    path = written(tmp_path / "a.jfr", good + small().chunk(change=change))
    with pytest.raises(RecordingFormatError, match=message) as error:
        read_all(path)
    assert error.value.path == path
    assert error.value.offset >= len(good)
    assert path in str(error.value)
    again = pickle.loads(pickle.dumps(error.value))
    assert (str(again), again.offset) == (str(error.value), error.value.offset)


def test_what_is_not_a_file_is_an_error(tmp_path: Path) -> None:
    for path in ("/dev/zero", str(tmp_path)):
        with pytest.raises((RecordingFormatError, IsADirectoryError)):
            read_all(path)
    with pytest.raises(RecordingFormatError, match="it is empty"):
        read_all(written(tmp_path / "empty.jfr", b""))
    with pytest.raises(RecordingFormatError, match="7 bytes follow its last chunk"):
        read_all(written(tmp_path / "more.jfr", small().chunk() + b"garbage"))


def test_types_within_types_without_an_end_are_an_error(tmp_path: Path) -> None:
    writer = Writer({"test.Loop": ["startTime long", "a test.Ring"]}, {"test.Ring": ["b test.Ring", "c test.Ring"]})
    writer.body.append(writer.sized(writer.number("long", writer.numbers["test.Loop"]) + bytes(40)))
    with pytest.raises(RecordingFormatError, match="values within values without an end"):
        read_all(written(tmp_path / "a.jfr", writer.chunk()))
    empty = Writer({"test.Empty": ["startTime long", "a test.Nothing[]"]}, {"test.Nothing": []})
    empty.body.append(empty.sized(empty.number("long", empty.numbers["test.Empty"]) + b"\1" + b"\xff" * 9))
    with pytest.raises(RecordingFormatError, match="has no fields"):
        read_all(written(tmp_path / "b.jfr", empty.chunk()))


def test_a_chain_of_checkpoints_ends(tmp_path: Path) -> None:
    writer = small()
    forward = writer.chunk()
    head = writer.checkpoint({}, 0)

    def change(chunk: bytearray) -> None:
        at = struct.unpack_from(">q", chunk, 16)[0]
        chunk[at : at + len(head) + 8] = writer.checkpoint({}, 1)[:-1] + b"\0" * 9

    with pytest.raises(RecordingFormatError):
        read_all(written(tmp_path / "a.jfr", writer.chunk(change=change)))
    assert read_all(written(tmp_path / "b.jfr", forward)) == 2


@settings(max_examples=300, deadline=None)
@given(st.data(), st.booleans())
def test_damage_anywhere_is_an_error_of_ours_or_other_values(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, compressed: bool
) -> None:
    """Whatever stands there: no other error, and an end."""
    writer = small()
    writer.compressed = compressed
    chunk = bytearray(writer.chunk())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(chunk) - 1))
        chunk[at : at + 1] = data.draw(st.binary(min_size=1, max_size=9))
    cut = data.draw(st.integers(0, len(chunk)))
    path = tmp_path_factory.getbasetemp() / "damaged.jfr"
    try:
        read_all(written(path, bytes(chunk[:cut] if data.draw(st.booleans()) else chunk)))
    except RecordingFormatError:
        pass


@pytest.mark.parametrize("version", [17, 25])
def test_a_real_recording_cut_or_changed_is_an_error_or_is_read(
    recording_of: Callable[[int], tuple[JDK, Path]], tmp_path: Path, version: int
) -> None:
    _, path = recording_of(version)
    whole = path.read_bytes()
    names = ("jdk.ExecutionSample", "jdk.ObjectAllocationSample")
    for step in range(1, 40):
        at = len(whole) * step // 40
        damaged = bytearray(whole)
        damaged[at : at + 4] = b"\xff\xff\xff\xff"
        for data in (whole[:at], bytes(damaged)):
            try:
                for event in recording.events(written(tmp_path / "a.jfr", data), *names):
                    fields_of(event)
            except RecordingFormatError:
                pass
