"""`vmscope attach`: prepares a live process for commands, and loads agents into it."""

from __future__ import annotations

import os

from vmscope import terminal
from vmscope.attach.client import connect
from vmscope.attach.target import Target
from vmscope.cli import _options
from vmscope.cli.cmd import outside, pid_of
from vmscope.errors import AgentError, CommandLineError, NotAttachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.attach.client import Client

HELP = """\
usage: vmscope attach [--timeout=SECONDS] PID [AGENT[=OPTIONS]]

Prepares a live process for commands and agents, and says what it is. A JVM and
a Python in which vmscope is started are ready. In CPython 3.14 or later vmscope
is started from outside, without a restart. For an older one, which does not
allow that, the error says what to do.

AGENT is loaded into it: the path of a native library (.so), or its name; in
Python a module too, in Java the path of an agent .jar too. A path begins in the
folder where this command runs, and ends before the first `=`.

  --timeout=10     seconds for a process to become ready

example:
$ vmscope attach 4711
4711 is ready: CPython version 3.14.10 (main, Oct 26 2026, 15:12:11) [GCC 13.2]
$ vmscope attach 4711 vmscope.agents.trace=match=shop.*
4711 has loaded vmscope.agents.trace
$ vmscope attach 4830 /opt/profiler/lib/libprofiler.so=start
4830 has loaded /opt/profiler/lib/libprofiler.so
"""

_GOOD = "return code: 0"


def main(args: list[str]) -> int:
    """Prepares the process, and loads the agent. 0, or 1 when that cannot be done."""
    options, words = _options.parse("attach", args, {"--timeout": ""})
    timeout = _options.seconds("attach", options.get("--timeout", "10"))
    if not 1 <= len(words) <= 2:
        raise CommandLineError("attach needs a pid, and takes one agent", hint="vmscope attach --help shows how")
    pid = pid_of("attach", words[0])
    if words[1:] and words[1][:1] in ("", "="):
        raise CommandLineError(f"attach takes an agent, not {words[1]!r}", hint="vmscope attach --help shows how")
    with ready(pid, timeout) as client:
        if len(words) == 1:
            terminal.OUT.show(f"{pid} is ready: {version(client)}\n")
        else:
            agent, _, text = words[1].partition("=")
            load(client, agent, text)
            terminal.OUT.show(f"{pid} has loaded {terminal.printable(agent)}\n")
    return 0


def ready(pid: int, timeout: float) -> Client:
    """A process that answers; vmscope is started in it where that is what it lacks. Raises as `connect` does."""
    try:
        return connect(pid, timeout=timeout)
    except NotAttachable:
        target = Target(pid)  # raises on Windows, where the module below cannot be imported
        from vmscope.attach.remote import python_version, start_vmscope

        if python_version(pid) is None or not target.unprepared:
            raise
        start_vmscope(target, timeout)
    return connect(pid, timeout=timeout)


def version(client: Client) -> str:
    """What the process says of itself, on one line."""
    with client.execute("jcmd", "VM.version") as reply:
        if reply.status:
            raise reply.failure()
        return reply.read(4096).decode("utf-8", "replace").partition("\n")[0]


def load(client: Client, agent: str, options: str) -> None:
    """Loads an agent. Raises AgentError with what the process says."""
    library, absolute = agent, "false"
    if agent.endswith(".jar"):
        library = "instrument"
        options = os.path.abspath(agent) + (f"={options}" if options else "")
    elif "/" in agent or agent.endswith(".so"):
        library, absolute = os.path.abspath(agent), "true"
    with client.execute("load", library, absolute, options) as reply:
        text = reply.read(4096).decode("utf-8", "replace").strip()
        if reply.status or _GOOD not in text.splitlines():
            said = " ".join(text.split()) or "it was not loaded"
            error = AgentError(agent, f"process {client.pid} says: {said}")
            place = outside(client.pid, library) if absolute == "true" else ""
            if place:
                error.hint = f"it looks for the file in its own file system, as {place} here"
            raise error
