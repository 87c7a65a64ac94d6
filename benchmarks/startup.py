"""What being visible costs a program's start."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.measure import Figure, in_turns, output, process
from benchmarks.world import bare_python, vmscope_command

VISIBLE = "import os, vmscope; vmscope.start(); print(os.path.exists(vmscope.status().path))"


def figures(rounds: int) -> Iterator[Figure]:
    if output([sys.executable, "-c", VISIBLE]) != "True\n":
        raise RuntimeError("vmscope.start() made no region")
    found = in_turns(
        {
            "python -c pass": process(bare_python()),
            "vmscope run -c pass": process(vmscope_command("run", "-c", "pass")),
            "python -m vmscope run -c pass": process([sys.executable, "-m", "vmscope", "run", "-c", "pass"]),
            "vmscope.start()": process([sys.executable, "-c", "import vmscope; vmscope.start()"]),
        },
        2 * rounds,
    )
    base = found.pop("python -c pass")
    for label, series in found.items():
        yield Figure(f"`{label}`, to a bare Python", series, base, 1.5 if label == "vmscope run -c pass" else None)
