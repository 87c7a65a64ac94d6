"""What autostart costs a process, in two virtual environments that are alike but for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Figure, in_turns, output, process
from tests.environment import Environment

IMPORTED = "import sys; print('vmscope.boot' in sys.modules)"
VISIBLE = "import time; time.sleep(0.3); import vmscope; print(vmscope.status().path is not None)"
# what is shown, code, at most
PROGRAMS = (
    ("`python -c pass` with autostart, to without", "pass", 1.25),
    ("the same: `python -c 'import json'`", "import json", None),
    ("the same: a program of 0.1 s, which is published", "import time; time.sleep(0.1)", None),
)


def figures(rounds: int) -> Iterator[Figure]:
    with TemporaryDirectory() as folder:
        without, having = (Environment(Path(folder) / name) for name in ("without", "having"))
        having.switch("on")
        for environment, expected in ((without, "False\n"), (having, "True\n")):
            if {output([environment.python, "-c", code]) for code in (IMPORTED, VISIBLE)} != {expected}:
                raise RuntimeError(f"whether a Python of {environment.folder} is visible should be {expected.strip()}")
        for name, code, limit in PROGRAMS:
            cases = {environment: process([environment.python, "-c", code]) for environment in (having, without)}
            found = in_turns({case.folder.name: run for case, run in cases.items()}, 2 * rounds)
            yield Figure(name, found["having"], found["without"], limit)
