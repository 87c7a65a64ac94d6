"""That the Python twin runs where the extension could is said: by status(), the region, ps, run, and by the build."""

from __future__ import annotations

import importlib.machinery
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import vmscope
from tests.conftest import StartVMScope
from tests.support import PATIENCE
from vmscope import native

ROOT = Path(__file__).parents[2]
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
NOTE = "vmscope: its Python twin runs, for "


@pytest.fixture(params=["unbuilt", "broken", "switched off"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """What lets a Python import a vmscope whose extension was not built, cannot be loaded, or is not wanted."""
    if request.param == "switched off":
        return {"VMSCOPE_NATIVE": "0"}
    shutil.copytree(
        Path(vmscope.__file__).parent, tmp_path / "vmscope", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    )
    if request.param == "broken":
        (tmp_path / "vmscope" / "native" / f"_native{SUFFIX}").write_bytes(b"")
    return {"PYTHONPATH": str(tmp_path), "VMSCOPE_NATIVE": "1"}


@pytest.fixture
def reason(request: pytest.FixtureRequest, environment: dict[str, str]) -> str:
    return {
        "unbuilt": f"the extension is not built for {sys.implementation.cache_tag}",
        "broken": "the extension cannot be loaded: ",
        "switched off": "VMSCOPE_NATIVE=0",
    }[request.node.callspec.params["environment"]]


def command(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vmscope", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_of_a_process(start_vmscope: StartVMScope, environment: dict[str, str], reason: str) -> None:
    child = start_vmscope(env=environment)
    with vmscope.vm(child.pid) as vm:
        assert vm.implementation == "python"
        assert vm.implementation_reason.startswith(reason)
        assert vm.values()["vmscope.implementation.reason"] == vm.implementation_reason
    assert child.ask("vmscope.status().implementation_reason").startswith(reason)
    listed = command({}, "ps", "--json", str(child.pid))
    [row] = json.loads(listed.stdout)
    assert (row["implementation"], row["implementation_reason"][: len(reason)]) == ("python", reason)
    assert command({}, "ps", str(child.pid)).stdout.splitlines()[1].split()[2] == "CPython*"
    assert f"(python: {reason}" in command({}, "cmd", str(child.pid), "VM.version").stdout


def test_a_program_that_starts_vmscope_is_told_nothing(environment: dict[str, str]) -> None:
    code = "import vmscope; vmscope.start(); print(vmscope.status().running)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_of_a_command(environment: dict[str, str], reason: str) -> None:
    """Once, and not where the twin was asked for, nor by what is for scripts."""
    for arguments in (["ps", str(os.getpid())], ["run", "-c", "pass"]):
        said = command(environment, *arguments).stderr
        assert said.count(f"{NOTE}{reason}") == (reason != native.SWITCHED_OFF)
    for arguments in (["jps"], ["ps", "--help"], ["help", "run"], ["--version"]):
        assert command(environment, *arguments).stderr == ""


def test_nothing_is_said_where_the_extension_runs(start_vmscope: StartVMScope) -> None:
    if native.IMPLEMENTATION != "c":
        pytest.skip("the extension is not built")
    child = start_vmscope()
    listed = json.loads(command({}, "ps", "--json", str(child.pid)).stdout)
    assert [(row["implementation"], row["implementation_reason"]) for row in listed] == [("c", "")]
    assert vmscope.status().implementation_reason == ""
    assert command({}, "run", "-c", "pass").stderr == ""


@pytest.fixture
def project() -> Iterator[Path]:
    """The sources, without anything built. Not below /tmp, which uv may be kept from."""
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        copy = Path(folder) / "project"
        copy.mkdir()
        for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, copy)
        shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info"))
        yield copy


@pytest.mark.parametrize(
    ("compiler", "why"),
    [("no-such-compiler", "there is no C compiler no-such-compiler"), ("false", "the compiler failed")],
    ids=["none", "failing"],
)
def test_a_build_without_the_extension(project: Path, compiler: str, why: str) -> None:
    """Its last line says what is missing; with a backend of PyPI's, from uv's cache where it has one."""
    asked = [str(ROOT / "scripts" / "uv"), "build", "--wheel", "--python", sys.executable, "--out-dir", str(project)]
    env = {name: value for name, value in os.environ.items() if name != "VMSCOPE_WERROR"}
    built = subprocess.run(
        [*asked, str(project)],
        env={**env, "CC": compiler},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    if built.returncode:
        pytest.skip(f"nothing can be built here: {built.stderr[-500:]}")
    said = [line for line in built.stderr.splitlines() if line.startswith("vmscope: ")]
    assert len(said) == 1
    assert said[0].startswith(f"vmscope: built without its C extension, for {why}")
    names = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(next(project.glob("*.whl")))],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in ("native/region/mirror.py", "__pyinstaller/hook-vmscope.py", "vmscope_follow.pth"):
        assert name in names
    assert ".so" not in names
