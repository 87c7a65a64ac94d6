"""The registry of diagnostic commands: what each is called and takes, and where it stands.

Those of vmscope are found by `TABLE`, and nothing of one is imported before it is used; agents and programs
add theirs with `register`.
"""

from __future__ import annotations

import sys
from types import GeneratorType

from vmscope import log
from vmscope.commands import foreign_thread
from vmscope.commands.arguments import ILLEGAL, Argument, parse
from vmscope.errors import CommandError, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from vmscope.commands.arguments import Value
    from vmscope.tool.agent import AgentVM

    class Output(Protocol):
        """Where a command writes what its client is shown. BrokenPipeError when the client has gone."""

        def write(self, text: str, /) -> object:
            """Adds a part of the answer."""

        def flush(self) -> object:
            """What was written goes to the client now."""

else:

    class Output:
        """The answer of a command to its client: `write(text)` adds to it, `flush()` sends what there is.

        Both raise BrokenPipeError when the client has gone. Anything with the two methods will do for `execute`.
        """


# Each command, and the module of this room that has it.
TABLE: dict[str, str] = {
    "GC.class_histogram": "class_histogram",
    "GC.finalizer_info": "finalizer_info",
    "GC.heap_dump": "heap_dump",
    "GC.heap_info": "heap_info",
    "GC.run": "gc_run",
    "JFR.check": "jfr_check",
    "JFR.configure": "jfr_configure",
    "JFR.dump": "jfr_dump",
    "JFR.start": "jfr_start",
    "JFR.stop": "jfr_stop",
    "JFR.view": "jfr_view",
    "JVMTI.agent_load": "agent_load",
    "JVMTI.data_dump": "data_dump",
    "PerfCounter.print": "perf_counters",
    "Python.asyncio_tasks": "asyncio_tasks",
    "Python.gc_stats": "gc_stats",
    "Python.modules": "modules",
    "Python.tracemalloc": "tracemalloc",
    "Thread.print": "thread_print",
    "VM.classloader_stats": "classloader_stats",
    "VM.command_line": "command_line",
    "VM.flags": "flags",
    "VM.info": "info",
    "VM.log": "log",
    "VM.set_flag": "flags",
    "VM.system_properties": "system_properties",
    "VM.uptime": "uptime",
    "VM.version": "version",
    "help": "help",
}


# Each of these among a command's arguments asks for its help.
HELP_OPTIONS = frozenset(("-h", "-help", "--help"))
_LONGEST_NAME = 100  # characters of an unknown name that its client is shown


class Command:
    """One command: `run(out, **values)` gets a value for each of `arguments`, by `Argument.keyword`.

    `impact` says what it costs the program. CommandError is how `run` says what went wrong; what else it raises is
    logged, and reported to the client in one line. Where `run` is a generator function, other commands, a fork or the
    end of the process may come between at each `yield`; what follows may run on another thread.

    `raw`: it reads its arguments itself, `run(out, text)`.
    """

    __slots__ = ("arguments", "description", "impact", "name", "raw", "run")

    def __init__(
        self,
        name: str,
        description: str,
        run: Callable[..., object],
        *,
        impact: str = "Low",
        arguments: tuple[Argument, ...] = (),
        raw: bool = False,
    ) -> None:
        if not name or set(name) & set(" =\"'\n"):
            raise ValueError(
                f"{name!r} is not a valid name of a command: blanks, quotes and = have a meaning in jcmd's grammar"
            )
        self.name = name
        self.description = description
        self.impact = impact
        self.arguments = arguments
        self.raw = raw
        self.run = run

    def __repr__(self) -> str:
        return f"<Command {self.name}>"


_added: dict[str, Command] = {}


def register(command: Command, vm: AgentVM | None = None) -> None:
    """Registers a command: `jcmd PID NAME` runs it from now on. CommandError where another has this name.

    An agent gives the `vm` that it was loaded with: then the command goes when the agent is unloaded.
    """
    if _added.setdefault(command.name, command) is not command or command.name in TABLE:
        if _added[command.name] is command:
            del _added[command.name]
        raise CommandError(f"a command is called {command.name} already: give this one another name")
    if vm is not None:
        vm.at_unload(lambda: unregister(command))


