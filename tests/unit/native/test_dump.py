"""Heap dumps, read by a reader of the format: every object, with its class, size, attributes, elements and roots."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import heap_sample
from tests.hprof import Dump
from tests.implementations import both

ROOT = Path(__file__).parents[3]
NAME = "__main__"  # of the sample's module, where it runs
MAPPED = {"object": "java.lang.Object", "type": "java.lang.Class", "str": "java.lang.String"}
KEPT = heap_sample.KEPT


class Sample:
    """A dump of the sample, and what it said of itself."""

    def __init__(self, path: Path) -> None:
        said = json.loads(Path(f"{path}.json").read_text())
        self.ids: dict[str, int] = said["ids"]
        self.said: dict[str, Any] = said
        self.dump = Dump(path.read_bytes())
        assert path.stat().st_size == said["size"]


@pytest.fixture(scope="module", params=["c", "python"])
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    if request.param == "c" and both()[0].marks:
        pytest.skip("the extension is not built")
    path = tmp_path_factory.mktemp("dump") / "a.hprof"
    environment = {**os.environ, "VMSCOPE_NATIVE": str(int(request.param == "c"))}
    command = [sys.executable, "-m", "tests.heap_sample", str(path)]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    return Sample(path)


def name_in_dump(name: str) -> str:
    return MAPPED.get(name, name)


def read(dump: Dump, id: int, deep: int = 3) -> Any:
    """The object again, as far as the dump has it."""
    kind = dump.class_of(id).name
    if kind == "java.lang.String":
        return dump.text(id)
    if kind == "NoneType":
        return None
    if kind in ("int", "bool"):
        return dump.number(id)
    if kind in ("float", f"{NAME}.Weight"):
        return dump.fields_of(id)["value"]
    if kind == "complex":
        fields = dump.fields_of(id)
        return fields["real"], fields["imag"]
    if kind in ("bytes", "bytearray"):
        return dump.raw(as_id(dump.fields_of(id)["value"]))
    if kind in ("list", "tuple", "set", "frozenset", f"{NAME}.Listed") and deep:
        return [read(dump, each, deep - 1) for each in dump.items(id)]
    if "keys" in dump.fields_of(id) and deep:
        pairs = zip(dump.items(id, "keys"), dump.items(id, "values"), strict=True)
        return [(read(dump, key, deep - 1), read(dump, value, deep - 1)) for key, value in pairs]
    return kind


def as_id(value: object) -> int:
    assert isinstance(value, int)
    return value


def attributes(dump: Dump, id: int) -> dict[str, Any]:
    """Of an instance, in the object itself or in its dictionary."""
    fields = dump.fields_of(id)
    found = dump.mapping(as_id(fields["__dict__"])) if fields.get("__dict__") else {}
    for name in ("number", "text", "other", "later"):
        if fields.get(name):
            found[name] = as_id(fields[name])
    return {name: read(dump, value) for name, value in found.items()}


def test_each_value(sample: Sample) -> None:
    dump = sample.dump
    values = {name: read(dump, sample.ids[name]) for name in KEPT if name != "class"}
    assert values["list"] == [1, "two", None, 3.25]
    assert values["tuple"] == ["a", ["b", []]]
    assert values["set"] == ["in a set"]
    assert values["frozenset"] == ["in a frozenset"]
    assert values["dict"] == [("key", "value"), ("other", 2)]
    assert values["dict of numbers"] == [(1, "one"), ([2, 3], "two")]
    assert values["ordered"] == [("first", 1), ("second", 2)]
    assert values["default"] == [("a", [1])]
    assert values["listed"] == ["an item"]
    assert values["mapped"] == [("key", "an item")]
    for name in ("weight", "small", "negative", "large", "large negative", "smallest", "float", "bool", "bytes"):
        assert values[name] == KEPT[name], name
    assert values["bytearray"] == bytes(KEPT["bytearray"])
    assert values["complex"] == (1.5, -2.0)
    for name in ("empty text", "ascii", "latin", "wide", "wider", "lone"):
        assert values[name] == KEPT[name], name


def test_attributes(sample: Sample) -> None:
    dump, ids = sample.dump, sample.ids
    assert attributes(dump, ids["attributes"]) == {"number": 12345, "text": "a text"}
    assert attributes(dump, ids["derived"]) == {"number": 1, "other": 2.5}
    assert attributes(dump, ids["with a dictionary"]) == {"number": 777, "later": "an attribute of its own"}
    fields = dump.fields_of(ids["slots"])
    assert dump.text(as_id(fields["left"])) == "left one"
    assert fields["right"] == ids["none"]


def test_what_no_field_has(sample: Sample) -> None:
    dump = sample.dump

    def rest(name: str) -> list[Any]:
        found = as_id(dump.fields_of(sample.ids[name])["__referents__"])
        return [read(dump, each) for each in dump.elements(found) if each in dump.instances] if found else []

    assert rest("deque") == ["in a deque"]
    assert ["what was wrong"] in rest("exception")
    assert rest("attributes") == rest("list") == rest("dict") == rest("set") == rest("default") == []
    assert dump.items(sample.ids["cycle"]) == [sample.ids["cycle"]]


def test_sizes_and_counts_of_references(sample: Sample) -> None:
    for name, size in sample.said["sizes"].items():
        id = sample.ids[name]
        fields = sample.dump.classes[id].statics if name == "class" else sample.dump.fields_of(id)
        assert fields["__size__"] == size, name
        assert as_id(fields["__refcount__"]) >= 1, name


def test_every_class(sample: Sample) -> None:
    classes = {int(id): name for id, name in sample.said["classes"].items()}
    assert [name for id, name in classes.items() if id not in sample.dump.classes] == []
    wrong = {
        (name, sample.dump.classes[id].name)
        for id, name in classes.items()
        if id not in sample.said["named"]
        and sample.dump.classes[id].name.rpartition(".")[2].rstrip("$") != name_in_dump(name).rpartition(".")[2]
    }
    assert wrong == set()


def test_names_of_classes(sample: Sample) -> None:
    """That they keep the JVM's rules has been checked by the reader."""
    assert [sample.dump.classes[id].name for id in sample.said["named"]] == [
        "shop.models$",
        "shop.models.Order",
        "filter.views.View",
        "java.lang.String$",
        "java$",
        "numpy.dtype<float64>",
        "<B.a|b,c",
        "odd.Odd",
        "odd.?",
        "Seven",
        f"{NAME}.local$<locals>$Local",
        f"{NAME}.Outer$Inner",
    ]
    ids = {name: int(id) for id, name in sample.said["classes"].items()}
    assert sample.dump.classes[ids["filter"]].name == "filter$"


