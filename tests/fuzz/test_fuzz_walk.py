"""Mutated regions through the native walk, built with the address and undefined-behaviour sanitizers.

VMSCOPE_FUZZ sets the number of mutants (20,000), VMSCOPE_FUZZ_SEED the seed (1).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import corpus

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "src" / "vmscope" / "native"
COUNT = int(os.environ.get("VMSCOPE_FUZZ", "20000"))
SEED = os.environ.get("VMSCOPE_FUZZ_SEED", "1")
STATUSES = 21  # of WalkStatus; 0 never ends a walk
NUMBER = 14  # too many entries, for which no mutant is large enough


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    program = tmp_path_factory.mktemp("fuzz") / "fuzz_walk"
    flags = "-std=c11 -O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all".split()
    sources = [str(HERE / "fuzz_walk.c"), str(HERE / "check_walk.c"), str(NATIVE / "region/walk.c")]
    build = subprocess.run(
        [compiler, *flags, f"-I{NATIVE}", "-o", str(program), *sources], capture_output=True, text=True, check=False
    )
    if build.returncode and "sanitize" in build.stderr and "walk.c:" not in build.stderr:
        pytest.skip(f"no sanitizers for {compiler}")
    assert build.returncode == 0, build.stderr
    return program


@pytest.mark.timeout(120 + COUNT // 1000)
def test_no_mutant_makes_the_walk_read_astray(driver: Path, tmp_path: Path) -> None:
    files = [str(path) for path in corpus.write(tmp_path).values()]
    run = subprocess.run(
        [str(driver), SEED, "0", str(COUNT), *files],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
    )
    assert run.returncode == 0, f"{run.returncode}: {run.stderr[-4000:]}"
    first, *rest = run.stdout.splitlines()
    assert first.split()[1] == str(COUNT)
    ends = {int(line.split()[1]): int(line.split()[2]) for line in rest}
    assert sum(ends.values()) == COUNT
    if COUNT >= 20_000:
        missing = [status for status in range(1, STATUSES) if not ends[status] and status != NUMBER]
        assert not missing, f"no mutant got there: {missing}"
