"""The attach protocol's operations, and each diagnostic command, as a client is answered. No socket is in between.

What needs processes of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from tests import programs

PROGRAM = programs.source("command_operations/program")


def test_changes_in_a_vm_that_runs(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    command = [sys.executable, "-c", PROGRAM, str(saved)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["InstrumentError", "7", "1"]
    assert saved.read_bytes()[:4] == b"\xca\xfe\xc0\xc0"


def test_counters() -> None:
    """All that there are, a histogram's and a text's too, in jcmd's order and quotes."""
    program = """
        import io, vmscope
        from vmscope import commands
        vmscope.gauge("t.gauge").set(-5)
        vmscope.text("t.text").set('a "b"')
        vmscope.histogram("t.histogram", bounds=[1], units=vmscope.Units.BYTES).observe(3)
        out = io.StringIO()
        commands.execute("PerfCounter.print", out)
        print(out.getvalue(), end="")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == [
        "t.gauge=-5",
        't.histogram.bucket{le="+Inf"}=1',
        't.histogram.bucket{le="1.0"}=0',
        "t.histogram.sum=3",
        't.text="a "b""',
    ]


TRACED = programs.source("command_operations/traced")


def test_tracemalloc() -> None:
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said[0] == "! memory is not traced: Python.tracemalloc start begins it"
    assert said[1].startswith("What is allocated from now on is traced")
    assert said[2] == "It is traced already, with 2 frames each\n"
    assert said[3].splitlines()[2].split()[0] == "3072.1"
    assert "<string>:" in said[3]
    assert said[4] == "This is what the next compare will be compared with\n"
    assert said[5].splitlines()[2].split()[0] == "+5120.1"
    assert said[6:8] == ["It is no longer traced\n", "It is not traced\n"]
    assert [each for each in said[8:11] if not each.startswith("! Python.tracemalloc ")] == []
    assert said[11] == "It is traced already, with 1 frames each, by the program itself\n"
    assert said[12].startswith("! the program traces its memory itself")


def test_tracing_would_end_what_an_agent_is_told() -> None:
    program = programs.source("command_operations/tracemalloc")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    if done.stdout != "not here\n":
        refusal, started = done.stdout.splitlines()
        assert refusal.startswith("an agent receives an event for each new object")
        assert started.startswith("What is allocated from now on is traced")
