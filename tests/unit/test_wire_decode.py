"""wire.decode: regions of both versions and byte orders, and what is wrong with the others."""

from __future__ import annotations

import mmap
import pickle
from pathlib import Path

import pytest

from tests import corpus
from tests.corpus import build
from tests.oracle.cases import CASES, Case
from vmscope.errors import DataError, EntryTypeError, FormatError, MagicError, StructureError, VersionError
from vmscope.wire import decode, encode

# What the JDK's reader raises, in our terms; Java's own exceptions are structure errors, or an unknown version.
KINDS: dict[str, tuple[type[FormatError], ...]] = {
    "MonitorStructureException": (StructureError,),
    "MonitorDataException": (DataError,),
    "MonitorTypeException": (EntryTypeError,),
    "MonitorVersionException": (MagicError,),
}
RUNTIME = (StructureError, VersionError)


def says_as_the_jdk(case: Case) -> bool:
    """False for what the JDK's reader adds on top of the format: waiting, and counters that it must have."""
    return not (
        case.expected == "MonitorException"
        or (case.group == "v1" and case.expected in ("NullPointerException", "ClassCastException"))
        or case.name == "magic and version"  # no region at all: that comes first here
    )


@pytest.mark.parametrize(
    "case", [case for case in CASES if says_as_the_jdk(case)], ids=lambda c: f"{c.group}: {c.name}"
)
def test_the_rules(case: Case) -> None:
    if isinstance(case.expected, str):
        with pytest.raises(KINDS.get(case.expected, RUNTIME)):
            decode.decode(case.data)
        with pytest.raises(KINDS.get(case.expected, RUNTIME)):
            decode.values(case.data)
    else:
        assert decode.decode(case.data).values(case.data) == case.expected
        assert decode.values(case.data) == case.expected


def test_most_rules_are_tried() -> None:
    tried = [case for case in CASES if says_as_the_jdk(case)]
    assert len(tried) > 400
    assert len(tried) > 0.95 * len(CASES)


@pytest.mark.parametrize("big", [False, True])
def test_everything_about_a_region(big: bool) -> None:
    first = build.entry(b"a.number", -5, units=3, variability=3, flags=0, big=big)
    second = build.entry(b"a.text", b"hello\0\0\0", variability=3, big=big)
    data = build.region([first, second], big=big, accessible=7, overflow=4, mod_time_stamp=2**40)
    region = decode.decode(data)
    found = region.prologue
    assert (found.major, found.minor, found.big, found.byte_order) == (2, 0, big, 0 if big else 1)
    assert (found.used, found.overflow, found.mod_time_stamp) == (len(first + second) + 32, 4, 2**40)
    assert (found.accessible, found.entry_offset, found.num_entries) == (7, 32, 2)
    assert region.next_offset == found.used
    number, text = region.entries
    assert (number.name, number.offset, number.data_type, number.units) == ("a.number", 32, ord("J"), 3)
    assert (number.variability, number.flags, number.supported, number.vector_length) == (3, 0, False, 0)
    assert data[number.data_offset :][:8] == build.i64(-5, big)
    assert (text.name, text.offset, text.data_type, text.units) == ("a.text", 32 + len(first), ord("B"), 5)
    assert (text.variability, text.flags, text.supported, text.vector_length) == (3, 1, True, 8)
    assert data[text.data_offset :][:5] == b"hello"
    assert "num_entries=2" in repr(found)
    assert repr(text) == f"<Entry 'a.text' at {text.offset}>"


@pytest.mark.parametrize("big", [False, True])
def test_everything_about_a_region_of_version_1(big: bool) -> None:
    first = build.v1_entry(b"a.number", -5, units=3, variability=3, flags=0, big=big)
    second = build.v1_entry(b"a.text", b"hello\0", variability=3, big=big)
    data = build.v1_region([first, second], big=big, overflow=4, mod_time_stamp=2**40)
    region = decode.decode(data)
    found = region.prologue
    assert (found.major, found.minor, found.big) == (1, 0, big)
    assert (found.used, found.overflow, found.mod_time_stamp) == (len(first + second) + 24, 4, 2**40)
    assert (found.accessible, found.entry_offset, found.num_entries) == (1, 24, 0)
    number, text = region.entries
    assert (number.name, number.offset, number.data_type, number.supported) == ("a.number", 24, ord("J"), False)
    assert (text.name, text.data_type, text.vector_length, text.supported) == ("a.text", ord("B"), 6, True)
    assert region.values(data) == decode.values(data) == {"a.number": -5, "a.text": "hello"}


