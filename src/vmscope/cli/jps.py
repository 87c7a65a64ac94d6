"""`vmscope jps`: the JDK's jps, byte for byte, for scripts that parse it.

What differs on purpose: the explanations in its help are our own, and other hosts are not asked.
"""

from __future__ import annotations

import os
import sys

from vmscope import terminal
from vmscope.cli import _java, _jvmstat
from vmscope.errors import AccessDenied, CommandLineError, VMIdentifierError, VMScopeError
from vmscope.reader.attachment import open_candidate
from vmscope.reader.discovery import TMP, by_pid, identity, java_order
from vmscope.reader.machine import VM
from vmscope.reader.ownership import FileLocks
from vmscope.reader.process import exists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from vmscope.reader.discovery import Candidate

HELP_OPTIONS = ("-?", "-h", "--help", "-help")

USAGE = """\
usage: jps [--help]
       jps [-q] [-mlvV] [<hostid>]

Definitions:
    <hostid>:      <hostname>[:<port>]
    -q             only the VM's number
    -m -l -v -V    also: arguments to main; the full main class or file; JVM
                   arguments; JVM flags
"""

HELP = (
    USAGE
    + """
Lists the VMs of this host, Python's and Java's, as the JDK's jps does: the same
options, order, text and exit status. -J options are accepted and ignored.

example:
  $ vmscope jps -lm
  4711 shop.server --port 8000
  4830 org.example.Main serve
"""
)

_UNKNOWN = "Unknown"


def main(arguments: list[str]) -> int:
    """Lists the VMs. 0, or 1 for arguments that jps does not take."""
    try:
        own, _ = _java.split_options(arguments)
        if len(own) == 1 and own[0] in HELP_OPTIONS:
            terminal.ERR.show(USAGE)
            return 0
    except CommandLineError as error:
        return _java.complain(str(error))
    try:
        letters, host = parse(own)
        scheme = _scheme(host)
    except VMIdentifierError:
        return _java.complain(f"Malformed Host Identifier: {own[-1]}\n{USAGE}")
    except CommandLineError as error:
        return _java.complain(f"{error}\n{USAGE}")
    if scheme == "file":
        return 0
    if scheme == "rmi":
        return _java.complain(f"RMI Registry not available at {host}: vmscope lists this host's VMs only")
    if scheme != "local":
        return _java.complain(f"Could not find MonitoredHost for scheme: {scheme}")
    until = _jvmstat.patience()
    _java.write("".join([line(candidate, letters, until) + "\n" for candidate in listed()]))
    return 0


def parse(arguments: list[str]) -> tuple[frozenset[str], str | None]:
    """The option letters, and the host to ask. Raises CommandLineError with jps' own messages."""
    letters: set[str] = set()
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-q":
            letters.add("q")
        elif option.strip("mlvV") != "-":
            raise CommandLineError(f"illegal argument: {option}")
        else:
            letters.update(option[1:])
    if len(rest) > 1:
        raise CommandLineError("invalid argument count")
    return frozenset(letters), rest[0] if rest else None


def _scheme(host: str | None) -> str:
    """How the VMs of a host are reached: local, file, rmi or unknown. Raises VMIdentifierError."""
    if host is None:
        return "local"
    from vmscope.cli.vmid import HostIdentifier

    return HostIdentifier(host).scheme


def listed(tmp: str = TMP) -> list[Candidate]:
    """The VMs in jps' order. jps is a VM too, and so counts itself."""
    locks = FileLocks()
    found = by_pid(tmp).items()
    return java_order({pid: candidate for pid, candidate in found if not _is_stale(candidate, locks)}, more=1)


def _is_stale(candidate: Candidate, locks: FileLocks) -> bool:
    """Whether a JVM removes this file when it starts, so that jps never sees it.

    So it is with files in this user's own directory whose process has ended and that no process has locked.
    """
    if candidate.container or _runs(candidate.pid) or candidate.user != _user():
        return False
    file = identity(candidate)
    return file is None or not locks.holders(*file)


def _runs(pid: int) -> bool:
    try:
        return exists(pid)
    except AccessDenied:  # another user's by now: to a JVM as good as gone
        return False


def _user() -> str:
    if sys.platform == "win32":
        from vmscope import win32

        return win32.user_name()
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def line(candidate: Candidate, letters: frozenset[str], until: float) -> str:
    """A VM's line. Of one that cannot be read it says what could not be found out first.

    `until` one that is still starting is waited for: together they hold a list up no longer than one may.
    """
    pid = candidate.pid
    if "q" in letters:
        return str(pid)
    try:
        if not exists(pid):
            return f"{pid}{_unavailable('process')}"
        vm = VM(open_candidate(candidate))
    except VMScopeError:
        return f"{pid}{_unavailable('process')}"
    with vm:
        try:
            vm.reader.prologue()
        except VMScopeError:
            return f"{pid}{_unavailable('process')}"
        try:
            _jvmstat.wait(vm, until)
            return f"{pid} {describe(_jvmstat.identity(vm), letters)}"
        except VMScopeError:
            return f"{pid} {_unavailable('main class')}"


def describe(values: Mapping[str, int | str], letters: frozenset[str]) -> str:
    """What stands after the pid; it ends where a counter that should hold text holds a number."""
    command = values.get("sun.rt.javaCommand", _UNKNOWN)
    if not isinstance(command, str):
        return _unavailable("main class")
    at = command.find(" ")
    main_class, arguments = (command[:at], command[at + 1 :]) if at > 0 else (command, "")
    if command == _UNKNOWN:
        arguments = _UNKNOWN
    text = main_class if "l" in letters else short_name(main_class)
    if "m" in letters and arguments:
        text += " " + arguments
    for letter, name, what in (("v", "java.rt.vmArgs", "jvm args"), ("V", "java.rt.vmFlags", "jvm flags")):
        if letter not in letters:
            continue
        value = values.get(name, _UNKNOWN)
        if not isinstance(value, str):
            return text + _unavailable(what)
        if letter == "v":
            value = value.replace("\n", "\\n").replace("\r", "\\r")
        if value:
            text += " " + value
    return text


def _unavailable(what: str) -> str:
    return f" -- {what} information unavailable"


def short_name(main_class: str) -> str:
    """A class without its package, a file without its directory; of a file's suffixes only .jar stays."""
    at = max(main_class.rfind("/"), main_class.rfind("\\"))
    if at > 0:
        main_class = main_class[at + 1 :]
    at = main_class.rfind(".")
    if at > 0 and main_class[at + 1 :] != "jar":
        return main_class[at + 1 :]
    return main_class
