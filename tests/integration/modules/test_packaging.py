"""What the package promises to whoever installs it, and what its lock file may name.

What needs processes of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_packaging import ROOT

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


def test_the_editable_install_is_a_plain_path() -> None:
    """An import hook would cost every start of every Python in the environment some milliseconds."""
    code = "import sys; print(*[type(finder).__name__ for finder in sys.meta_path], *sys.meta_path)"
    finders = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "__editable__" not in finders
    assert "PathFinder" in finders