def unregister(command: Command) -> None:
    """Takes a command away that `register` added; does nothing where there is none."""
    if _added.get(command.name) is command:
        del _added[command.name]


def names() -> list[str]:
    """The names of all commands, in the order of `help`."""
    return sorted([*TABLE, *_added])


def find(name: str) -> Command | None:
    """The command of this name."""
    if name not in TABLE:
        return _added.get(name)
    try:
        module = __import__(f"vmscope.commands.{TABLE[name]}", fromlist=["COMMANDS"])
    except ModuleNotFoundError as error:  # in a bundle that has been made of a part of vmscope
        raise CommandError(f"{name} is not there: the program was bundled without {error.name}") from error
    command: Command = next(each for each in module.COMMANDS if each.name == name)
    return command


def execute(text: str, out: Output) -> None:
    """Runs each line of `text` up to one that says `stop`; blank lines and those with `#` in front are skipped.

    CommandError, with the message for the client, for a line that is not valid or fails; the lines behind it are not
    run. BrokenPipeError when the client has gone.
    """
    for _ in steps(text, out):
        pass


def steps(text: str, out: Output) -> Iterator[None]:
    """The same, step by step."""
    for line in text.split("\n"):
        line = line.strip(" ")
        if line == "stop":
            return
        if line and not line.startswith("#"):
            name, _, arguments = line.partition(" ")
            if not HELP_OPTIONS.isdisjoint(arguments.split(" ")):
                name, arguments = "help", name
            command = _known(name)
            yield from _run(command, _values(command, arguments), out)


def _values(command: Command, arguments: str) -> dict[str, Value]:
    if command.raw:
        return {"text": arguments}
    return parse(arguments, command.arguments)


def invoke(name: str, out: Output, **values: Value) -> Iterator[None]:
    """A command with these values by keyword, else their defaults, step by step. Raises as `execute` does."""
    command = _known(name)
    defaults = {each.keyword: each.default_value() for each in command.arguments}
    yield from _run(command, {**defaults, **values}, out)


def _known(name: str) -> Command:
    command = find(name)
    if command is None:
        raise CommandError(f"{ILLEGAL}Unknown diagnostic command {shortened(name)!r}; help lists the commands")
    return command


def shortened(name: str) -> str:
    """A name of a client's, as far as a line of text has room for it."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."


def _run(command: Command, values: dict[str, Value], out: Output) -> Iterator[None]:
    try:
        ours = command.name in TABLE
        with foreign_thread.HiddenThread(ours):
            rest = command.run(out, **values)
        if isinstance(rest, GeneratorType):
            yield from _visits(rest, ours)
    except (CommandError, BrokenPipeError, GeneratorExit):
        raise
    except VMScopeError as error:
        raise CommandError(client_message(error)) from error
    except BaseException as error:
        report("the command %s raised", command.name, error=error)
        text = " ".join(str(error).split())
        raise CommandError(f"{command.name} failed: {type(error).__name__}{': ' if text else ''}{text}") from error


def _visits(rest: GeneratorType[object, None, object], ours: bool) -> Iterator[None]:
    """The steps of a command that has some, each of which may come on another thread."""
    try:
        while True:
            with foreign_thread.HiddenThread(ours):
                if next(rest, rest) is rest:
                    return
            yield
    finally:
        with foreign_thread.HiddenThread(ours):
            rest.close()


def client_message(error: VMScopeError) -> str:
    """The line that a client gets for it."""
    return f"{error}: {error.hint}" if error.hint else str(error)


def report(message: str, *arguments: object, error: BaseException) -> None:
    """Logs what a command raised."""
    if "logging" in sys.modules:
        with foreign_thread.HiddenThread():
            try:
                log.say("error", message, *arguments, error=error, name=log.COMMANDS, depth=2)
            except BaseException:  # a handler of the program's, which reports its errors itself
                pass