def test_the_values_of_another_moment() -> None:
    then = build.region([build.entry(b"n", 1), build.entry(b"t", b"one\0\0\0")])
    now = build.region([build.entry(b"n", 2), build.entry(b"t", b"three\0")])
    region = decode.decode(then)
    assert region.values(now) == {"n": 2, "t": "three"}
    assert region.values(bytearray(then)) == {"n": 1, "t": "one"}
    with pytest.raises(StructureError, match="entry 't'") as caught:
        region.values(then[: region.entries[1].data_offset + 2])
    assert (caught.value.entry, caught.value.offset) == ("t", region.entries[1].data_offset)


def test_any_buffer_will_do(tmp_path: Path) -> None:
    data = build.region([build.entry(b"n", 1)], size=mmap.PAGESIZE)
    path = tmp_path / "region"
    path.write_bytes(data)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for buffer in (data, bytearray(data), memoryview(data), memoryview(data).cast("q"), mapped):
            assert decode.decode(buffer).values(buffer) == decode.values(buffer) == {"n": 1}


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", StructureError, "no region: 0 bytes, the least is 24"),
        (b"\xca\xfe", StructureError, "no region: 2 bytes, the least is 24"),
        (b"PK\x03\x04" + bytes(60), MagicError, "no region: it starts with 50 4b 03 04, not ca fe c0 c0"),
        (bytes(4096), MagicError, "no region: it starts with 00 00 00 00, not ca fe c0 c0"),
        (encode.prologue()[:31], StructureError, "prologue runs past the region's end: 31 bytes, the least is 32"),
        (
            build.region([], major=3, minor=1),
            VersionError,
            "region version 3.1 is none that can be read (2.0, 1.0)",
        ),
        (
            build.region([build.entry(b"a", 1), build.entry(b"b", 1, data_type=ord("I"))]),
            EntryTypeError,
            "scalar of a type other than J: 73 (offset 76, entry 'b')",
        ),
        (
            build.region([build.entry(b"a", 1, units=0)]),
            DataError,
            "unknown units code: 0 (offset 46, entry 'a')",
        ),
        (
            build.region([build.entry(b"a", 1, entry_length=-8)]),
            StructureError,
            "entry length is negative or runs past the region's end: -8 (offset 32)",
        ),
        (
            build.region([build.entry(b"a\n\x1b", 1, variability=4)]),
            DataError,
            "unknown variability code: 4 (offset 47, entry 'a\\n\\x1b')",
        ),
        (
            build.v1_region([build.v1_entry(b"a", 1, data_type=10)]),
            EntryTypeError,
            "scalar of a type other than long: 10 (offset 36, entry 'a')",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_error_says_what_and_where(data: bytes, error: type[FormatError], message: str) -> None:
    with pytest.raises(error) as caught:
        decode.decode(data)
    assert type(caught.value) is error
    assert str(caught.value) == message
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.offset, copy.entry) == (message, caught.value.offset, caught.value.entry)


def test_the_jdks_own_counters_of_a_region() -> None:
    data = build.region([build.entry(b"a", 1)], overflow=9, mod_time_stamp=5)
    assert decode.prologue_values(decode.prologue(data), len(data)) == {
        "sun.perfdata.majorVersion": 2,
        "sun.perfdata.minorVersion": 0,
        "sun.perfdata.overflow": 9,
        "sun.perfdata.size": 4096,
        "sun.perfdata.timestamp": 5,
        "sun.perfdata.used": 64,
    }


@pytest.mark.parametrize("name", [name for name in corpus.names() if not name.startswith("made-")])
def test_regions_of_real_vms(name: str) -> None:
    data = corpus.load(name)
    values = decode.values(data)
    assert values == decode.decode(data).values(data)
    assert len(values) == decode.prologue(data).num_entries
    assert (decode.prologue(data).overflow > 0) == name.endswith("-overflow")
    if not name.endswith("-overflow"):
        version = values["java.property.java.vm.version"]
        assert isinstance(version, str)
        assert version.startswith(name.split("-")[0].rsplit(".", 1)[0])
        assert values["sun.os.hrt.frequency"] == 10**9
