"""vmscope.log: one printable line for each record, and of repeats a few. What needs processes of its own."""

from __future__ import annotations

import subprocess
import sys


def python(code: str) -> tuple[str, str]:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return run.stdout, run.stderr


def test_nothing_is_printed_where_no_handler_is_configured() -> None:
    say = "from vmscope import log\nlog.say('error', 'no', name=log.TOOL, error=ValueError())\n"
    assert python(f"{say}import sys\nprint('logging' in sys.modules)") == ("False\n", "")
    assert python(f"import logging\n{say}print(log.repeats._kinds)") == ("{}\n", "")
    assert python(f"import logging\nlogging.getLogger().addHandler(logging.NullHandler())\n{say}") == ("", "")


def test_shown_is_shown_unless_logging_is_configured() -> None:
    say = "from vmscope import log\nlog.shown = True\nlog.say('error', 'no %s', 'x', name=log.TOOL)\n"
    say += "log.say('error', 'b')\n"
    assert python(say) == ("", "no x\n")
    assert python(f"import logging, sys\nlogging.basicConfig(stream=sys.stdout, format='%(message)s')\n{say}") == (
        "no x\nb\n",
        "",
    )
