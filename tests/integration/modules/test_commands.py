"""The registry of diagnostic commands: grammar, help, what agents add, what a command must not leave behind.

What needs processes of its own.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import programs


@pytest.mark.parametrize("first", ["", "import logging", "import logging; logging.getLogger('vmscope.commands')"])
def test_what_a_command_raises_is_never_printed(first: str) -> None:
    code = (
        f"{first}\nimport io\nfrom vmscope import VMScopeError, commands\n"
        "commands.register(commands.Command('T.fail', '', lambda out: 1 / 0))\n"
        "try: commands.execute('T.fail', io.StringIO())\n"
        "except VMScopeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("T.fail failed: ZeroDivisionError: division by zero\n", "")


MAIN = programs.source("commands/main")


def test_threading_imported_by_a_command() -> None:
    """It takes the thread that imports it for the main one, before 3.13: put right, and the process ends."""
    done = subprocess.run([sys.executable, "-c", MAIN], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("True True True True True\njoined\n", "", 0)
