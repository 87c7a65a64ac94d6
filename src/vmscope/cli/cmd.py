"""`vmscope cmd`: has a VM carry out a diagnostic command."""

from __future__ import annotations

from vmscope import terminal
from vmscope.attach.client import SILENCE, connect
from vmscope.cli._options import is_pid, seconds
from vmscope.errors import CommandLineError, OperationFailed, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.attach.client import Reply

HELP = """\
usage: vmscope cmd [--timeout=SECONDS] PID|NAME [COMMAND [ARGUMENT ...]]

Has a Python or Java VM execute a diagnostic command, and shows its output.
Without a command: help, which lists the VM's commands; `help COMMAND` and
`COMMAND --help` explain one. Arguments with blanks are quoted for the VM.

NAME stands for each VM whose program has it in its name, 0 for all VMs; where
they are several, each answer has its pid above it.

  --timeout=60     give up after 60 seconds, or that many, without output;
                   0 waits for ever

example:
$ vmscope cmd 4711 VM.version
CPython version 3.13.0 (main, May 9 2026, 07:36:57) [GCC 12.2.0]
Python 3.13.0
vmscope 0.1.0 (c)
$ vmscope cmd 4830 VM.version
OpenJDK 64-Bit Server VM version 17.0.15+6-Debian-1deb12u1
JDK 17.0.15
"""

DONE = "Command executed successfully\n"  # what a command that said nothing shows


HEAP_DUMP = "GC.heap_dump"  # says how far it is, where it is asked to, and makes a file
HELP_OPTIONS = ("-h", "-help", "--help")
UNKNOWN = "Unknown diagnostic command"  # all that a JVM says of one


def main(args: list[str]) -> int:
    """Shows the answers. 0; 1 when a VM cannot be asked or the command failed."""
    silence, words = _timeout(args)
    if not words:
        raise CommandLineError("cmd needs the pid of a VM, or its program's name", hint="vmscope ps lists the VMs")
    pids, command, made = _pids(words[0]), _command(words[1:]), _made(words[1:])
    if len(pids) == 1:
        _ask(pids[0], command, silence, made)
        return 0
    status = 0
    for pid in pids:
        _put(f"{pid}:\n")
        try:
            _ask(pid, command, silence, made)
        except VMScopeError as error:
            terminal.complain(error)
            status = 1
    return status


def _pids(word: str) -> list[int]:
    """Those that are meant: who gives a pid does not wait for what finds names."""
    if is_pid(word) and int(word):
        return [int(word)]
    from vmscope.cli import _targets

    return _targets.attachable("cmd", word)


def _command(words: list[str]) -> str:
    """The command's line; for one that asks for a command's help that, which each VM has."""
    command = line(words)
    name, *arguments = command.split() or ["help"]
    if name in HELP_OPTIONS:
        return "help"
    return f"help {name}" if any(each in HELP_OPTIONS for each in arguments) else command or name


def _made(words: list[str]) -> str:
    """The file that a heap dump asks for; "" for another command."""
    name, *arguments = words if len(words) > 1 else " ".join(words).split() or [""]
    if name != HEAP_DUMP:
        return ""
    return next((word for word in arguments if not word.startswith("-") and "%" not in word), "")


def _ask(pid: int, command: str, silence: float | None, made: str) -> None:
    name = command.partition(" ")[0]
    progress = _tell if name == HEAP_DUMP else None
    with connect(pid, silence=silence) as client, client.execute("jcmd", command, progress=progress) as reply:
        if reply.status:
            raise _failure(reply, pid, name)
        said = False
        shown = terminal.Filter()
        for part in reply:
            _put(shown.feed(part))
            said = True
        _put(shown.feed(b"", last=True))
    if not said:
        _put(DONE)
    place = outside(pid, made) if made else ""
    if place:
        _put(terminal.printable(f"In the file system of process {pid}; here it is {place}") + "\n")


def _failure(reply: Reply, pid: int, name: str) -> OperationFailed:
    error = reply.failure()
    if str(error).endswith(UNKNOWN):
        error.message += f" {name!r}"
        error.hint = f"vmscope cmd {pid} help lists the commands"
    return error


def outside(pid: int, path: str) -> str:
    """Where a file of a process in a container is for us; "" for a process that sees the files that we see."""
    from vmscope.mounts import root_of

    theirs = root_of(pid)
    if theirs is None or theirs == root_of("self"):
        return ""
    return f"/proc/{pid}/{'root' if path.startswith('/') else 'cwd/'}{path}"


def _tell(line: bytes) -> None:
    _put(terminal.printable(line.decode(errors="backslashreplace")) + "\n")


def _put(text: str) -> None:
    terminal.OUT.put(text)
    terminal.OUT.flush()


def pid_of(command: str, word: str) -> int:
    """A pid. Raises CommandLineError for anything else."""
    if not is_pid(word):
        raise CommandLineError(f"{command} takes a pid, not {word!r}", hint="vmscope ps lists the VMs")
    return int(word)


def _timeout(args: list[str]) -> tuple[float | None, list[str]]:
    """The time limit, and what is left: options stand before the pid, what follows it is the command's own."""
    silence: float | None = SILENCE
    words = list(args)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        name, _, value = option.partition("=")
        if name != "--timeout":
            raise CommandLineError(f"cmd does not take {option}", hint="vmscope cmd --help shows what it takes")
        if value in ("0", "0s"):
            silence = None
        else:
            silence = seconds("cmd", value)
    return silence, words


def line(words: list[str]) -> str:
    """The command's line. A single word may be a whole line; of several, those with blanks are quoted."""
    if len(words) < 2:
        return "".join(words)
    return " ".join([words[0], *map(_quoted, words[1:])])


def _quoted(word: str) -> str:
    key, equals, value = word.partition("=")
    if not equals or not all(char.isalnum() or char in "-_." for char in key):  # a path with a `=` is not an option
        key, equals, value = "", "", word
    plain = value if not key else ""
    if word and "=" not in plain and not any(char.isspace() for char in word):
        return word
    if len(value) > 1 and value[0] == value[-1] in "\"'" and value[0] not in value[1:-1]:
        return word  # as it has to be quoted for jcmd
    for quote in "\"'":
        if quote not in value:
            return f"{key}{equals}{quote}{value}{quote}"
    raise CommandLineError(f"{word!r} cannot be quoted for a VM: it has blanks and both kinds of quotes")
