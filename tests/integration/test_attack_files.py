"""Files that a VM makes where others may make some too: what they put in the way is neither written to nor followed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.intruder import KINDS, Intruder
from tests.support import PATIENCE, User

SECRET = "a file that nobody may change\n"


@pytest.fixture
def intruder(private_user: User) -> Iterator[Intruder]:
    with Intruder(private_user) as intruder:
        yield intruder


@pytest.fixture
def secret(shared_folder: Path) -> Path:
    """A file of root's, which others may read."""
    path = shared_folder / "secret"
    path.write_text(SECRET)
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["stop", "crash"])
def test_a_region_is_saved_over_nothing_of_others(
    end: str, kind: str, implementation: str, intruder: Intruder, shared_folder: Path, secret: Path
) -> None:
    if (end, implementation) == ("crash", "python"):
        pytest.skip("the twin has no fatal path")
    path = shared_folder / "region"
    if not intruder.put(kind, path, secret):
        os.link(secret, path)  # fs.protected_hardlinks: what the intruder may not do here
    code = f"""
import os, vmscope
vmscope.start("-XX:PerfDataSaveFile={path}")
{"vmscope.stop()" if end == "stop" else "os.abort()"}
"""
    run = subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0 if end == "stop" else -signal.SIGABRT, "")
    assert secret.read_text() == SECRET
    assert intruder.ask(f"os.lstat({str(path)!r}).st_size") in ("0", str(len(SECRET)), str(len(str(secret))), "4096")
    if kind == "pipe":
        assert intruder.ask("os.read(kept[-1], 1)") == "b''"


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_region_is_saved_over_a_file_of_ones_own(mode: int, implementation: str, shared_folder: Path) -> None:
    path = shared_folder / "region"
    path.write_bytes(b"x" * (1 << 20))
    path.chmod(mode)
    code = f"import vmscope\nvmscope.start('-XX:PerfDataSaveFile={path}')\nvmscope.stop()"
    subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=True)
    assert path.stat().st_size == 65536
    assert path.stat().st_mode & 0o777 == mode
    assert path.read_bytes().startswith(b"\xca\xfe\xc0\xc0")


LOG = """
import logging, sys, vmscope.commands
from vmscope.errors import CommandError
try:
    vmscope.commands.execute(f"VM.log output={sys.argv[1]} what=all=info", sys.stdout)
    logging.getLogger("vmscope").info("a record")
except CommandError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("whose", ["everybody's", "the intruder's"])
def test_a_log_is_appended_to_nothing_of_others(
    whose: str, kind: str, intruder: Intruder, shared_folder: Path, secret: Path
) -> None:
    folder = shared_folder
    if whose == "the intruder's":  # where fs.protected_symlinks and its like protect nothing
        folder = shared_folder / "mine"
        assert intruder.put("folder", folder)
    path = folder / "log"
    if not intruder.put(kind, path, secret):
        os.link(secret, path)  # fs.protected_hardlinks: what the intruder may not do here
    run = subprocess.run([sys.executable, "-c", LOG, str(path)], timeout=PATIENCE, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(f"cannot write the log to {path}: ")
    assert secret.read_text() == SECRET
    if kind == "file":
        assert path.read_text() == ""
    if kind == "pipe":
        assert intruder.ask("os.read(kept[-1], 1)") == "b''"


def test_a_log_is_appended_to_a_file_of_ones_own(shared_folder: Path) -> None:
    path = shared_folder / "log"
    path.write_text("before\n")
    subprocess.run([sys.executable, "-c", LOG, str(path)], timeout=PATIENCE, check=True)
    before, record, *_ = path.read_text().splitlines()
    assert before == "before"
    assert record.endswith("a record")
