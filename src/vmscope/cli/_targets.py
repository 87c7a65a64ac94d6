"""Which VMs a word of the command line means: a pid, a saved region, or all whose program has it in its name."""

from __future__ import annotations

import os

from vmscope import reader, services
from vmscope.cli._options import is_pid
from vmscope.errors import CommandLineError, NoSuchProcess, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Found = TypeVar("Found")

LISTED = "vmscope ps lists the VMs"


def attachable(command: str, word: str) -> list[int]:
    """The pids of the VMs that can be asked; for 0 of all. CommandLineError, NoSuchProcess where there is none."""
    if not word or word.startswith("-"):
        raise CommandLineError(f"{command} takes a pid, or the name of a program, not {word!r}", hint=LISTED)
    if is_pid(word) and int(word):
        return [int(word)]
    found = _others(
        lambda vm: vm.pid if _can_be_asked(vm) and (is_pid(word) or _is_named(vm.command_line, word)) else None
    )
    if not found:
        raise NoSuchProcess(
            "there is no VM that can be asked" if is_pid(word) else f"no VM that can be asked is called {word!r}",
            hint=LISTED,
        )
    return found


def vms(command: str, text: str) -> list[reader.VM]:
    """The VMs that are meant, with commas between them, each once: by pid, as `file:PATH`, or by name. Close them.

    Raises CommandLineError, NoSuchProcess where there is no VM of a name, and what reader.vm raises.
    """
    words: dict[str, None] = {}
    names = [text] if text.startswith("file:") else text.split(",")
    for word in names:
        if not word or word.startswith("-"):
            raise CommandLineError(f"{command} takes a pid, or the name of a program, not {word!r}", hint=LISTED)
    for word in names:
        words.update(dict.fromkeys([word] if is_pid(word) or word.startswith("file:") else _named(word)))
    found: list[reader.VM] = []
    try:
        for word in words:
            found.append(reader.vm(word))
    except VMScopeError:
        for vm in found:
            vm.close()
        raise
    return found


def _named(word: str) -> list[str]:
    """The pids of the VMs with this in their program's name, or in that of their service."""
    seen = {each.pid: each for each in _others(services.Seen)}
    pids = [
        str(pid)
        for pid, member in services.members(seen.values()).items()
        if _is_named(seen[pid].command_line, word) or word in member.service
    ]
    if not pids:
        raise NoSuchProcess(f"no VM is called {word!r}", hint=LISTED)
    return pids


def of_service(name: str) -> list[int]:
    """The pids of the VMs of a service that can be asked."""
    found = _others(lambda vm: (services.Seen(vm), _can_be_asked(vm)))
    can = {seen.pid for seen, asked in found if asked}
    members = services.members(seen for seen, _ in found)
    return [pid for pid, member in members.items() if member.service == name and pid in can]


def labels() -> dict[int, str]:
    """What each VM is, by pid: `shop`, or `shop: worker of 4711`."""
    return {pid: member.label for pid, member in services.members(_others(services.Seen)).items()}


def _others(look: Callable[[reader.VM], Found | None]) -> list[Found]:
    """What a look at each VM but this process finds."""
    found = []
    for vm in reader.vms():
        with vm:
            try:
                seen = look(vm) if vm.pid != os.getpid() else None
            except VMScopeError:  # it cannot be read, or ends just now
                continue
            if seen is not None:
                found.append(seen)
    return found


def _is_named(command_line: str, word: str) -> bool:
    """As jcmd has it: the word is part of the program's name, its package or its directory."""
    return word in command_line.partition(" ")[0]


def _can_be_asked(vm: reader.VM) -> bool:
    return str(vm.reader.some(("sun.rt.jvmCapabilities",)).get("sun.rt.jvmCapabilities", "")).startswith("1")
