"""PerfCounter.print: every counter with its value, as jcmd shows them, for those who do not read the region."""

from __future__ import annotations

from vmscope.commands.registry import Command
from vmscope.counters.registry import REGISTRY
from vmscope.wire import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output


def run(out: Output) -> None:
    values = {entry[0]: entry[1] for counter in REGISTRY for entry in counter.entries()}
    for name in sorted(values, key=text.order):
        value = values[name]
        out.write(text.line(name, value.decode(errors="replace") if isinstance(value, bytes) else value) + "\n")


COMMANDS = (Command("PerfCounter.print", "All counters and their values.", run),)
