"""Fixtures of the Windows suite, which is no suite elsewhere."""

from __future__ import annotations

import sys

import pytest

if sys.platform != "win32":
    collect_ignore_glob = ["test_*"]
else:
    import shutil
    import tempfile
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support import JDK
    from tests.windows.programs import WINE, Program
    from vmscope import win32

    def pytest_configure(config: pytest.Config) -> None:
        config.addinivalue_line("markers", "windows_only(reason): does not hold under Wine")

    def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
        for item in items:
            mark = item.get_closest_marker("windows_only")
            if mark is not None and WINE:
                item.add_marker(pytest.mark.skip(reason=f"not under Wine: {mark.args[0]}"))

    StartProgram = Callable[..., Program]

    @pytest.fixture
    def start_program() -> Iterator[StartProgram]:
        """`start_program(code, *options)`: a `Program`, gone when the test ends."""
        started: list[Program] = []

        def start(code: str = "vmscope.start()", *options: str, **named: dict[str, str]) -> Program:
            program = Program(code, *options, **named)
            started.append(program)
            return program

        yield start
        for program in started:
            program.kill()

    @pytest.fixture
    def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A temporary folder of the test's own, as GetTempPath names it."""
        made = tempfile.mkdtemp(prefix="vmscope-")
        monkeypatch.setenv("TMP", made)
        yield Path(win32.temporary_folder().rstrip("\\"))
        shutil.rmtree(made, ignore_errors=True)

    @pytest.fixture(scope="session")
    def jre() -> JDK:
        found = JDK.find()
        if found is None:
            pytest.skip("no Windows JRE in JAVA_HOME")
        return found
