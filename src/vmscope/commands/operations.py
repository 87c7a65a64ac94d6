"""The attach protocol's operations: what the JDK's clients, jattach and ours ask of this VM, as commands.

A reply is a status in decimal, a line feed, and the body. 0 is good; with -1 the body says what is wrong, and the
JDK's clients show it and exit with 1.
"""

from __future__ import annotations

import io
import os

from vmscope import flags
from vmscope.commands import foreign_thread, registry
from vmscope.commands.reply import PROGRESS, Reply
from vmscope.errors import CommandError, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from vmscope.commands.arguments import Value
    from vmscope.commands.reply import Call


def serve(call: Call) -> Generator[None, None, None]:
    """Answers one request, a step at a time. Raises nothing: the client reads what goes wrong, unless it has
    gone."""
    reply = Reply(call)
    try:
        try:
            operation = OPERATIONS.get(call.operation)
            if operation is None:
                raise CommandError(f"Operation {call.operation} not recognized!")
            yield from operation(reply, *call.arguments) or ()
        except (BrokenPipeError, GeneratorExit):
            raise
        except VMScopeError as error:
            reply.fail(registry.client_message(error))
        except BaseException as error:
            registry.report("the operation %s raised", call.operation, error=error)
            reply.fail(f"{call.operation} failed: {type(error).__name__}")
        reply.flush()
    except (BrokenPipeError, MemoryError):
        pass  # the client has gone, or there is no room for an answer


# -- the operations: what a client sends beyond an operation's own arguments is passed over -----------


def get_version(reply: Reply, *_: str) -> None:
    """Which version of the protocol is spoken, with which options: JDK 25 knows others, and passes ours over."""
    reply.write(f"2 {PROGRESS}")


def jcmd(reply: Reply, *words: str) -> Iterator[None]:
    """The JDK sends one line; jattach may have it in pieces."""
    return registry.steps(" ".join(word for word in words if word), reply)


def thread_dump(reply: Reply, letters: str = "", *_: str) -> Iterator[None]:
    """jstack's: `-e -l`, or `-el`."""
    return registry.invoke("Thread.print", reply, l="l" in letters, e="e" in letters)


def inspect_heap(reply: Reply, what: str = "", path: str = "", *_: str) -> Iterator[None]:
    """jmap -histo's: live objects or all; into a file where one is named."""
    everything = _whole_heap("inspectheap", what)
    if not path:
        yield from registry.invoke("GC.class_histogram", reply, all=everything)
        return
    from vmscope.drafts import Draft

    if os.path.lexists(path):
        raise CommandError(f"Unable to create {path}: File exists")
    text = io.StringIO()
    yield from registry.invoke("GC.class_histogram", text, all=everything)
    try:
        draft = Draft(path)
        try:
            with open(draft.fd, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as file:
                file.write(text.getvalue())
            draft.publish()
        finally:
            draft.close()
    except OSError as error:
        raise CommandError(f"Unable to create {path}: {error.strerror}") from error
    reply.write(f"Heap inspection file created: {path}\n")


def dump_heap(reply: Reply, path: str = "", what: str = "", level: str = "", *_: str) -> Iterator[None]:
    """jmap -dump's: `format=b,file=...`, which jmap takes apart, and gz's level."""
    if not path:
        raise CommandError("No dump file specified")
    values: dict[str, Value] = {"filename": path, "all": _whole_heap("dumpheap", what)}
    if level:
        if not (level.isascii() and level.isdigit() and 1 <= int(level[:9]) <= 9):
            raise CommandError(f"Compression level out of range (1-9): {level}")
        values["gz"] = int(level)
    return registry.invoke("GC.heap_dump", reply, **values)


def _whole_heap(operation: str, what: str) -> bool:
    if what not in ("", "-live", "-all"):
        raise CommandError(f"Invalid argument to {operation} operation: {what}")
    return what == "-all"


def print_flag(reply: Reply, name: str = "", *_: str) -> None:
    """jinfo -flag NAME."""
    from vmscope.commands.flags import written

    value = flags.in_force.values().get(name)
    reply.write(f"no such flag '{name}'\n" if value is None else f"{written(name, value)}\n")


def set_flag(reply: Reply, name: str = "", value: str = "", *_: str) -> None:
    """jinfo -flag +NAME, -flag NAME=VALUE."""
    flags.change(name, value)


def load(reply: Reply, name: str = "", absolute: str = "", options: str = "", *_: str) -> None:
    """jattach load, VirtualMachine.loadAgentPath and similar; of a Java agent, which no Python is, they name
    `instrument`. `absolute`: `true` for a path. What the agent returned is the client's to judge."""
    from vmscope.commands import agent_load

    kind = "-agentpath" if absolute == "true" else ""
    with foreign_thread.HiddenThread(ours=True):
        reply.write(f"return code: {agent_load.load(name, options, kind)}\n")


def properties(reply: Reply, *_: str) -> Iterator[None]:
    return registry.invoke("VM.system_properties", reply)


def agent_properties(reply: Reply, *_: str) -> None:
    """What JMX clients look for."""
    from vmscope.commands.command_line import program
    from vmscope.commands.system_properties import stored

    arguments = " ".join(flags.in_force.arguments)
    reply.write(stored({"sun.java.command": program(), "sun.jvm.args": arguments, "sun.jvm.flags": ""}))


def data_dump(reply: Reply, *_: str) -> Iterator[None]:
    return registry.invoke("JVMTI.data_dump", reply)


OPERATIONS: dict[str, Callable[..., Iterator[None] | None]] = {
    "agentProperties": agent_properties,
    "datadump": data_dump,
    "dumpheap": dump_heap,
    "getversion": get_version,
    "inspectheap": inspect_heap,
    "jcmd": jcmd,
    "load": load,
    "printflag": print_flag,
    "properties": properties,
    "setflag": set_flag,
    "threaddump": thread_dump,
}
