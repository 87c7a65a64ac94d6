"""What the package promises to whoever installs it, and what its lock file may name."""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib
from pathlib import Path

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


def test_the_project_says_where_it_lives() -> None:
    assert PROJECT["project"]["authors"] == [{"name": "the vmscope developers"}]
    assert set(PROJECT["project"]["urls"]) == {"Source", "Documentation", "Changelog", "Issues", "Security"}


def test_the_lock_names_the_public_index_only() -> None:
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text(encoding="utf-8")))
    assert hosts == {"pypi.org", "files." + "pythonhosted.org"}
