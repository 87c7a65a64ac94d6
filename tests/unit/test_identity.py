"""What a process says it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import types
from importlib.machinery import ModuleSpec

import pytest

from vmscope.counters import identity
from vmscope.counters.catalogue import CATALOGUE

PROGRAM = "from vmscope.counters import identity; print(identity.command_line())"


def run(*command: str, cwd: object = None, **variables: str) -> str:
    process = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=str(cwd) if cwd else None,
        env={**os.environ, **variables},
        check=True,
    )
    return process.stdout.rstrip("\n")


def test_a_script(tmp_path: object) -> None:
    script = os.path.join(str(tmp_path), "my.app.py")
    with open(script, "w") as file:
        file.write(PROGRAM)
    assert run(script, "a", "b c") == f"{tmp_path}/my.app a b c"
    assert run("my.app.py", cwd=tmp_path) == "my.app"
    assert run("./my.app.py", cwd=tmp_path) == "./my.app"


def test_modules_packages_and_applications(tmp_path: object) -> None:
    package = os.path.join(str(tmp_path), "pkg")
    os.mkdir(package)
    for name in ("__init__.py", "__main__.py", "mod.py"):
        with open(os.path.join(package, name), "w") as file:
            file.write("" if name == "__init__.py" else PROGRAM)
    assert run("-m", "pkg.mod", "x", cwd=tmp_path) == "pkg.mod x"
    assert run("-m", "pkg", "x", cwd=tmp_path) == "pkg x"
    assert run("pkg", "x", cwd=tmp_path) == "pkg x"


def test_code_and_standard_input() -> None:
    assert run("-c", PROGRAM, "x", "") == "-c x "
    process = subprocess.run(
        [sys.executable, "-", "x"], input=PROGRAM, capture_output=True, text=True, timeout=60, check=True
    )
    assert process.stdout == "- x\n"


def test_a_package_that_starts_vmscope_while_it_is_imported(tmp_path: object) -> None:
    """sys.argv[0] is "-m" then."""
    package = os.path.join(str(tmp_path), "pkg")
    os.mkdir(package)
    for name in ("__init__.py", "__main__.py"):
        with open(os.path.join(package, name), "w") as file:
            file.write(PROGRAM if name == "__init__.py" else "")
    assert run("-m", "pkg", "x", cwd=tmp_path) == "pkg x"


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


def test_start_ticks_whatever_the_process_is_called() -> None:
    code = """
import time
from vmscope.counters import identity
plain = identity.start_ticks()
with open("/proc/self/comm", "w") as file:
    file.write(") R 1 2 (")
print(plain == identity.start_ticks(), plain, identity.start_time(plain) / 1000)
"""
    before = time.time()
    same, ticks, started = run("-c", code).split()
    assert same == "True"
    assert int(ticks) > 0
    assert before - 1 < float(started) < time.time() + 1


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
    assert all(isinstance(value, (int, str)) for value in constants.values())
    assert all("\n" not in value for value in constants.values() if isinstance(value, str))
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
