"""Profiles as files: each is read back by what knows its format, from its own description where there is one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

from vmscope.flight.convert import output
from vmscope.flight.convert.collapsed import collapsed
from vmscope.flight.convert.pprof import pprof
from vmscope.flight.convert.profile import Profile
from vmscope.flight.convert.speedscope import speedscope

START = 1_700_000_000 * 10**9


@pytest.fixture
def profile() -> Profile:
    made = Profile("cpu", "samples")
    run, price, odd = made.frame("shop.run"), made.frame("shop.Orders.price"), made.frame("größe;\n\x1b[31m <b>")
    made.add("main", (run, price), 300, START)
    made.add("worker-1", (run, price), 5, START + 10**9)
    made.add("worker-1", (run,), 2, START + 2 * 10**9)
    made.add("main", (run, odd, run), 1, START)
    return made


def test_collapsed_stacks_have_one_line_each(profile: Profile) -> None:
    lines = collapsed(profile).decode().splitlines()
    assert lines == ["shop.run 2", "shop.run;größe,\\n\\x1b[31m <b>;shop.run 1", "shop.run;shop.Orders.price 305"]
    assert [line for line in lines if not line.rpartition(" ")[2].isdecimal()] == []


def test_speedscope_has_a_profile_of_all_threads_and_one_of_each(profile: Profile) -> None:
    whole = json.loads(speedscope(profile, "shop"))
    assert whole["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [frame["name"] for frame in whole["shared"]["frames"]]
    found = {}
    for each in whole["profiles"]:
        assert (each["type"], each["unit"], each["startValue"]) == ("sampled", "none", 0)
        assert each["endValue"] == sum(each["weights"])
        stacks = ("/".join(frames[frame] for frame in sample) for sample in each["samples"])
        found[each["name"]] = dict(zip(stacks, each["weights"], strict=True))
    odd = "shop.run/größe;\n\x1b[31m <b>/shop.run"
    assert found == {
        "all threads": {"shop.run/shop.Orders.price": 305, "shop.run": 2, odd: 1},
        "main": {"shop.run/shop.Orders.price": 300, odd: 1},
        "worker-1": {"shop.run/shop.Orders.price": 5, "shop.run": 2},
    }


# profile.proto's messages: field, number, type (of which message), repeated
PROTO = {
    "ValueType": [("type", 1, "int64", False), ("unit", 2, "int64", False)],
    "Label": [("key", 1, "int64", False), ("str", 2, "int64", False), ("num", 3, "int64", False)],
    "Sample": [("location_id", 1, "uint64", True), ("value", 2, "int64", True), ("label", 3, "Label", True)],
    "Line": [("function_id", 1, "uint64", False), ("line", 2, "int64", False)],
    "Location": [("id", 1, "uint64", False), ("mapping_id", 2, "uint64", False), ("address", 3, "uint64", False),
                 ("line", 4, "Line", True)],
    "Function": [("id", 1, "uint64", False), ("name", 2, "int64", False), ("system_name", 3, "int64", False),
                 ("filename", 4, "int64", False)],
    "Profile": [("sample_type", 1, "ValueType", True), ("sample", 2, "Sample", True), ("location", 4, "Location", True),
                ("function", 5, "Function", True), ("string_table", 6, "string", True),
                ("time_nanos", 9, "int64", False), ("duration_nanos", 10, "int64", False)],
}  # fmt: skip


def decode(data: bytes) -> Any:
    """By Google's library."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for name, fields in PROTO.items():
        described = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if kind in PROTO:
                described.field.add(
                    name=field, number=number, label=label, type=kinds.TYPE_MESSAGE,
                    type_name=f".perftools.profiles.{kind}",
                )  # fmt: skip
            else:
                described.field.add(
                    name=field, number=number, label=label, type=kinds.Type.Value(f"TYPE_{kind.upper()}")
                )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))()
    made.ParseFromString(data)
    return made


def test_pprof_is_the_message_that_its_description_says(profile: Profile) -> None:
    data = pprof(profile)
    assert data == pprof(profile)
    whole = decode(gzip.decompress(data))
    strings = list(whole.string_table)
    assert strings[0] == ""
    functions = {each.id: strings[each.name] for each in whole.function}
    locations = {each.id: functions[each.line[0].function_id] for each in whole.location}
    assert 0 not in functions
    assert 0 not in locations
    found = []
    for sample in whole.sample:
        assert strings[sample.label[0].key] == "thread"
        stack = [locations[each] for each in reversed(sample.location_id)]
        found.append((strings[sample.label[0].str], stack, list(sample.value)))
    names = [name for name, _ in profile.frames]
    assert found == [
        (thread, [names[frame] for frame in stack], [weight]) for (thread, stack), weight in profile.stacks.items()
    ]
    (type,) = whole.sample_type
    assert (strings[type.type], strings[type.unit]) == ("samples", "count")
    assert (whole.time_nanos, whole.duration_nanos) == (START, 2 * 10**9)


def test_the_end_of_a_name_picks_the_format(profile: Profile, tmp_path: Path) -> None:
    first = {".html": b"<!DO", ".collapsed": b"shop", ".speedscope.json": b'{"$s', ".pb.gz": b"\x1f\x8b\x08\0"}
    for end, begin in first.items():
        path = str(tmp_path / f"shop{end}")
        assert output.ending(path) == end
        output.write(profile, path, "shop", "about")
        assert Path(path).read_bytes()[:4] == begin
    for name in ("shop", "shop.json", ".html", "html", "shop.html.txt"):
        assert output.ending(name) == ""


@pytest.mark.parametrize(
    ("weight", "unit", "text"),
    [(1, "samples", "1 sample"), (2, "samples", "2 samples"), (512, "bytes", "512 B"), (1536, "bytes", "1.5 KiB"),
     (1 << 51, "bytes", "2048.0 TiB"), (1_500_000_000, "nanoseconds", "1.50 s"), (2_000, "nanoseconds", "0.00 ms")],
)  # fmt: skip
def test_amounts(weight: int, unit: str, text: str) -> None:
    assert output.amount(weight, unit) == text
