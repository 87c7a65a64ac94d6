"""What a process says it is."""

from __future__ import annotations

import os
import sys
import time
import types
from importlib.machinery import ModuleSpec

import pytest

from vmscope.counters import identity
from vmscope.counters.catalogue import CATALOGUE


def test_an_embedded_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it need be there."""
    for argv in ([], [""], None):
        monkeypatch.setitem(sys.modules, "__main__", types.SimpleNamespace())
        if argv is None:
            monkeypatch.delattr(sys, "argv")
        else:
            monkeypatch.setattr(sys, "argv", argv)
        assert identity.command_line() == "python"
    monkeypatch.delitem(sys.modules, "__main__")
    assert identity.command_line() == "python"


def test_arguments_that_are_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app", 1, None])
    monkeypatch.setitem(sys.modules, "__main__", types.SimpleNamespace(__spec__=None))
    assert identity.command_line() == "app 1 None"


def test_a_main_module_with_a_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    main = types.ModuleType("__main__")
    main.__spec__ = ModuleSpec("a.b.__main__", None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", ["/x/a/b/__main__.py", "1"])
    assert identity.command_line() == "a.b 1"


def test_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(os, "open", refuse)
    ticks = identity.start_ticks()
    monkeypatch.undo()
    assert ticks == 0
    assert abs(identity.start_time(0) / 1000 - time.time()) < 5


def test_the_constants_are_the_catalogues() -> None:
    constants = identity.constants(("app x", "/a:/b"), "-Da=1", "0.0", "c", "")
    assert set(constants) == {row[0] for row in CATALOGUE if row[1] == "constant"}
    assert {type(value) for value in constants.values()} <= {int, str}
    assert [value for value in constants.values() if isinstance(value, str) and "\n" in value] == []
    version = ".".join(map(str, sys.version_info[:3]))
    assert constants["sun.rt.javaCommand"] == "app x"
    assert constants["java.rt.vmArgs"] == "-Da=1"
    assert constants["java.property.java.version"] == version
    assert str(constants["java.property.java.vm.version"]).startswith(version)
    assert constants["java.property.java.vm.name"] == "CPython"
    assert constants["java.property.java.vm.info"]
    assert constants["sun.os.hrt.frequency"] == 10**9
    assert constants["sun.rt.jvmVersion"] == sys.hexversion


@pytest.mark.parametrize(
    ("level", "serial", "text"), [("final", 0, ""), ("candidate", 2, "rc2"), ("beta", 1, "b1"), ("alpha", 7, "a7")]
)
def test_release_levels(monkeypatch: pytest.MonkeyPatch, level: str, serial: int, text: str) -> None:
    info = types.SimpleNamespace(major=3, minor=99, micro=1, releaselevel=level, serial=serial)
    monkeypatch.setattr(sys, "version_info", info)
    assert identity.constants(("", ""), "", "", "", "")["java.property.java.vm.version"] == f"3.99.1{text}"


def test_no_counter_is_catalogued_twice() -> None:
    names = [row[0] for row in CATALOGUE]
    assert len(names) == len(set(names))
