"""RULES.md holds: each of its experiments gives on every JDK found what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.cases import CASES, Case
from tests.oracle.jvmstat import Result, jdks, read_all, release


@pytest.fixture(scope="module", params=jdks(), ids=lambda home: f"jdk{release(home)}")
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[Result]]:
    jdk: Path = request.param
    directory = tmp_path_factory.mktemp("regions")
    paths = [directory / str(number) for number in range(len(CASES))]
    for path, case in zip(paths, CASES, strict=True):
        path.write_bytes(case.data)
    results = read_all(paths, jdk)
    return release(jdk), [results[str(path)] for path in paths]


@pytest.mark.parametrize("group", sorted({case.group for case in CASES}))
def test_the_jdk_does_what_the_rules_say(answers: tuple[int, list[Result]], group: str) -> None:
    jdk, results = answers
    asked = [(case, result) for case, result in zip(CASES, results, strict=True) if case.group == group]
    assert len(asked) > 10
    wrong = {
        case.name: (_seen(result), case.expected, result.message)
        for case, result in asked
        if case.release in (0, jdk) and _seen(result) != case.expected
    }
    assert not wrong


def _seen(result: Result) -> dict[str, int | str] | str:
    if not result.readable:
        return result.exception
    return {name: entry.value for name, entry in result.counters.items()}


def test_no_two_experiments_share_a_name() -> None:
    names = [(case.group, case.name, case.release) for case in CASES]
    assert len(names) == len(set(names))
    assert {type(case) for case in CASES} == {Case}
