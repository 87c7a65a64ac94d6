"""A test that is marked flaky is run once more, and that is shown; every other one is run once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import programs

pytest_plugins = ["pytester"]

PROGRAM = programs.source("flaky/program")


@pytest.mark.parametrize("workers", [0, 1])
def test_only_what_is_marked_is_run_again(
    workers: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pytester.makepyfile(PROGRAM)
    result = pytester.runpytest_subprocess("-p", "tests.flaky", "-p", "no:randomly", f"-n{workers}")
    result.assert_outcomes(passed=3, failed=3)
    result.stdout.fnmatch_lines(
        [
            "RERUN *::test_once: a thread may come first; it failed with: AssertionError: too early",
            "RERUN *::test_always: never mended; it failed with: *",
            "FAILED *::test_always - *",
            "FAILED *::test_elsewhere - *",
            "FAILED *::test_plain - *",
            "=* 3 failed, 3 passed, 2 rerun *",
        ]
    )


def test_a_marker_needs_a_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.flaky\ndef test_it(): pass\n")
    result = pytester.runpytest_inprocess("-p", "tests.flaky")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_it: mark it as flaky(reason='...')"])
