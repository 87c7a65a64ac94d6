"""Whatever the bytes: what was encoded comes back, C and Python say the same, and the work stays in bounds."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.corpus import build
from tests.fuzz.mutate import mutants
from vmscope.errors import FormatError, StructureError
from vmscope.native.region import walk as twin
from vmscope.wire import decode, encode

MUTANTS = 4000


@pytest.fixture(scope="module")
def extension() -> Any:
    try:
        return importlib.import_module("vmscope.native._native")
    except ImportError:
        pytest.skip("the extension is not built")


names = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40)
numbers = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)
counters = st.tuples(
    names,
    numbers | texts,
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(-128, 127),
    st.integers(0, 100),
)


@given(st.lists(counters, max_size=12), st.booleans(), st.integers(0, 2).map(lambda n: n * 20))
@example([("a", "", 5, 1, 0, 0)], False, 0)
def test_what_was_encoded_is_decoded(
    given_counters: list[tuple[str, int | str, int, int, int, int]], big: bool, extra: int
) -> None:
    body = b""
    expected: list[tuple[int, str, int, int, int, int, int]] = []
    values: dict[str, int | str] = {}
    for name, value, units, variability, flags, capacity in given_counters:
        offset = 32 + len(body)
        if isinstance(value, str):
            raw = value.encode()
            entry = encode.entry(
                name, units=5, variability=variability | 1, value=raw, capacity=capacity, flags=flags, big=big
            )
            length = max(capacity, len(raw) + 1)
            expected.append((offset, name, ord("B"), 5, variability | 1, flags, length))
        else:
            entry = encode.entry(name, units=units, variability=variability, value=value, flags=flags, big=big)
            expected.append((offset, name, ord("J"), units, variability, flags, 0))
        values[name] = value
        body += entry
    data = encode.prologue(used=32 + len(body), num_entries=len(expected), big=big) + body + bytes(extra)
    region = decode.decode(data)
    assert region.prologue.big == big
    assert region.next_offset == 32 + len(body)
    assert [
        (e.offset, e.name, e.data_type, e.units, e.variability, e.flags, e.vector_length) for e in region.entries
    ] == expected
    assert [e for e in region.entries if e.data_offset != e.offset + encode.data_offset(e.name, e.data_type)] == []
    assert region.values(data) == decode.values(data) == values


def outcome(function: Any, data: bytes, offset: int, big: bool) -> Any:
    """The result, or all that an error says."""
    try:
        return function(data, offset, big)
    except FormatError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return type(error), str(error), error.offset, error.entry


def same(extension: Any, data: bytes, offset: int, big: bool) -> Any:
    found = outcome(twin.scan, data, offset, big)
    assert outcome(extension.scan, data, offset, big) == found
    values = outcome(twin.read, data, offset, big)
    assert outcome(extension.read, data, offset, big) == values
    if isinstance(found[0], list):
        in_bounds(data, found[0])
        assert set(values) == {entry[1] for entry in found[0]}
    else:
        assert values == found
    return found


def in_bounds(data: bytes, entries: list[tuple[int, str, int, int, int, int, int, int]]) -> None:
    """The work that a region costs is at most some multiple of its size."""
    assert len(entries) <= len(data) // 16 + 3
    assert sum(entry[6] for entry in entries) <= (twin.FOREIGN + 1) * len(data)
    assert sum(len(entry[1].encode()) for entry in entries) <= 3 * (twin.FOREIGN + 1) * len(data)  # U+FFFD is 3 bytes


def test_both_read_mutants_alike(extension: Any) -> None:
    readable = 0
    errors: dict[str, int] = {}
    for data in mutants(77, MUTANTS):
        offset = int.from_bytes(data[24:28], "big" if data[4:5] == b"\0" else "little", signed=True)
        found = same(extension, data, offset, data[4:5] == b"\0")
        if isinstance(found[0], list):
            readable += 1
        else:
            errors[found[1].split(":")[0]] = errors.get(found[1].split(":")[0], 0) + 1
    assert readable > MUTANTS // 4
    assert len(errors) >= 15, errors


words = st.sampled_from([0, 1, 4, 8, 16, 20, 24, 28, 32, 40, 64, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 8])
codes = st.tuples(
    st.sampled_from([*b"JB", *b"JBZI", 0, 255]),
    st.integers(0, 255),
    st.sampled_from([5, 5, 1, 6, 0, 7]),
    st.sampled_from([1, 3, 2, 0, 4]),
).map(bytes)
fragments = st.one_of(
    words.map(lambda word: build.i32(word)),
    codes,
    st.binary(max_size=12),
    st.tuples(st.binary(min_size=1, max_size=9), numbers).map(lambda pair: build.entry(*pair)),
    st.tuples(words, words, words, codes, words).map(
        lambda entry: b"".join(part if isinstance(part, bytes) else build.i32(part) for part in entry)
    ),
)


@given(st.lists(fragments, max_size=30).map(b"".join), st.integers(-2, 12).map(lambda n: n * 4), st.booleans())
def test_both_read_anything_alike(extension: Any, data: bytes, offset: int, big: bool) -> None:
    same(extension, data, offset, big)


@given(st.binary(max_size=40))
@example(b"\xed\xa0\xed\xb0\x80\xed")
@example(b"\xe2\xed\xa0\x80\x80\xf0\x9f\xed\xbf\xbf")
def test_both_decode_text_alike(extension: Any, raw: bytes) -> None:
    assert extension.decode_text(raw) == twin.decode_text(raw)


@given(texts)
def test_text_that_is_utf_8_is_kept(text: str) -> None:
    assert twin.decode_text(text.encode()) == text


@given(st.lists(fragments, max_size=30).map(b"".join), st.sampled_from([1, 2]), st.booleans())
def test_decoding_raises_nothing_but_format_errors(body: bytes, major: int, big: bool) -> None:
    start = build.prologue(big=big) if major == 2 else build.v1_prologue(big=big)
    for data in (start + body, body):
        try:
            values = decode.values(data)
        except FormatError:
            with pytest.raises(FormatError):
                decode.decode(data)
        else:
            assert decode.decode(data).values(data) == values


def test_mutants_of_both_versions_raise_nothing_but_format_errors() -> None:
    versions: dict[tuple[int, bool], int] = {}
    for data in mutants(78, MUTANTS):
        try:
            region = decode.decode(data)
        except FormatError:
            key = (data[5] if len(data) > 5 else 0, False)
        else:
            assert region.values(data) == decode.values(data)
            key = (region.prologue.major, True)
        versions[key] = versions.get(key, 0) + 1
    assert min(versions[1, False], versions[1, True], versions[2, False], versions[2, True]) > 50


class Counting(bytes):
    """A region that adds up the bytes which the twin looks at."""

    work = 0

    def find(self, sub: Any, start: Any = 0, end: Any = None) -> int:
        found = super().find(sub, start, end)
        self.work += (min(end, len(self)) if found < 0 else found + 1) - start
        return found

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        self.work += len(part)
        return part


def hostile(size: int, long: int) -> tuple[bytes, int]:
    """As many entries as fit that all have one text, `long` bytes before the first entry; and where that is."""
    first = 32 + long
    data = build.prologue(entry_offset=first) + b"x" * long
    for start in range(first, size - 27, 24):
        back = 32 - start  # the text's place, from the entry's
        data += build.i32(24) + build.i32(back - 4) + build.i32(long) + b"B\1\5\1" + build.i32(back) + b"name"
    return data.ljust(size, b"\0"), first


@pytest.mark.parametrize("long", [64, 184, 192, 200, 1000, 8000])
def test_hostile_regions_cost_a_few_times_their_size(extension: Any, long: int) -> None:
    for size in (24_000, 48_000, 96_000):
        data, first = hostile(size, long)
        count = (size - first - 4) // 24
        counting = Counting(data)
        found = outcome(twin.read, counting, first, False)
        assert outcome(extension.read, data, first, False) == found
        assert counting.work < 3 * (twin.FOREIGN + 2) * size
        if count * long <= twin.FOREIGN * size:
            assert counting.work > 2 * count * long
            assert found == {"name": "x" * long}
        else:
            assert found[0] is StructureError
            assert found[1].startswith("entries share too many bytes")
