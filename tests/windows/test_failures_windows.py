"""A failure of each Win32 call in turn, and handles: what is opened is closed, whatever fails."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import ctypes
import gc
import os
from pathlib import Path
from typing import Any

import pytest

from tests.windows.conftest import StartProgram
from vmscope import win32
from vmscope.errors import VMScopeError
from vmscope.memory.region import Region
from vmscope.reader import vm

CALLS = sorted(name for name, value in vars(win32).items() if isinstance(value, ctypes._CFuncPtr))  # type: ignore[attr-defined]
# What takes something back is done all the same: it says that it failed, and nothing more can be asked of it.
RELEASES = ("_CloseHandle", "_LocalFree", "_UnmapViewOfFile")
FAILED = {
    "_CreateFile": ctypes.c_void_p(-1).value,
    "_GetFileAttributes": 0xFFFFFFFF,
    "_CreateSnapshot": ctypes.c_void_p(-1).value,
}
NULL = ("_CreateFileMapping", "_MapViewOfFile", "_OpenFileMapping", "_OpenProcess", "_GetCurrentProcess")
ERROR = 1450  # ERROR_NO_SYSTEM_RESOURCES


class Injection:
    """Counts the calls of each function, and lets one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: dict[str, int] = {}
        self.victim = ("", 0)
        self.failed = False
        for name in CALLS:
            monkeypatch.setattr(win32, name, self._wrapped(name, getattr(win32, name)))

    def _wrapped(self, name: str, function: Any) -> Any:
        def call(*arguments: object) -> object:
            number = self.calls[name] = self.calls.get(name, 0) + 1
            if (name, number) != self.victim:
                return function(*arguments)
            self.failed = True
            if name in RELEASES:
                function(*arguments)
            ctypes.set_last_error(ERROR)
            return FAILED.get(name, None if name in NULL else 0)

        return call

    def arm(self, name: str, number: int) -> None:
        self.calls.clear()
        self.victim = name, number
        self.failed = False


def test_every_call_is_typed() -> None:
    assert len(CALLS) > 25
    for name in CALLS:
        function = getattr(win32, name)
        assert function.argtypes is not None, name
        assert function.restype is not ctypes.c_int or name not in NULL, name


def publish() -> Region:
    region = Region(65536)
    region.publish()
    return region


def withdraw(region: Region) -> None:
    assert region.file is not None
    region.file.unlink()


def test_a_failure_of_each_call_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("USERNAME", raising=False)  # so that the account is asked too
    directory = folder / f"hsperfdata_{win32.user_name()}"
    withdraw(publish())  # what is opened once for all
    injection = Injection(monkeypatch)
    withdraw(publish())
    used = {name: count for name, count in injection.calls.items() if name != "_UnmapViewOfFile"}
    assert {"_CreateFile", "_CreateFileMapping", "_MapViewOfFile", "_WriteFile", "_SetFileSecurity"} <= set(used)
    outcomes = {}
    for name, count in used.items():
        for number in range(1, count + 1):
            gc.collect()
            injection.arm("", 0)
            before = win32.own_handles()
            injection.arm(name, number)
            region = Region(65536)
            try:
                region.publish()
                withdraw(region)
                outcomes[name, number] = "published"
            except VMScopeError as error:
                outcomes[name, number] = str(error)
            assert injection.failed, (name, number)
            injection.arm("", 0)
            del region
            gc.collect()
            assert win32.own_handles() == before, (name, number, outcomes[name, number])
            assert not directory.exists() or os.listdir(directory) == [], (name, number)
    fine = {name for (name, _), outcome in outcomes.items() if outcome == "published"}
    assert fine <= {"_LocalFree", "_SetFileSecurity", "_CreateDirectory", "_GetFileAttributes", "_GetTokenInformation"}
    assert any("error 1450" in outcome for outcome in outcomes.values()), outcomes


def test_a_failure_of_each_call_of_a_reader_leaves_nothing_behind(
    start_program: StartProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = start_program("vmscope.start()\nvmscope.counter('a.b').add(5)")

    def look() -> int | str:
        with vm(program.pid) as found:
            return found.values()["sun.rt.jvmVersion"]

    assert look() == sys.hexversion
    injection = Injection(monkeypatch)
    look()
    used = dict(injection.calls)
    assert {"_OpenFileMapping", "_MapViewOfFile", "_OpenProcess", "_GetProcessTimes"} <= set(used)
    for name, count in used.items():
        for number in range(1, count + 1):
            gc.collect()
            injection.arm("", 0)
            before = win32.own_handles()
            injection.arm(name, number)
            try:
                assert look() == sys.hexversion
            except VMScopeError:
                pass
            if name != "_ProcessNext":  # of which there are fewer once a process has ended
                assert injection.failed, (name, number)
            injection.arm("", 0)
            gc.collect()
            assert win32.own_handles() == before, (name, number)


def test_a_thousand_starts_and_stops_keep_no_handle(folder: Path, start_program: StartProgram) -> None:
    code = (
        "from vmscope import win32\n"
        "def cycle(times):\n"
        "    for _ in range(times):\n"
        "        vmscope.start()\n"
        "        assert vmscope.status().path, vmscope.status().reason\n"
        "        vmscope.stop()\n"
        "    return win32.own_handles()\n"
    )
    program = start_program(code)
    before = program.ask("cycle(20)")
    assert program.ask("cycle(1000)") == before


def test_a_thousand_starts_with_a_failure_each_keep_no_handle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("USERNAME", raising=False)
    withdraw(publish())
    injection = Injection(monkeypatch)
    withdraw(publish())
    steps = [(name, number) for name, count in injection.calls.items() for number in range(1, count + 1)]
    assert len(steps) > 20
    failures = 0
    gc.collect()
    injection.arm("", 0)
    before = win32.own_handles()
    for cycle in range(1000):
        injection.arm(*steps[cycle % len(steps)])
        try:
            withdraw(publish())
        except VMScopeError:
            failures += 1
        assert injection.failed, steps[cycle % len(steps)]
    injection.arm("", 0)
    gc.collect()
    assert win32.own_handles() == before
    assert failures > 500
