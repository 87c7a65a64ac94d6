"""JVMTI.agent_load: loads an agent into the program while it runs."""

from __future__ import annotations

from vmscope import flags, log, terminal
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import AgentError, CommandError, LibraryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output

_FLAG = "EnableDynamicAgentLoading"
_LONGEST = 1000  # characters of a name
_MOST = 64  # agents that are remembered as warned of

_warned: set[str] = set()
_repeats = log.Repeats()


def run(out: Output, library_path: str, agent_option: str | None) -> None:
    try:
        out.write(f"return code: {load(library_path, agent_option)}\n")
    except NotLoaded as error:
        out.write(f"{error}\n")  # for this command, as a JVM has it, no failure


class NotLoaded(CommandError):
    """What a JVM says where there is no such library, or it has no Agent_OnAttach."""


def load(name: str, options: str | None, kind: str = "") -> int:
    """What the agent returned; 0 is good. CommandError where there was nothing to call, or it raised; NotLoaded for a
    library. `kind` as `attach_one` has it.

    With -XX:-EnableDynamicAgentLoading nothing is loaded; where the flag was not given, the program's standard error
    has a warning, as a JVM's has: another process has changed what this program does.
    """
    if not flags.in_force.on(_FLAG):
        raise CommandError(f"{name} was not loaded: this program was started with -XX:-{_FLAG}")
    from vmscope import tool
    from vmscope.tool import agents

    def found() -> None:
        if _FLAG not in flags.in_force.origins:
            _warn(name)

    try:
        agents.keep_latest(agents.attach_one(name, options, found, kind))
    except AgentError as error:
        if isinstance(error.status, int):
            return int(error.status)
        if isinstance(error, LibraryError):
            raise NotLoaded(f"{name} was not loaded.\n{error.loader}" if error.loader else str(error)) from error
        raise CommandError(f"{name} was not loaded: {error.reason}") from error
    except tool.ToolError as error:
        raise CommandError(f"{name} was not loaded: {error}") from error
    return 0


def _warn(name: str) -> None:
    """Once of each agent, whether it can be loaded or not; of many as the log has what is repeated."""
    name = terminal.printable(name[:_LONGEST])
    if name in _warned:
        return
    if len(_warned) < _MOST:
        _warned.add(name)
    suppressed = _repeats.admit()
    if suppressed is not None:
        others = f" ({suppressed} others were not warned of)" if suppressed else ""
        terminal.warn(
            f"WARNING: vmscope: a client loads the agent {name}{others} into this program while it runs; "
            f"start it with -XX:+{_FLAG} to hide this warning, with -XX:-{_FLAG} to forbid it\n"
        )


COMMANDS = (
    Command(
        "JVMTI.agent_load",
        "Loads an agent: calls its agent_on_attach, or Agent_OnAttach.",
        run,
        arguments=(
            Argument(
                "library path",
                "A module in Python, a library's path, or what is linked into the program.",
                mandatory=True,
            ),
            Argument("agent option", "Options for the agent."),
        ),
    ),
)
