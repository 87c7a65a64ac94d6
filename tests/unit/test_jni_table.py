"""The table of a JNIEnv's functions, beside jni.h and beside the C that is made from it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.jni_header import slots
from vmscope.tool.jni.interface import Interface
from vmscope.tool.jni.table import DESPITE_EXCEPTION, FUNCTIONS, c_type

ROOT = Path(__file__).parents[2]
SLOTS = {17: 234, 25: 236}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("jni_slots", ROOT / "scripts" / "jni_slots.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("version", [17, 25])
def test_the_table_is_the_header_s(version: int) -> None:
    expected = slots(version)
    assert max(expected) == SLOTS[version] - 1
    ours = {
        slot: (row.name, c_type(row.result), [c_type(each) for each in row.parameters])
        for slot, row in FUNCTIONS.items()
        if slot < SLOTS[version]
    }
    assert ours == expected


def test_the_c_table_is_made_from_this_one(script: ModuleType) -> None:
    assert script.HEADER.read_text(encoding="utf-8") == script.text(), "make tables"


def test_each_function_is_there() -> None:
    names = {row.name for row in FUNCTIONS.values()}
    assert names >= DESPITE_EXCEPTION
    for row in FUNCTIONS.values():
        if row.method:
            assert callable(getattr(Interface, row.method)), row.name
        if row.variadic:
            assert row.with_array().parameters == (*row.parameters[:-1], "values"), row.name
            assert row.with_array().result == row.result
