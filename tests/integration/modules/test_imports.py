"""The house rules of docs/architecture.md: imports go one way, functions stay short, fast paths stay light.

What needs processes of its own.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.unit.test_architecture import PACKAGE
from vmscope import native

# What a process that is only looked at, or only looks, must not pay for.
HEAVY = frozenset(
    "argparse collections contextlib dataclasses enum functools importlib.metadata json logging pathlib re signal "
    "socket subprocess tempfile threading typing".split()
)


FAST = [
    ["--version"],
    ["help"],
    ["ps"],
    ["jps"],
    ["jps", "-lv"],
    ["jstat", "-options"],
    ["jcmd", "-l"],
    ["cmd", "--help"],
    ["attach", "--help"],
    ["run", "-c", "pass"],
    ["run", "-XX:-UsePerfData", "-c", "pass"],
]


def modules_loaded(code: str) -> set[str]:
    """What is in sys.modules when a fresh interpreter that ran `code` ends, over what it starts with."""
    script = f"""
import sys
base = set(sys.modules)
import atexit
def report(write=sys.__stderr__.write):
    write("\\n@@" + " ".join(set(sys.modules) - base) + "\\n")
atexit.register(report)
{code}
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return set(run.stderr.rpartition("\n@@")[2].split())


def test_importing_the_package_is_light() -> None:
    assert modules_loaded("import vmscope") & HEAVY == set()


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twins import what they need")
@pytest.mark.parametrize("arguments", FAST, ids=" ".join)
def test_fast_paths_import_nothing_heavy(arguments: list[str]) -> None:
    if arguments[0] not in ("--version", "help") and not (PACKAGE / "cli" / f"{arguments[0]}.py").exists():
        pytest.skip(f"no sub-command {arguments[0]} yet")
    loaded = modules_loaded(f"sys.argv[1:] = {arguments!r}\nfrom vmscope.cli import main\nsys.exit(main())")
    assert "vmscope.cli" in loaded
    assert loaded & HEAVY == set()


def test_a_program_does_not_pay_for_what_it_does_not_show() -> None:
    code = "sys.argv[1:] = ['run', '-c', 'pass']\nfrom vmscope.cli import main\nsys.exit(main())"
    assert modules_loaded(code) & {"vmscope.terminal", "vmscope.log", "unicodedata"} == set()
