"""Without a GIL: on a free-threaded CPython, which `scripts/freethreaded` builds. Skipped where there is none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import variants

from tests.support import PATIENCE

ROOT = Path(__file__).parents[2]
THREADS, ROUNDS = 8, 500


def interpreter(variant: str = "") -> str:
    found = variants.free_threaded(variant)
    if found is None:
        pytest.skip(f"no free-threaded CPython: run scripts/freethreaded {variant}".rstrip())
    return found


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built(tmp_path_factory, interpreter())


def built(tmp_path_factory: pytest.TempPathFactory, python: str, sanitizers: str = "") -> str:
    try:
        return variants.build(tmp_path_factory.mktemp("package"), python, sanitizers)
    except variants.BuildError as error:
        if "no C compiler" in str(error):
            pytest.skip("no C compiler")
        raise


def run(python: str, package: str, *arguments: str, env: dict[str, str] | None = None) -> str:
    """What it prints. Nothing may come on stderr, as the warning does when an import switches the GIL on."""
    child = subprocess.run(
        [python, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": package, **(env or {})},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
    )
    assert child.stderr == "", child.stderr[-4000:]
    assert child.returncode == 0
    return child.stdout


def check(found: dict[str, Any], threads: int, rounds: int) -> None:
    total = threads * rounds
    assert found["implementation"] == "c"
    assert found["gil"] is False
    assert found["published"]
    assert found["overflow"] == 0
    assert found["counter"] == 3 * total
    assert found["gauge"] == 2 * total
    assert found["buckets"] == [threads * len(range(i, rounds, 4)) for i in range(4)]
    assert found["sum"] == threads * sum(i % 4 for i in range(rounds))
    assert found["timed"] == total
    assert found["labels"] == [threads * len(range(i, rounds, 7)) for i in range(7)]
    assert found["observed"] == [threads * len(range(i, rounds, 3)) for i in range(3)]
    assert found["made"] == [threads * len(range(rounds)[i : i + 4]) for i in range(0, rounds, 4)]


def test_the_gil_stays_off(package: str) -> None:
    code = "import sys, vmscope; vmscope.start(); vmscope.counter('a').inc(); print(sys._is_gil_enabled())"
    assert run(interpreter(), package, "-c", code) == "False\n"


def test_eight_threads_lose_nothing(package: str) -> None:
    """On counters, gauges, texts, histograms, timers and labels, while counters are made and go, and the region too."""
    found = json.loads(run(interpreter(), package, "-m", "tests.threads", str(THREADS), str(ROUNDS)))
    check(found, THREADS, ROUNDS)


SERVED = {"gil": False, "grown": True, "overflow": 0, "ok": True}


def test_a_program_serves_while_threads_start_and_stop_that(package: str) -> None:
    found = json.loads(run(interpreter(), package, "-m", "tests.serving_threads", "4", "100"))
    assert found == {**SERVED, "count": 400}


def test_the_tool_interface_has_its_version_s_sets_and_one_holder_at_a_time(package: str) -> None:
    found = json.loads(run(interpreter(), package, "-m", "tests.tool_threads"))
    assert (found["gil"], found["free_threaded"]) == (False, True)
    assert found["features"], "the documentation says that a build without the GIL has what its version has"
    assert found["most"] == 1
    assert found["had"]
    assert found["sent"] >= 400, "each thread's environments got at least the events that it posted itself"
    assert (found["threads"], found["alive"]) == (8, 0)
    assert (found["environments"], found["free"]) == (0, True)


def test_the_thread_sanitizer_finds_nothing(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """With CPython itself under it, and the suppressions that CPython's own developers use.

    One more: CPython 3.13 reads gc.callbacks without a lock while start and stop change that list.
    """
    python = interpreter("tsan")
    package = built(tmp_path_factory, python, "thread")
    suppressions = tmp_path / "suppressions"
    cpythons = (Path(python).parents[1] / "suppressions.txt").read_text()
    suppressions.write_text(cpythons + "\nrace:invoke_gc_callback\n")
    options = f"suppressions={suppressions} log_path={tmp_path}/log exitcode=0"
    found = json.loads(run(python, package, "-m", "tests.threads", "4", "400", env={"TSAN_OPTIONS": options}))
    served = run(python, package, "-m", "tests.serving_threads", "4", "50", env={"TSAN_OPTIONS": options})
    assert [path.read_text() for path in tmp_path.glob("log*")] == []
    check(found, 4, 400)
    assert json.loads(served) == {**SERVED, "count": 200}
