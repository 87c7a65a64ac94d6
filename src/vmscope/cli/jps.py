"""`vmscope jps`: the JDK's jps, byte for byte, for scripts that parse it.

What differs on purpose: the explanations in its help are our own, and other hosts are not asked.
"""

from __future__ import annotations

import sys

from vmscope import reader
from vmscope.cli import _java
from vmscope.errors import CommandLineError, NoSuchProcess, VMIdentifierError, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

USAGE = """\
usage: jps [--help]
       jps [-q] [-mlvV] [<hostid>]

Definitions:
    <hostid>:      <hostname>[:<port>]
    -q             only the VM's number
    -m -l -v -V    also: arguments to main; the full main class or file; JVM arguments; JVM flags
"""

HELP = (
    USAGE
    + """
Lists the VMs of this host, Python's and Java's, as the JDK's jps does: the same options, order, text
and exit status. -J options are accepted and ignored.

example:
  $ vmscope jps -lm
  4711 shop.server --port 8000
  4830 org.example.Main serve
"""
)

_UNAVAILABLE = " -- process information unavailable"
_UNKNOWN = "Unknown"


def main(arguments: list[str]) -> int:
    """Lists the VMs. 0, or 1 for arguments that jps does not take."""
    try:
        own, _ = _java.split_options(arguments)
        if own in (["-?"], ["-h"], ["--help"], ["-help"]):
            sys.stderr.write(USAGE)
            return 0
        letters, scheme, host = _parse(own)
    except VMIdentifierError as error:
        return _java.complain(str(error))
    except CommandLineError as error:
        return _java.complain(str(error) if error.hint else f"{error}\n{USAGE}".rstrip("\n"))
    if scheme == "file":
        return 0
    if scheme != "local":
        return _java.complain(f"RMI Registry not available at {host}: vmscope lists this host only")
    _java.write("".join([line(pid, letters) + "\n" for pid in _pids()]))
    return 0


def _parse(arguments: list[str]) -> tuple[frozenset[str], str, str]:
    """The option letters, and the scheme and name of the host to ask."""
    letters: set[str] = set()
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-q":
            letters.add("q")
        elif option.strip("mlvV") != "-" or not option.startswith("-"):
            raise CommandLineError(f"illegal argument: {option}")
        else:
            letters.update(option[1:])
    if len(rest) > 1:
        raise CommandLineError("invalid argument count")
    if not rest:
        return frozenset(letters), "local", "localhost"
    from vmscope.cli.vmid import HostIdentifier

    identifier = HostIdentifier(rest[0])
    return frozenset(letters), identifier.scheme, identifier.host


def line(pid: int, letters: frozenset[str]) -> str:
    """A VM's line."""
    if "q" in letters:
        return str(pid)
    try:
        with reader.vm(pid) as vm:
            return f"{pid} {describe(vm.values(), letters)}"
    except (VMScopeError, ValueError):
        return f"{pid}{_UNAVAILABLE}"


def describe(values: Mapping[str, int | str], letters: frozenset[str]) -> str:
    """What stands after the pid. ValueError where a counter that holds text elsewhere holds a number."""
    command = _text(values, "sun.rt.javaCommand")
    at = command.find(" ")
    main_class, arguments = (command[:at], command[at + 1 :]) if at > 0 else (command, "")
    if command == _UNKNOWN:
        arguments = _UNKNOWN
    parts = [main_class if "l" in letters else short_name(main_class)]
    if "m" in letters and arguments:
        parts.append(arguments)
    if "v" in letters and (vm_arguments := _text(values, "java.rt.vmArgs")):
        parts.append(vm_arguments.replace("\n", "\\n").replace("\r", "\\r"))
    if "V" in letters and (vm_flags := _text(values, "java.rt.vmFlags")):
        parts.append(vm_flags)
    return " ".join(parts)


def short_name(main_class: str) -> str:
    """A class without its package, a file without its directory; of a file's suffixes only .jar stays."""
    at = max(main_class.rfind("/"), main_class.rfind("\\"))
    if at > 0:
        main_class = main_class[at + 1 :]
    at = main_class.rfind(".")
    if at > 0 and main_class[at + 1 :] != "jar":
        return main_class[at + 1 :]
    return main_class


def _text(values: Mapping[str, int | str], name: str) -> str:
    value = values.get(name, _UNKNOWN)
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value
