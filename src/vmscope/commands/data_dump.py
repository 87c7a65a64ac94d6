"""JVMTI.data_dump: asks the agents to dump what they know."""

from __future__ import annotations

import sys

from vmscope.commands.registry import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output


def run(out: Output) -> None:
    host = sys.modules.get("vmscope.tool.host")
    if host is not None and host.exists():  # else no agent can listen
        from vmscope.tool.spec.events import Event

        host.vm().post(Event.DATA_DUMP_REQUEST)


COMMANDS = (
    Command(
        "JVMTI.data_dump",
        "Sends DataDumpRequest to the agents that listen for it.",
        run,
        impact="Unknown: what the agents do then",
    ),
)
