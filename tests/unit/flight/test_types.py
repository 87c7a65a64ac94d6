"""The event types, and the metadata event that describes them. The JDK's tools read it in tests/oracle/test_jfr.py."""

from __future__ import annotations

import pytest

from vmscope.flight import types
from vmscope.flight.metadata import varint


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (2**56 - 1, b"\xff" * 7 + b"\x7f"),
        (2**64 - 1, b"\xff" * 9),
        (-1, b"\xff" * 9),
    ],
)
def test_varints(number: int, encoded: bytes) -> None:
    assert varint(number) == encoded


def test_an_execution_sample_has_the_fields_that_readers_hard_code() -> None:
    fields = [field.name for field in types.EVENT_TYPES["jdk.ExecutionSample"].fields]
    assert fields == ["startTime", "sampledThread", "stackTrace", "state"]


def test_no_two_types_have_one_number_or_name() -> None:
    assert len(set(types.NUMBERS.values())) == len(types.VALUE_TYPES) + len(types.EVENT_TYPES)
    assert not set(types.VALUE_TYPES) & set(types.EVENT_TYPES)
    assert min(types.NUMBERS.values()) > 1  # 0 and 1 are metadata and checkpoints


def test_each_type_and_annotation_that_is_named_is_defined() -> None:
    for type_ in (*types.VALUE_TYPES.values(), *types.EVENT_TYPES.values()):
        named = {field.type for field in type_.fields} | {name for name, _ in type_.annotations}
        named |= {name for field in type_.fields for name, _ in field.annotations}
        assert named <= set(types.VALUE_TYPES), type_.name


def test_what_is_written_most_has_numbers_of_one_byte() -> None:
    assert [name for name in types.FREQUENT if types.NUMBERS[name] >= 128] == []


@pytest.mark.parametrize(
    ("name", "letters"),
    [("jdk.ThreadSleep", "DTKl"), ("jdk.JavaExceptionThrow", "TKsc"), ("jdk.GCHeapSummary", "lsllllll")],
)
def test_the_encoders_formats(name: str, letters: str) -> None:
    assert types.FORMATS[name] == letters


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("jdk.GCHeapSummary", "GC Heap Summary"),
        ("jdk.CPULoad", "CPU Load"),
        ("vmscope.GILWait", "GIL Wait"),
        ("o", "o"),
    ],
)
def test_labels(name: str, label: str) -> None:
    assert types.label(name) == label


def test_metadata_of_other_types_has_another_id() -> None:
    more = types.event_type("shop.Order", 1_000, ["duration", "eventThread", "stackTrace", "price:double"], "shop")
    plain, extended = types.metadata(), types.metadata([more])
    assert plain == types.metadata()
    assert b"shop.Order" in extended
    assert plain[7:16] != extended[7:16]  # size, number, start and duration come first
