"""The whole extension under the address and undefined-behaviour sanitizers: the unit tests of what is native, on it,
clients that break every rule, forks while there are clients, and stacks that are read while they change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import variants

ROOT = Path(__file__).parents[2]
LIMIT = 400  # seconds, on a busy machine; some 40 on an idle one
UNIT = ROOT / "tests" / "unit"
CLIENTS = [
    str(ROOT / "tests" / "integration" / f"test_{name}.py") for name in ("attack_requests", "handover", "stacks")
]
# The extension's; times mean nothing here, and a JVM is not started with the sanitizer.
CHOSEN = "not python and not counts_are_gc_s_own and not reaches_nothing and not half_busy and not the_stacks_come"
TESTS = (
    "test_native_*.py",
    "test_tool_events.py",
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
    files = sorted(str(path) for pattern in TESTS for path in UNIT.glob(pattern))
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
