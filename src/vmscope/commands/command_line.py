"""VM.command_line: how this process was started."""

from __future__ import annotations

import os
import sys

from vmscope import flags
from vmscope.commands.registry import Command
from vmscope.counters import identity
from vmscope.counters.registry import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output


def run(out: Output) -> None:
    out.write(
        "VM Arguments:\n"
        f"jvm_args: {' '.join(flags.in_force.arguments)}\n"
        f"java_command: {program()}\n"
        f"java_class_path (initial): {os.pathsep.join(map(str, sys.path))}\n"
        f"python_executable: {sys.executable}\n"
        f"python_command: {' '.join(sys.orig_argv)}\n"
        f"Launcher Type: {'VMSCOPE_RUN' if 'vmscope.cli.run' in sys.modules else 'PYTHON'}\n"
    )


def program() -> str:
    """As jps shows it: what was published when the VM started, or would be now."""
    counter = REGISTRY.get("sun.rt.javaCommand")
    value = getattr(counter, "value", "")
    return value or identity.command_line()


COMMANDS = (Command("VM.command_line", "The command line that started this process.", run),)
