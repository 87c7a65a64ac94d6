"""What the package promises to whoever installs it, and what its lock file may name."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vmscope

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_nothing_is_required_at_run_time() -> None:
    assert [line for line in importlib.metadata.requires("vmscope") or [] if "extra ==" not in line] == []


def test_the_version_has_one_home() -> None:
    assert importlib.metadata.version("vmscope") == vmscope.__version__
    assert "version" in PROJECT["project"]["dynamic"]


def test_the_licence_is_spdx_and_shipped() -> None:
    metadata = importlib.metadata.metadata("vmscope")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"


def test_the_versions_that_are_tried_are_those_that_are_named() -> None:
    """By `make matrix`, and by the workflow that runs a job for each cell."""
    (cells,) = re.findall(r"^CELLS \?= (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    workflow = (ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert cells.split() == [*named, "twins"]
    assert json.loads(re.findall(r"cell: (\[.+\])", workflow)[0]) == cells.split()


def test_the_package_is_typed() -> None:
    assert (Path(vmscope.__file__).parent / "py.typed").is_file()


def test_the_changelog_knows_the_version() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased" or headings[0] == vmscope.__version__


CORPORA = ("tests/corpus/", "tests/fuzz/corpus/")


def tracked() -> list[Path]:
    """The files that git has."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("no git, or no checkout")
    run = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    if run.returncode:
        pytest.skip(f"git does not read the checkout: {run.stderr.strip()}")
    return [path for name in run.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_large_file_is_tracked() -> None:
    """The lock file alone may have more than 200 kB."""
    large = [str(path.relative_to(ROOT)) for path in tracked() if path.stat().st_size > 200_000]
    assert large == ["uv.lock"]


def test_no_binary_is_tracked() -> None:
    """But for what readers and fuzzers are tried with."""
    names = {path.relative_to(ROOT).as_posix(): path for path in tracked()}
    others = [path for name, path in names.items() if not name.startswith(CORPORA)]
    assert [str(path) for path in others if b"\0" in path.read_bytes()] == []
    for path in others:
        path.read_text(encoding="utf-8")


def test_the_project_says_where_it_lives() -> None:
    assert PROJECT["project"]["authors"] == [{"name": "the vmscope developers"}]
    assert set(PROJECT["project"]["urls"]) == {"Source", "Documentation", "Changelog", "Issues", "Security"}


def test_the_lock_names_the_public_index_only() -> None:
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text(encoding="utf-8")))
    assert hosts == {"pypi.org", "files." + "pythonhosted.org"}


def test_the_editable_install_is_a_plain_path() -> None:
    """An import hook would cost every start of every Python in the environment some milliseconds."""
    code = "import sys; print(*[type(finder).__name__ for finder in sys.meta_path], *sys.meta_path)"
    finders = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "__editable__" not in finders
    assert "PathFinder" in finders
