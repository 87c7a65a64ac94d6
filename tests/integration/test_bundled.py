"""Programs that PyInstaller has bundled, and zipapps, answer as others do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipapp
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

import vmscope
from tests import programs
from tests.diagnostics import refused
from tests.support import Child
from vmscope.commands.registry import TABLE

COMMAND = [sys.executable, "-m", "vmscope"]

SHOP = programs.source("bundled/shop")

# What each command is given, so that it does something.
ARGUMENTS = {
    "GC.heap_dump": "-all FOLDER/a.hprof",
    "JVMTI.agent_load": 'vmscope.agents.watchdog "memory=8t"',
    "Python.tracemalloc": "start",
    "VM.log": "list",
    "VM.set_flag": "Instrument asyncio",
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, with all that it needs, in a folder."""
    if find_spec("PyInstaller") is None:
        pytest.skip("PyInstaller is not installed")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        pytest.skip("PyInstaller needs a Python with a shared library")
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "shop.py").write_text(SHOP)
    command = [sys.executable, "-W", "ignore", "-m", "PyInstaller", "--noconfirm", "--log-level=ERROR"]
    places = ["--distpath", str(folder / "dist"), "--workpath", str(folder / "work"), "--specpath", str(folder)]
    environment = {**os.environ, "PYINSTALLER_CONFIG_DIR": str(folder / "cache")}
    run = subprocess.run(
        [*command, *places, str(folder / "shop.py")], env=environment, capture_output=True, text=True, timeout=110
    )
    if "Python shared library" in run.stderr:  # it is looked for where Debian installs it, not in scripts/pythons'
        pytest.skip("PyInstaller does not find the shared library of this Python")
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "dist" / "shop" / "shop"


@pytest.fixture
def shop(bundle: Path) -> Iterator[tuple[Child, int]]:
    """The program and its worker."""
    with Child([str(bundle)]) as child:
        worker, implementation = child.readline().split()
        assert implementation == vmscope.status().implementation
        yield child, int(worker)


def ask(pid: int, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line = f"{name} {ARGUMENTS.get(name, '').replace('FOLDER', str(folder))}"
    command = [*COMMAND, "cmd", str(pid), line]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def assert_all_answered(pid: int, folder: Path) -> None:
    for name in TABLE:
        run = ask(pid, name, folder)
        assert (run.returncode, run.stderr) == (0, ""), f"{name}: {run.stderr}"
        assert "ModuleNotFoundError" not in run.stdout


def test_a_bundle_answers(shop: tuple[Child, int], tmp_path: Path) -> None:
    child, worker = shop
    assert_all_answered(child.pid, tmp_path)
    assert "shop" in ask(child.pid, "VM.command_line", tmp_path).stdout
    rows = json.loads(subprocess.run([*COMMAND, "ps", "--json"], capture_output=True, timeout=60, check=True).stdout)
    roles = {row["pid"]: (row["main"], row["role"], row["master"]) for row in rows}
    assert roles[child.pid] == ("shop", "master", None)
    assert roles[worker][1:] == ("spawned worker", child.pid)


@pytest.mark.parametrize("whole", [False, True], ids=["beside", "within"])
def test_a_zipapp_answers(tmp_path: Path, whole: bool) -> None:
    """With vmscope from the environment, and from the archive, out of which no extension can be loaded."""
    source = tmp_path / "shop"
    source.mkdir()
    code = "import sys, vmscope\nvmscope.start()\nprint(vmscope.__file__, vmscope.status().implementation_reason)\n"
    (source / "__main__.py").write_text(f"{code}sys.stdout.flush()\nsys.stdin.read()\n")
    if whole:
        package = Path(vmscope.__file__).parent
        shutil.copytree(package, source / "vmscope", ignore=shutil.ignore_patterns("__pycache__", "*.c", "*.h", "*.so"))
    zipapp.create_archive(source, tmp_path / "shop.pyz")
    with Child([sys.executable, str(tmp_path / "shop.pyz")]) as child:
        place, _, reason = child.readline().partition(" ")
        assert ("shop.pyz" in place) is whole
        assert ("not built" in reason) is whole or vmscope.status().implementation == "python"
        assert_all_answered(child.pid, tmp_path)


def test_the_hook_is_found() -> None:
    """As PyInstaller finds it."""
    [point] = [each for each in entry_points(group="pyinstaller40") if each.value.startswith("vmscope")]
    assert point.name == "hook-dirs"
    [folder] = point.load()()
    assert os.listdir(folder).count("hook-vmscope.py") == 1


def test_a_module_that_a_bundle_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vmscope.commands.uptime", None)
    text = refused("VM.uptime")
    assert text == "VM.uptime is not there: the program was bundled without vmscope.commands.uptime"
