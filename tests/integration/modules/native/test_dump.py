"""Heap dumps, read by a reader of the format: every object, with its class, size, attributes, elements and roots.

What needs processes of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.unit.native.test_dump import NAME, Sample, as_id, read
from tests.unit.native.test_dump import sample as sample


def test_classes(sample: Sample) -> None:
    dump = sample.dump
    ids = {name: int(id) for id, name in sample.said["classes"].items()}
    made = dump.classes[sample.ids["class"]]
    assert made.name == f"{NAME}.Made"
    assert made.statics["__class__"] == ids[f"{NAME}.Meta"]
    lines = {name: [each.name for each in dump.line(ids[name])] for name in (f"{NAME}.Derived", f"{NAME}.Meta", "bool")}
    assert lines == {
        f"{NAME}.Derived": [f"{NAME}.Derived", f"{NAME}.Attributes", "java.lang.Object"],
        f"{NAME}.Meta": [f"{NAME}.Meta", "java.lang.Class", "java.lang.Object"],
        "bool": ["bool", "int", "java.lang.Object"],
    }
    line = dump.items(as_id(dump.classes[ids["bool"]].statics["__mro__"]))
    assert line == [ids["bool"], ids["int"], ids["object"]]
    assert read(dump, as_id(dump.classes[ids[f"{NAME}.Derived"]].statics["kept"])) == [1, 2, 3]
    names = {each.name for each in dump.classes.values()}
    assert names >= {"java.lang.ClassLoader", "java.lang.Thread", "java.lang.ref.Reference", "[B"}


FULL = """
import os, sys
from vmscope import native
for fd in (os.open("/dev/full", os.O_WRONLY), -1):
    try:
        native.dump_heap(fd)
    except OSError as error:
        print(error.strerror)
"""


def test_a_full_disk(implementation: str) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    run = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, timeout=100, check=False)
    assert run.stdout == "No space left on device\nBad file descriptor\n", run.stderr
