"""`vmscope cmd`: has a VM carry out a diagnostic command."""

from __future__ import annotations

from vmscope import terminal
from vmscope.attach.client import SILENCE, connect
from vmscope.errors import CommandLineError

HELP = """\
usage: vmscope cmd [--timeout=SECONDS] PID [COMMAND [ARGUMENT ...]]

Has a VM, Python's or Java's, carry out a diagnostic command, and shows what it answers. Without a command: help,
which lists those that it knows; `help COMMAND` explains one. An argument with blanks is quoted on its way.

  --timeout=60     seconds without a word from the VM after which its answer is given up; 0 waits for ever

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


TALKATIVE = "GC.heap_dump "  # says how far it is, where it is asked to


def main(args: list[str]) -> int:
    """Shows the answer. 0; 1 when the VM cannot be asked or the command failed."""
    silence, words = _timeout(args)
    if not words:
        raise CommandLineError("cmd needs the pid of a VM", hint="vmscope ps lists them")
    pid, command = pid_of("cmd", words[0]), line(words[1:]) or "help"
    told = _tell if command.startswith(TALKATIVE) else None
    with connect(pid, silence=silence) as client, client.execute("jcmd", command, progress=told) as reply:
        if reply.status:
            raise reply.failure()
        said = False
        shown = terminal.Filter()
        for part in reply:
            _put(shown.feed(part))
            said = True
        _put(shown.feed(b"", last=True))
    if not said:
        _put(DONE)
    return 0


def _tell(line: bytes) -> None:
    _put(terminal.printable(line.decode(errors="backslashreplace")) + "\n")


def _put(text: str) -> None:
    terminal.OUT.put(text)
    terminal.OUT.flush()


def pid_of(command: str, word: str) -> int:
    """A pid. Raises CommandLineError for anything else."""
    if not (word.isascii() and word.isdigit() and len(word) < 20):
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
            from vmscope.cli._options import seconds

            silence = seconds("cmd", value)
    return silence, words


def line(words: list[str]) -> str:
    """The command's line. A single word may be a whole line; of several, those with blanks are quoted."""
    if len(words) < 2:
        return "".join(words)
    return " ".join([words[0], *map(_quoted, words[1:])])


def _quoted(word: str) -> str:
    key, equals, value = word.partition("=")
    if not equals or not all(char.isalnum() or char in "-_." for char in key):  # a path with a `=` is no option
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
