"""`vmscope jcmd`: the JDK's jcmd, byte for byte, for scripts that parse it.

What differs on purpose: the explanations in its help are our own, there are not stack traces, and a process that
would end by SIGQUIT does not get one.
"""

from __future__ import annotations

import codecs
import os

from vmscope import terminal
from vmscope.attach.client import BAD_VERSION, HANDSHAKE, connect
from vmscope.cli import _java, _jvmstat
from vmscope.cli.jps import listed
from vmscope.errors import CommandLineError, NoSuchProcess, OperationFailed, VMScopeError
from vmscope.reader.attachment import attach, open_candidate
from vmscope.reader.machine import VM
from vmscope.reader.process import PID_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from vmscope.attach.client import Reply

HELP_OPTIONS = ("-?", "-h", "--help", "-help")
COUNTERS = "PerfCounter.print"

USAGE = """\
Usage: jcmd <pid | main class> <command ...|PerfCounter.print|-f file>
   or: jcmd -l
   or: jcmd -h

  <pid>              a VM's; 0: all of them, one after the other
  <main class>       those whose main class, or program, has this in its name
  <command ...>      what the VM is to do; `help` lists what it knows
  PerfCounter.print  its counters, read from outside
  -f <file>          the commands in a file, a line each, up to a line `stop`
  -l                 the VMs that can be asked; so does no argument at all
  -? -h --help       this help
"""

HELP = (
    USAGE
    + """
Has VMs of this host, Python's and Java's, carry out diagnostic commands, as the
JDK's jcmd does: the same arguments, output and exit status. -J options are
accepted and ignored.

example:
  $ vmscope jcmd 4711 VM.version
  4711:
  OpenJDK 64-Bit Server VM version 17.0.15+6-Debian-1deb12u1
  JDK 17.0.15
"""
)

_LONG = 1 << 63


class JcmdRequest:
    """What the arguments ask for: of which VMs (`process`), the `command`, or their `counters`."""

    __slots__ = ("command", "counters", "process")

    def __init__(self, arguments: list[str]) -> None:
        """Raises CommandLineError with jcmd's own messages."""
        self.process = arguments[0]
        self.counters = False
        words = []
        for index, word in enumerate(arguments[1:], 2):
            if word == COUNTERS:
                self.counters = True
            elif word != "-f":
                words.append(word + " ")
            elif len(arguments) == index:
                raise CommandLineError("No file specified for parameter -f")
            elif len(arguments) > index + 1:
                raise CommandLineError("Options after -f are not allowed")
            else:
                self.command = _read(arguments[index])
                return
        self.command = _trim("".join(words)) if words else "help"

    def lines(self) -> Iterator[str]:
        """The commands, one after the other."""
        lines = self.command.split("\n")
        while self.command and lines and not lines[-1]:
            lines.pop()
        for line in lines:
            if _trim(line) == "stop":
                return
            yield line


def main(arguments: list[str]) -> int:
    """Has the VMs do it. 0, or 1 for bad arguments, for no such VM, and when one of them failed."""
    try:
        own, properties = _java.split_options(arguments)
    except CommandLineError as error:
        return _java.complain(str(error))
    if not own or own[0] == "-l":
        _java.write("".join([f"{pid} {name}\n" for pid, name in attachable()]))
        return 0
    if own[0] in HELP_OPTIONS:
        _java.write(USAGE)
        return 0
    try:
        request = JcmdRequest(own)
    except CommandLineError as error:
        _java.complain(f"Error parsing arguments: {error}\n")
        _java.write(USAGE)
        return 1
    if not request.process or request.process.startswith("-"):
        return _java.complain(f"Invalid pid '{request.process}' specified")
    pids = _pids(request.process)
    if not pids:
        return _java.complain(f"Could not find any processes matching : '{request.process}'")
    patience = _patience(properties.get("sun.tools.attach.attachTimeout", ""))
    status = 0
    for pid in pids:
        _java.write(f"{pid}:\n")
        try:
            if request.counters:
                _java.write(_counters(pid))
            else:
                _execute(pid, request, patience)
        except OperationFailed as error:
            status = _java.complain(str(error))
        except VMScopeError as error:
            hint = f" ({error.hint})" if error.hint else ""
            _java.complain(f"{error}{hint}")
            status = status if request.counters else 1
    return status


def attachable() -> list[tuple[int, str]]:
    """Pid and command line of each VM that says it can be asked, in jcmd's order."""
    found = []
    until = _jvmstat.patience()
    for candidate in listed():
        if candidate.pid == os.getpid():
            continue
        try:
            with VM(open_candidate(candidate)) as vm:
                _jvmstat.wait(vm, until)
                values = _jvmstat.identity(vm)
        except VMScopeError:
            continue
        if str(values.get("sun.rt.jvmCapabilities", "")).startswith("1"):
            found.append((candidate.pid, _command_line(values)))
    return found


def _command_line(values: Mapping[str, int | str]) -> str:
    return str(values.get("sun.rt.javaCommand", "Unknown"))


def _pids(process: str) -> list[int]:
    """The VMs that are meant: the one of that pid, all for 0, those whose main class has that in its name."""
    try:
        number = int(process) if process.removeprefix("+").isdecimal() else None
    except ValueError:
        number = None  # more digits than Python reads
    if number is not None and number < _LONG:
        return [number] if number else [pid for pid, _ in attachable()]
    return [pid for pid, name in attachable() if process in name.partition(" ")[0]]


def _execute(pid: int, request: JcmdRequest, patience: float) -> None:
    if pid > PID_MAX:
        raise NoSuchProcess("Invalid process identifier", pid=pid)
    put = terminal.OUT.pass_on
    with connect(pid, timeout=patience, silence=None) as client:
        for line in request.lines():
            with client.execute("jcmd", line) as reply:
                if reply.status:
                    raise _failure(reply)
                text = _shown()
                said = False
                for part in reply:
                    put(_java.encode_text(text(part, False)))
                    said = True
                put(_java.encode_text(text(b"", True)))
            if not said:
                put(b"Command executed successfully\n")


def _shown() -> Callable[[bytes, bool], str]:
    """Decodes an answer that comes in pieces, by the rule for terminals where it goes to one."""
    if terminal.OUT.isatty():
        return terminal.Filter().feed
    return codecs.getincrementaldecoder("utf-8")("replace").decode


def _failure(reply: Reply) -> OperationFailed:
    """As jcmd says it: the lines of the message run together."""
    if reply.status == BAD_VERSION:
        return reply.failure()
    message = reply.read().decode("utf-8", "replace").replace("\r", "").replace("\n", "")
    return OperationFailed(message or "Command failed in target VM", status=reply.status)


def _counters(pid: int) -> str:
    from vmscope.cli._counter_lists import all_values

    with VM(attach(pid)) as vm:
        _jvmstat.wait(vm)
        return all_values(vm)


def _read(path: str) -> str:
    """The lines of a file of commands, whatever ends them."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError:
        raise CommandLineError(f"Could not read from file specified with -f option: {path}") from None
    return text if not text or text.endswith("\n") else text + "\n"


def _trim(text: str) -> str:
    """Without what Java takes for blanks: everything up to the space."""
    return text.strip("".join(map(chr, range(33))))


def _patience(text: str) -> float:
    """Seconds for the handshake; the JDK's property has milliseconds, 0 for its default."""
    try:
        milliseconds = _java.parse_int(text)
    except ValueError:
        milliseconds = 0
    return milliseconds / 1000 if milliseconds > 0 else HANDSHAKE
