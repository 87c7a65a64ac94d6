"""native.scan, read and decode_text: the extension and its twin, one by one."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from typing import Any

import pytest

from tests import corpus
from tests.corpus import build
from tests.implementations import both
from vmscope.errors import DataError, EntryTypeError, FormatError, StructureError

A, B = build.entry(b"a", 7, units=4, variability=2), build.entry(b"text", b"hello\0", flags=3, variability=3)
REGION = build.region([A, B], size=256)
ENTRIES = [(32, "a", ord("J"), 4, 2, 1, 0, 56), (64, "text", ord("B"), 5, 3, 3, 6, 89)]


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_scan_gives_entries_and_where_the_next_one_would_be(native: Any) -> None:
    assert native.scan(REGION, 32, False) == (ENTRIES, 96)
    assert native.scan(REGION, 64, False) == (ENTRIES[1:], 96)
    assert native.scan(REGION, 96, False) == ([], 96)
    assert native.scan(REGION[:96], 32, False) == (ENTRIES, 96)
    assert native.scan(REGION[:96], 96, False) == ([], 96)
    assert native.scan(b"", 0, False) == ([], 0)


def test_an_entry_added_later_is_found_from_there(native: Any) -> None:
    before, after = build.region([A], size=256), REGION
    entries, offset = native.scan(before, 32, False)
    assert entries + native.scan(after, offset, False)[0] == ENTRIES


def test_read_gives_values(native: Any) -> None:
    assert native.read(REGION, 32, False) == {"a": 7, "text": "hello"}
    assert native.read(REGION, 64, False) == {"text": "hello"}
    big = build.region([build.entry(b"a", -(2**63), big=True), build.entry(b"b", b"x\0", big=True)], big=True)
    assert native.read(big, 32, True) == {"a": -(2**63), "b": "x"}
    with pytest.raises(StructureError):
        native.read(big, 32, False)


def test_of_two_with_one_name_the_last_counts(native: Any) -> None:
    data = build.region([build.entry(b"a", 1), build.entry(b"b", 2), build.entry(b"a", b"three\0")])
    assert native.read(data, 32, False) == {"a": "three", "b": 2}
    assert [entry[1] for entry in native.scan(data, 32, False)[0]] == ["a", "b", "a"]


def test_more_names_than_any_cache_holds(native: Any) -> None:
    names = [f"some.counter.{number:05}.of.many" for number in range(5000)]
    data = build.region([build.entry(name.encode(), number) for number, name in enumerate(names)], size=400_000)
    for _ in range(2):
        assert native.read(data, 32, False) == {name: number for number, name in enumerate(names)}


def test_names_are_read_and_not_taken_from_the_region_before(native: Any) -> None:
    orders = (["ab", "abc", "x"], ["abc", "ab"], ["ab", "a", "abcd"], ["é", "abc"], ["", "ab", "x"], ["ab", "abc", "x"])
    for names in orders:
        data = build.region([build.entry(name.encode(), number) for number, name in enumerate(names)])
        assert list(native.read(data, 32, False).items()) == [(name, number) for number, name in enumerate(names)]
        assert [entry[1] for entry in native.scan(data, 32, False)[0]] == names


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 95, 96, 97, 255, 511, 512, 513, 3000])
def test_names_and_texts_of_any_length(native: Any, length: int) -> None:
    for letter in ("x", "é", "😀"):
        text = (letter * length).encode()[:length].decode(errors="ignore")
        data = build.region([build.entry(text.encode(), text.encode() + b"\0")], size=8192)
        for _ in range(2):
            assert native.read(data, 32, False) == {text: text}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"plain", "plain"),
        ("é€😀".encode(), "é€😀"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"a\xe2\x82", "a\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xed\xa0!", "\ufffd!"),
        (b"\xed\xa0\xed\xb0\x80\xed\x9f\xbf\xed", "\ufffd\ufffd\ud7ff\ufffd"),
        (b"\xed", "\ufffd"),
        (b"x" * 600 + b"\xed\xa0\x80" * 2, "x" * 600 + "\ufffd\ufffd"),
    ],
)
def test_text_is_decoded_as_java_decodes_it(native: Any, raw: bytes, text: str) -> None:
    assert native.decode_text(raw) == text
    assert native.decode_text(memoryview(raw)) == text


def shared(count: int, size: int) -> bytes:
    """A region whose entries all have the same long text: `size` bytes behind the last of them."""
    data = bytearray(build.region([build.entry(b"t", b"\0") for _ in range(count)], size=32 + 24 * count + size))
    text = 32 + 24 * count + 4  # behind a zero length
    data[text:] = b"x" * (size - 4)
    for number in range(count):
        start = 32 + 24 * number
        # data offsets may not point behind the entry, but the vector may go on there
        data[start + 8 : start + 12] = build.i32(len(data) - start - 22)
    return bytes(data)


def test_texts_may_share_bytes_but_not_without_end(native: Any) -> None:
    assert len(native.scan(shared(8, 4000), 32, False)[0]) == 8
    with pytest.raises(StructureError, match="entries share too many bytes") as caught:
        native.scan(shared(1000, 100_000), 32, False)
    assert caught.value.offset == 32 + 24 * 8  # at the ninth
    with pytest.raises(StructureError, match="entries share too many bytes"):
        native.read(shared(1000, 100_000), 32, False)


def test_what_entries_share_does_not_grow_with_the_region(native: Any) -> None:
    """8 MiB of texts, however large the region is."""
    size = 4 << 20
    with pytest.raises(StructureError, match="entries share too many bytes") as caught:
        native.scan(shared(1000, size), 32, False)
    assert caught.value.offset == 32 + 24  # at the second


@pytest.mark.parametrize("function", ["scan", "read"])
def test_a_region_has_no_more_entries_than_readers_can_bear(native: Any, function: str) -> None:
    most = 1 << 18
    entry = build.entry(b"n", 7)
    whole = getattr(native, function)(build.region([entry * most], size=0), 32, False)
    assert len(whole[0] if function == "scan" else whole) in (1, most)
    with pytest.raises(StructureError, match="more entries than a region may have: 262144") as caught:
        getattr(native, function)(build.region([entry * (most + 1)], size=0), 32, False)
    assert caught.value.offset == 32 + most * len(entry)


def test_what_cannot_be_read_to_its_end_makes_no_objects(native: Any) -> None:
    """Of a large region, by the extension: its end is looked for first."""
    if native.IMPLEMENTATION != "c":
        pytest.skip("the twin makes them on its way")
    data = build.region([build.entry(b"n", 7) * 100_000, build.entry(b"bad", 7, units=0)], size=0)
    tracemalloc.start()
    try:
        for function in (native.scan, native.read):
            with pytest.raises(DataError):
                function(data, 32, False)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


# -- some by their names --------------------------------------------------------------------------


def test_find(native: Any) -> None:
    assert native.find(REGION, 32, False, ("text", "nothing", "a")) == {"text": "hello", "a": 7}
    assert list(native.find(REGION, 32, False, ("text", "a"))) == ["text", "a"]
    assert native.find(REGION, 64, False, ("text", "a")) == {"text": "hello"}
    assert native.find(REGION, 32, False, ()) == {}
    assert native.find(b"", 0, False, ("a",)) == {}
    big = build.region([build.entry(b"a", -(2**63), big=True)], big=True)
    assert native.find(big, 32, True, ("a", "", "a" * 200, "é")) == {"a": -(2**63)}


def test_find_takes_the_last_of_a_name(native: Any) -> None:
    long = b"x" * 100
    data = build.region(
        [build.entry(b"a", 1), build.entry(long, 2), build.entry(b"a", b"three\0"), build.entry(b"", 4)]
    )
    assert native.find(data, 32, False, ("a", long.decode(), "")) == {"a": "three", long.decode(): 2, "": 4}


def test_find_gives_what_stands_before_the_damage(native: Any) -> None:
    data = build.region([A, build.entry(b"bad", 7, units=0), build.entry(b"b", 1)])
    assert native.find(data, 32, False, ("a", "b")) == {"a": 7}
    assert native.find(data[:70], 32, False, ("a", "b")) == {"a": 7}
    for names in ((), ("b",), ("bad",)):
        with pytest.raises(DataError):
            native.find(data, 32, False, names)


@pytest.mark.parametrize("name", corpus.names())
def test_find_agrees_with_read(native: Any, name: str) -> None:
    data = corpus.load(name)
    big = data[4] == 0
    if data[5] != 2:
        pytest.skip("version 1.0")
    values = native.read(data, 32, big)
    assert native.find(data, 32, big, (*values, "not.there")) == values


def test_wrong_arguments_of_find(native: Any) -> None:
    for arguments in (
        (REGION, 32, False),
        (REGION, 32, False, ["a"]),
        (REGION, 32, False, (1,)),
        ("text", 32, False, ()),
    ):
        with pytest.raises(TypeError):
            native.find(*arguments)


# -- errors ---------------------------------------------------------------------------------------


def test_an_error_names_offset_and_entry(native: Any) -> None:
    data = build.region([A, build.entry(b"n" * 1000, 7, data_type=ord("D"))])
    for function in (native.scan, native.read):
        with pytest.raises(EntryTypeError) as caught:
            function(data, 32, False)
        assert type(caught.value) is EntryTypeError
        assert (caught.value.offset, caught.value.entry) == (32 + len(A) + 12, "n" * 256)
        assert str(caught.value) == f"scalar of a type other than J: 68 (offset 76, entry '{'n' * 256}')"
        assert (caught.value.pid, caught.value.path) == (None, None)


@pytest.mark.parametrize("offset", [-4, -1, 1, 2, 3, 260, 2**31, -(2**31), 2**62])
def test_a_start_outside_or_askew(native: Any, offset: int) -> None:
    with pytest.raises(StructureError) as caught:
        native.scan(REGION, offset, False)
    assert caught.value.offset == offset


def test_wrong_arguments(native: Any) -> None:
    for arguments in ((), (REGION,), (REGION, 32), (REGION, 32, False, 1), ("text", 32, False), (REGION, "a", False)):
        with pytest.raises(TypeError) as caught:
            native.scan(*arguments)
        assert not isinstance(caught.value, FormatError)
    with pytest.raises(TypeError):
        native.decode_text("text")


def test_nothing_is_left_behind(native: Any) -> None:
    regions = [corpus.load(name) for name in corpus.names()]
    regions += [build.region([A, B, build.entry(b"bad" * number, 1, units=0)], size=8192) for number in range(40)]

    def all_of_them() -> None:
        for data in regions:
            for function in (native.scan, native.read):
                try:
                    function(data, 32, False)
                except FormatError:
                    pass

    for _ in range(3):
        all_of_them()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(10):
        all_of_them()
    gc.collect()
    assert sys.getallocatedblocks() - before < 200
    buffer = bytearray(REGION)
    with pytest.raises(StructureError):
        native.read(buffer, 4, False)
    buffer += b"x"  # BufferError if something still held it


def test_threads_read_what_another_one_writes(native: Any) -> None:
    original = corpus.load("17.0.15-debian-g1")
    data = bytearray(original)
    stop = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        while not stop.is_set():
            try:
                native.read(data, 32, False)
            except FormatError:
                pass
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for round in range(300):
        at = 32 + round * 37 % 11000
        data[at : at + 64] = b"\xed\xa0\xff\x00" * 16
        data[at : at + 64] = original[at : at + 64]
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert native.read(data, 32, False) == native.read(original, 32, False)
