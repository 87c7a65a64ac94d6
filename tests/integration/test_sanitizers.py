"""The whole extension under the address and undefined-behaviour sanitizers: the unit tests of what is native, on it,
clients that break every rule, forks while there are clients, stacks that are read while they change, a region that
grows, and the export within a program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import variants

ROOT = Path(__file__).parents[2]
LIMIT = 900  # seconds, on a busy machine
UNIT = ROOT / "tests" / "unit"
CLIENTS = [
    str(ROOT / "tests" / "integration" / f"test_{name}.py")
    for name in ("attack_requests", "handover", "stacks", "growth", "export_inside", "export_exemplars")
]
# The extension's; times mean nothing here, and a JVM is not started with the sanitizer.
CHOSEN = (
    "not python and not of_the_jdk and not prometheus and not counts_are_gc_s_own and not reaches_nothing"
    " and not half_busy and not the_stacks_come"
)
TESTS = (
    "native/test_*.py",
    "tool/test_events.py",
    "test_labels.py",
    "test_reader_mapping.py",
    "test_wire_scan.py",
    "test_region.py",
)


@pytest.mark.timeout(LIMIT + 60)
def test_no_sanitizer_finds_anything(tmp_path: Path) -> None:
    runtime = variants.runtime_library("libasan.so")
    if runtime is None:
        pytest.skip("no compiler with libasan")
    package = variants.build(tmp_path / "package", sanitizers="address,undefined")
    found = [sorted(map(str, UNIT.glob(pattern))) for pattern in TESTS]
    assert all(found), "a pattern without a file"
    files = [path for paths in found for path in paths]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", CHOSEN, f"--basetemp={tmp_path / 'base'}"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files, *CLIENTS],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": package,
            "PYTHONMALLOC": "malloc",  # so that each object is a block that the sanitizer watches
            "LD_PRELOAD": runtime,
            # Leaks are CPython's own to tell; faults belong to the handlers under test.
            "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_abort=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert run.returncode == 0, f"{run.stdout[-3000:]}\n{run.stderr[-5000:]}"
    assert " passed" in run.stdout
    assert "Sanitizer" not in run.stderr
    assert "runtime error" not in run.stderr


@pytest.mark.timeout(LIMIT + 60)
@pytest.mark.parametrize("program", ["tests.threads", "tests.serving_threads"])
def test_no_data_race_is_found(tmp_path: Path, program: str) -> None:
    """Of the extension alone, with the GIL: its own threads, against those of the program, while the region grows.

    The sanitizer knows one table of descriptors, but some of our threads have their own: what it says of descriptors is
    left out.
    """
    runtime = variants.runtime_library("libtsan.so")
    if runtime is None or shutil.which("setarch") is None:
        pytest.skip("no compiler with libtsan, or no setarch")
    package = variants.build(tmp_path / "package", sanitizers="thread")
    found = subprocess.run(
        ["setarch", "-R", sys.executable, "-m", program, "4", "200"],  # it needs addresses that are not random
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": package,
            "LD_PRELOAD": runtime,
            "TSAN_OPTIONS": f"log_path={tmp_path}/log exitcode=0 report_signal_unsafe=0",
        },
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["overflow"] == 0
    reports = [each for log in tmp_path.glob("log*") for each in log.read_text().split("=" * 18)]
    assert [each for each in reports if "WARNING" in each and "Location is file descriptor" not in each] == []
