"""VM.version: which Python this is, and which vmscope."""

from __future__ import annotations

import sys

from vmscope import __version__, native
from vmscope.commands.registry import Command
from vmscope.tool import properties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output


def run(out: Output) -> None:
    fixed = properties.fixed()
    out.write(f"{fixed['java.vm.name']} version {' '.join(sys.version.split())}\n")
    implementation = f"{native.IMPLEMENTATION}: {native.TWIN_REASON}" if native.TWIN_REASON else native.IMPLEMENTATION
    out.write(f"Python {fixed['java.version']}\nvmscope {__version__} ({implementation})\n")


COMMANDS = (Command("VM.version", "The version of this Python and of vmscope.", run),)
