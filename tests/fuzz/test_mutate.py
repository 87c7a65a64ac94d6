"""The mutation engine is deterministic, and its mix reaches every way a region can be read or refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.mutate import MUTATIONS, bases, mutant, mutants
from tests.oracle.jvmstat import jdks, read_all


def test_two_numbers_name_one_region() -> None:
    first = list(mutants(7, 50))
    assert first == list(mutants(7, 50))
    assert mutant(7, 49) == first[49]
    assert first != list(mutants(8, 50))


def test_most_mutants_differ_from_every_base() -> None:
    sound = {base.data for base in bases()}
    assert sum(data in sound for data in mutants(1, 500)) < 25


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: str(mutation.__name__))
def test_every_mutation_takes_every_base_however_short(mutation: object) -> None:
    assert callable(mutation)
    for number, base in enumerate(bases()):
        for length in (0, 7, 31, base.used // 2, base.used, len(base.data)):
            data = bytearray(base.data[:length])
            mutation(Random(number), data, base)
            assert len(data) <= 2 * 65536 + 4096


def test_half_of_the_mutants_can_still_be_read(tmp_path: Path) -> None:
    if not jdks():
        pytest.skip("no JDK with javac and jps")
    paths = [tmp_path / str(number) for number in range(1500)]
    for path, data in zip(paths, mutants(3, len(paths)), strict=True):
        path.write_bytes(data)
    results = read_all(paths).values()
    states = Counter(result.state for result in results)
    assert 0.4 < states["readable"] / len(paths) < 0.7
    assert states["unready"] + states["heap"] < 0.03 * len(paths)
    assert {result.exception for result in results} >= {
        "MonitorStructureException", "MonitorDataException", "MonitorTypeException", "MonitorVersionException",
        "BufferUnderflowException", "IllegalArgumentException", "NegativeArraySizeException",
    }  # fmt: skip
