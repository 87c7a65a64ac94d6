"""Runs CPython's own test modules under `vmscope run` and under `python`, and says where the two differ.

    python scripts/cpython_tests.py                  those below
    python scripts/cpython_tests.py test_gc ...      these

Exit status 1 when a test fails under `vmscope run` that does not fail under `python`. A test that fails is run again
by itself, three times under each, so that one that depends on the machine's load is not taken for a difference.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

MODULES = "test_sys test_runpy test_cmd_line_script test_threading test_signal test_monitoring test_gc".split()
TIMEOUT = 600.0  # seconds for a module
AGAIN = 3

# "test_x (test.test_sys.SysModuleTest.test_x) ... FAIL"; a docstring may stand between, output of the test's too.
HEADING = re.compile(r"^(?:FAIL|ERROR): (?:\S+ \((?P<test>[\w.]+)\)|(?P<other>\S+ \(.*\)))", re.MULTILINE)
COUNT = re.compile(r"^Ran (\d+) tests?", re.MULTILINE)


class Outcome:
    """What became of a run: how many tests there were, which failed, and the last lines where it did not get so far."""

    def __init__(self, names: list[str], vmscope: bool) -> None:
        command = [sys.executable, *(["-m", "vmscope", "run"] if vmscope else []), "-m", "unittest", *names]
        with tempfile.TemporaryDirectory() as folder:
            try:
                run = subprocess.run(
                    command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False
                )
                said, self.status = run.stderr.decode(errors="replace"), run.returncode
            except subprocess.TimeoutExpired as error:
                said, self.status = (error.stderr or b"").decode(errors="replace") + "\ntoo slow\n", -1
        count = COUNT.search(said)
        self.count = int(count[1]) if count else 0
        self.failed = {found["test"] or found["other"] for found in HEADING.finditer(said)}
        if not count:
            self.failed.add(f"{' '.join(names)}: status {self.status}: {' | '.join(said.strip().splitlines()[-3:])}")


def fails_again(test: str, vmscope: bool) -> bool:
    return all(Outcome([test], vmscope).failed for _ in range(AGAIN))


def compare(module: str) -> bool:
    """Runs one both ways, prints a line, and says whether they agree."""
    name = f"test.{module}"
    if importlib.util.find_spec("test") is None or importlib.util.find_spec(name) is None:
        print(f"{module:22} this Python does not ship it", flush=True)
        return True
    plain, ours = Outcome([name], False), Outcome([name], True)
    new = sorted(ours.failed - plain.failed)
    new = [test for test in new if ": status" in test or (fails_again(test, True) and not fails_again(test, False))]
    if ours.count != plain.count:
        new.append(f"{ours.count} tests, under python {plain.count}")
    failed = f"fail under python: {len(plain.failed)}, under vmscope run: {len(ours.failed)}"
    print("\n    only under vmscope run: ".join([f"{module:22} {ours.count:4} tests; {failed}", *new]), flush=True)
    return not new


def main(modules: list[str]) -> int:
    os.environ.pop("VMSCOPE_TOOL_OPTIONS", None)
    with ThreadPoolExecutor(2) as pool:
        return 0 if all([*pool.map(compare, modules or MODULES)]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
