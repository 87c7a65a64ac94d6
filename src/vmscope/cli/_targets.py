"""Which VMs a word of the command line means: a pid, a saved region, or all whose program has it in its name."""

from __future__ import annotations

import os

from vmscope import reader
from vmscope.errors import CommandLineError, NoSuchProcess, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LISTED = "vmscope ps lists the VMs"
_LONGEST = 19  # digits of a number that can be a pid


def is_pid(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= _LONGEST


def attachable(command: str, word: str) -> list[int]:
    """The pids of the VMs that can be asked: of all of them for 0. CommandLineError, NoSuchProcess: there is none."""
    if not word or word.startswith("-"):
        raise CommandLineError(f"{command} takes a pid, or the name of a program, not {word!r}", hint=LISTED)
    if is_pid(word) and int(word):
        return [int(word)]
    found = _found(lambda vm: _can_be_asked(vm) and (is_pid(word) or _is_named(vm, word)))
    if not found:
        raise NoSuchProcess(
            "there is no VM that can be asked" if is_pid(word) else f"no VM that can be asked is called {word!r}",
            hint=LISTED,
        )
    return found


def readable(command: str, word: str) -> list[str]:
    """What reader.vm takes: the word itself, if it is a pid or `file:PATH`, else the pids of those VMs."""
    if not word or word.startswith("-"):
        raise CommandLineError(f"{command} takes a pid, or the name of a program, not {word!r}", hint=LISTED)
    if is_pid(word) or word.startswith("file:") or word == "self":
        return [word]
    found = _found(lambda vm: _is_named(vm, word))
    if not found:
        raise NoSuchProcess(f"no VM is called {word!r}", hint=LISTED)
    return list(map(str, found))


def _found(wanted: Callable[[reader.VM], bool]) -> list[int]:
    pids = []
    for vm in reader.vms():
        with vm:
            try:
                if vm.pid is not None and vm.pid != os.getpid() and wanted(vm):
                    pids.append(vm.pid)
            except VMScopeError:  # it cannot be read, or ends just now
                continue
    return pids


def _is_named(vm: reader.VM, word: str) -> bool:
    """As jcmd has it: the word is part of the program's name, its package or its directory."""
    return word in vm.command_line.partition(" ")[0]


def _can_be_asked(vm: reader.VM) -> bool:
    return str(vm.reader.some(("sun.rt.jvmCapabilities",)).get("sun.rt.jvmCapabilities", "")).startswith("1")
