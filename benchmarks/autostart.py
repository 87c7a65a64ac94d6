"""What autostart costs a process, and the file by which `vmscope run` reaches children, where nobody has woken it: in
virtual environments that are alike but for that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory

from benchmarks.measure import Figure, in_turns, output, process
from benchmarks.world import ROOT
from tests.environment import Environment

IMPORTED = "import sys; print('vmscope.boot' in sys.modules)"
VISIBLE = "import time; time.sleep(0.3); import vmscope; print(vmscope.status().path is not None)"
# what is shown, code, at most
PROGRAMS = (
    ("`python -c pass` with autostart, to without", "pass", 1.25),
    ("the same: `python -c 'import json'`", "import json", None),
    ("the same: a program of 0.1 s, which is published", "import time; time.sleep(0.1)", None),
)


FOLLOW = "vmscope_follow.pth"
FOLLOWED = "import sys; print('vmscope.follow' in sys.modules)"


def figures(rounds: int) -> Iterator[Figure]:
    yield from autostart(rounds)
    yield inert(rounds)


def inert(rounds: int) -> Figure:
    """The file in the environment, and its variable not set: a hundredth of a start, so more rounds than elsewhere."""
    with TemporaryDirectory() as folder:
        without, having = (Environment(Path(folder) / name) for name in ("without", "having"))
        copy(ROOT / "src" / FOLLOW, having.site)
        for environment, expected in ((without, "False\n"), (having, "True\n")):
            woken = environment.run("-c", FOLLOWED, env={"VMSCOPE_RUN_OPTIONS": "-Dwoken=1"})
            if woken != (0, expected, "") or output([environment.python, "-c", FOLLOWED]) != "False\n":
                raise RuntimeError(f"whether {FOLLOW} is woken in {environment.folder} should be {expected.strip()}")
        cases = {each.folder.name: process([each.python, "-c", "pass"]) for each in (having, without)}
        found = in_turns(cases, 20 * rounds)
        return Figure(f"`python -c pass` with {FOLLOW} at rest, to without", found["having"], found["without"], 1.01)


def autostart(rounds: int) -> Iterator[Figure]:
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
