"""An agent's report as a diagnostic command: `jcmd PID Locks.print` shows it while the program runs."""

from __future__ import annotations

from vmscope import commands
from vmscope.errors import CommandError
from vmscope.tool.agent import AgentVM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.agents.options import VM


def offer(vm: VM, name: str, description: str, report: Callable[[], str]) -> None:
    """Until the agent is unloaded. Of an agent that is loaded twice the first one answers."""
    if not isinstance(vm, AgentVM):  # nothing would take it away
        return
    try:
        commands.register(commands.Command(name, description, lambda out: out.write(report())), vm)
    except CommandError:
        return
