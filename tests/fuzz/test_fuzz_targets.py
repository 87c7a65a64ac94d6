"""Each target of coverage-guided fuzzing over its corpus, and some thousands of executions more; needs clang.

`make fuzz` runs them as long as you like.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import fuzzer, twins
from vmscope import native

EXECUTIONS = {
    "walk": 50_000,
    "scan": 2_000,
    "frames": 10_000,
    "mapping": 1_000,
    "strings": 5_000,
    "operations": 5_000,
    "replies": 2_000,
    "arguments": 5_000,
}


def test_each_target_has_a_small_corpus() -> None:
    folders = {path.name: list(path.iterdir()) for path in fuzzer.CORPUS.iterdir()}
    assert set(folders) == set(fuzzer.TARGETS) == set(EXECUTIONS)
    for files in folders.values():
        assert 5 <= len(files) <= 100
        assert sum(path.stat().st_size for path in files) < 10_000


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", list(fuzzer.TARGETS))
def test_a_target(name: str, tmp_path: Path) -> None:
    target = fuzzer.TARGETS[name]
    try:
        program = fuzzer.build(target, tmp_path)
    except fuzzer.NoFuzzer as error:
        pytest.skip(str(error))
    known = fuzzer.corpus(target, program)
    assert not known.failed, known.log[-6000:]
    run = fuzzer.run(target, program, executions=EXECUTIONS[name])
    assert not run.failed, run.log[-6000:]
    assert run.executions >= EXECUTIONS[name]
    assert known.covered > 0.9 * run.covered  # else the corpus is old: make fuzz ARGS=--merge


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the extension is not built, or VMSCOPE_NATIVE=0")
def test_the_extension_and_its_twins() -> None:
    for number in range(1_000):
        twins.check(5, number)
