"""wire.encode: the bytes that HotSpot would write."""

from __future__ import annotations

import struct

import pytest

from tests import corpus
from tests.corpus import build
from vmscope.errors import CounterNameError
from vmscope.wire import codes, decode, encode, layout

NATIVE_WRITERS = [name for name in corpus.names() if not name.startswith("made-")]


def test_a_prologue() -> None:
    little = encode.prologue(used=72, overflow=3, mod_time_stamp=5, num_entries=1, accessible=1, big=False)
    assert little.hex(" ", 4) == "cafec0c0 01020001 48000000 03000000 05000000 00000000 20000000 01000000"
    big = encode.prologue(used=72, overflow=3, mod_time_stamp=5, num_entries=1, accessible=1, big=True)
    assert big.hex(" ", 4) == "cafec0c0 00020001 00000048 00000003 00000000 00000005 00000020 00000001"


def test_a_number() -> None:
    entry = encode.entry("a.b", units=codes.Units.EVENTS, variability=codes.Variability.MONOTONIC, value=-2, big=False)
    assert entry.hex(" ", 4) == "20000000 14000000 00000000 4a010402 18000000 612e6200 feffffff ffffffff"
    entry = encode.entry("a.b", units=4, variability=2, value=-2, big=True)
    assert entry.hex(" ", 4) == "00000020 00000014 00000000 4a010402 00000018 612e6200 ffffffff fffffffe"


def test_a_text_stands_right_behind_its_name() -> None:
    entry = encode.entry("a.b.c", units=5, variability=1, value=b"hi", flags=0, big=False)
    assert entry.hex(" ", 4) == "20000000 14000000 03000000 42000501 1a000000 612e622e 63006869 00000000"


@pytest.mark.parametrize(
    ("value", "capacity", "vector_length"), [(b"", 0, 1), (b"abc", 0, 4), (b"abc", 81, 81), (b"abc", 2, 4)]
)
def test_a_text_has_room_for_its_nul(value: bytes, capacity: int, vector_length: int) -> None:
    entry = encode.entry("x", units=5, variability=3, value=value, capacity=capacity, big=False)
    assert struct.unpack_from("<i", entry, layout.VECTOR_LENGTH_OFFSET) == (vector_length,)
    assert entry[22:].rstrip(b"\0") == value
    assert len(entry) % layout.ENTRY_ALIGNMENT == 0
    assert len(entry) >= 22 + vector_length


@pytest.mark.parametrize("length", range(1, 20))
def test_numbers_are_aligned(length: int) -> None:
    name = "n" * length
    entry = encode.entry(name, units=1, variability=1, value=1 << 62, big=False)
    start = encode.data_offset(name, ord("J"))
    assert start % 8 == 0
    assert struct.unpack_from("<i", entry, layout.DATA_OFFSET_OFFSET) == (start,)
    assert struct.unpack_from("<q", entry, start) == (1 << 62,)
    assert encode.data_offset(name, ord("B")) == 20 + length + 1


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("value", [7, -(2**63), 2**63 - 1, b"", b"text", b"\xc3\xa9"])
def test_another_encoder_gives_the_same(big: bool, value: int | bytes) -> None:
    units = codes.Units.STRING if isinstance(value, bytes) else codes.Units.HERTZ
    ours = encode.entry("some.name", units=units, variability=3, value=value, big=big)
    other = value + b"\0" if isinstance(value, bytes) else value
    assert ours == build.entry(b"some.name", other, units=units, variability=3, big=big)


@pytest.mark.parametrize("name", NATIVE_WRITERS)
def test_hotspot_wrote_the_same_bytes(name: str) -> None:
    data = corpus.load(name)
    region = decode.decode(data)
    assert len(region.entries) > 50
    for entry in region.entries:
        value: int | bytes
        if entry.data_type == codes.DataType.LONG:
            (value,) = struct.unpack_from("<q", data, entry.data_offset)
        else:
            value = data[entry.data_offset : entry.data_offset + entry.vector_length - 1]
        ours = encode.entry(
            entry.name,
            units=entry.units,
            variability=entry.variability,
            value=value,
            capacity=entry.vector_length,
            flags=entry.flags,
            big=False,
        )
        assert ours == data[entry.offset : entry.offset + len(ours)]
        assert encode.data_offset(entry.name, entry.data_type) == entry.data_offset - entry.offset
    found = region.prologue
    ours = encode.prologue(
        used=found.used,
        overflow=found.overflow,
        mod_time_stamp=found.mod_time_stamp,
        num_entries=found.num_entries,
        accessible=found.accessible,
        big=False,
    )
    assert ours == data[:32]
    assert found.used == region.next_offset
    assert found.num_entries == len(region.entries)


@pytest.mark.parametrize("name", ["", "a b", "a\n", "a\0", "\x7f", "é", "a\tb", " "])
def test_names_are_printable_without_blanks(name: str) -> None:
    with pytest.raises(CounterNameError, match="choose another"):
        encode.entry(name, units=1, variability=1, value=0)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(OverflowError):
        encode.entry("a", units=1, variability=1, value=2**63)
    with pytest.raises(OverflowError):
        encode.entry("a", units=128, variability=1, value=0)
    with pytest.raises(OverflowError):
        encode.prologue(used=2**31)


def test_the_formats_are_as_long_as_the_offsets_say() -> None:
    for big in (False, True):
        order = layout.order(big)
        assert struct.calcsize(order + layout.PROLOGUE) == layout.PROLOGUE_SIZE
        assert struct.calcsize(order + layout.ENTRY_HEADER) == layout.ENTRY_HEADER_SIZE
        assert struct.calcsize(order + layout.V1_PROLOGUE) == layout.V1_PROLOGUE_SIZE
        assert struct.calcsize(order + layout.V1_ENTRY_HEADER) == layout.V1_ENTRY_HEADER_SIZE
    prologue = encode.prologue(used=0x01020304, overflow=5, mod_time_stamp=6, num_entries=7, accessible=1, big=False)
    for offset, format, value in [
        (layout.MAGIC_OFFSET, "4s", layout.MAGIC),
        (layout.BYTE_ORDER_OFFSET, "b", layout.LITTLE_ENDIAN),
        (layout.MAJOR_OFFSET, "b", 2),
        (layout.MINOR_OFFSET, "b", 0),
        (layout.ACCESSIBLE_OFFSET, "b", 1),
        (layout.USED_OFFSET, "<i", 0x01020304),
        (layout.OVERFLOW_OFFSET, "<i", 5),
        (layout.MOD_TIME_STAMP_OFFSET, "<q", 6),
        (layout.ENTRY_OFFSET_OFFSET, "<i", 32),
        (layout.NUM_ENTRIES_OFFSET, "<i", 7),
    ]:
        assert struct.unpack_from(format, prologue, offset) == (value,)