def test_every_text(sample: Sample) -> None:
    texts = [id for id in sample.dump.instances if sample.dump.class_of(id).name == "java.lang.String"]
    assert len(texts) > 1000
    assert heap_sample.LONG_TEXT in set(map(sample.dump.text, texts))


def test_all_that_the_collector_finds(sample: Sample) -> None:
    dump = sample.dump
    there = dump.instances.keys() | dump.classes.keys()
    assert [each for each in sample.said["known"] if each not in there] == []
    counts = dump.counts()
    assert counts[f"{NAME}.Crowd"] == 321
    for name in ("function", "module", "method", "property", "cell", f"{NAME}.Slotted", "collections.deque"):
        assert 0 <= counts[name] - sample.said["kinds"][name] < 5, name  # the twin has some of its own
    beyond = counts["java.lang.Class"] - list(map(metaclass(dump), sample.said["classes"])).count("java.lang.Class")
    assert 0 <= beyond <= int(sys.version_info < (3, 12))  # the twin's _socket has one there that no base knows
    assert sample.said["objects"] == sum(counts.values()) - counts["java.lang.Thread"]


def metaclass(dump: Dump) -> Any:
    return lambda id: dump.classes[as_id(dump.classes[int(id)].statics["__class__"])].name


def test_roots(sample: Sample) -> None:
    dump = sample.dump
    kinds = {kind for kind, _, _ in dump.roots}
    assert kinds == {"thread", "Java frame", "sticky class", "JNI global"}
    variables = [
        (each, more)
        for kind, each, more in dump.roots
        if kind == "Java frame" and each in dump.instances and dump.class_of(each).name == f"{NAME}.Slotted"
    ]
    [(local, (number, depth))] = variables
    assert read(dump, as_id(dump.fields_of(local)["left"])) == "only a variable's"
    [(owner, trace)] = [(each, more[1]) for kind, each, more in dump.roots if kind == "thread" and more[0] == number]
    assert dump.class_of(owner).name == "java.lang.Thread"
    fields = dump.fields_of(owner)
    assert dump.text(as_id(fields["name"])) == "the waiting one"
    assert [fields["thread"], fields["ident"], fields["native_id"]] == sample.said["thread"]
    method, file, kind, line = dump.frames[dump.traces[trace][1][depth]]
    assert (method, file, kind) == ("main.<locals>.wait", heap_sample.__file__, f"{NAME}.<module>")
    assert line > 0


def test_what_is_alive_is_reached(sample: Sample) -> None:
    there = sample.dump.instances.keys() | sample.dump.classes.keys()
    reached = sample.dump.reachable()
    assert sample.said["modules"] in reached
    assert sample.ids["KEPT"] in reached
    lost = Counter(sample.dump.class_of(each).name for each in there - reached if each in sample.dump.instances)
    assert sum(lost.values()) < 20, lost


def test_longer_than_a_segment(sample: Sample) -> None:
    dump, ids, elements = sample.dump, sample.ids, sample.said["elements"]
    assert dump.items(ids["LONG"]) == elements["LONG"]
    assert dump.raw(as_id(dump.fields_of(ids["LONG_TEXT"])["value"])) == heap_sample.LONG_TEXT.encode()
    assert dump.items(ids["LONG_DICT"], "keys") == elements["keys"]
    assert dump.items(ids["LONG_DICT"], "values") == elements["values"]


def test_many_references_of_one(sample: Sample) -> None:
    """More than a mark can count: what C code does not keep is no root of its own."""
    roots = {each for kind, each, _ in sample.dump.roots if kind == "JNI global"}
    assert sample.ids["MANY"] not in roots
    assert sample.ids["REFERRERS"] not in roots
