"""help: the commands there are, and what one takes."""

from __future__ import annotations

from vmscope.commands import registry
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output


def run(out: Output, command_name: str | None, all: bool) -> None:
    if all:
        for name in registry.names():
            command = registry.find(name)
            if command is not None:
                out.write(f"{name}\n\t{command.description}\n\n")
    elif command_name is None:
        lines = ["The following commands are available:", *registry.names(), ""]
        out.write("\n".join([*lines, "For more information about a specific command use 'help <command>'.\n"]))
    else:
        command = registry.find(command_name)
        if command is None:
            raise CommandError(f"Help unavailable : '{registry.shortened(command_name)}' : No such command")
        out.write(describe(command))


def describe(command: Command) -> str:
    """What `help COMMAND` shows, in the layout of a JVM's."""
    options = [each for each in command.arguments if each.option]
    arguments = [each for each in command.arguments if not each.option]
    lines = [command.name, command.description, "", f"Impact: {command.impact}", "", syntax(command)]
    if arguments:
        lines += ["", "Arguments:", *map(_line, arguments)]
    if options:
        lines += ["", "Options: (written KEY or KEY=VALUE)", *map(_line, options)]
    return "\n".join([*lines, ""])


def syntax(command: Command) -> str:
    """`Syntax : NAME [options] <argument> [<optional argument>]`."""
    if not command.arguments:
        return f"Syntax: {command.name}"
    words = [f"Syntax : {command.name}", "[options]" if any(each.option for each in command.arguments) else ""]
    for each in command.arguments:
        if not each.option:
            words.append(f"<{each.name}>" if each.mandatory else f"[<{each.name}>]")
    return " ".join(words)


def _line(each: Argument) -> str:
    optional = "" if each.mandatory else "[optional]"
    default = "no default value" if each.default is None else each.default
    return f"\t{each.name} : {optional} {each.description} ({each.type}, {default})"


COMMANDS = (
    Command(
        "help",
        "The commands there are; with the name of one, what it does and takes.",
        run,
        arguments=(
            Argument("command name", "The command to explain."),
            Argument("-all", "All commands, each with what it does.", "BOOLEAN", default="false"),
        ),
    ),
)
