"""What ended processes have counted, as a part of the answer: the totals of services, and regions that wait for them.

A process that ends adds its numbers to the totals of its service, and its region goes. Of one that was killed the
region stays until another process does that; meanwhile it is still read. Regions are read first and totals then, so
that a process is in one of the two; where it is in both, the totals have a note of it.
"""

from __future__ import annotations

import os
import sys

from vmscope.reader.discovery import PREFIX, TMP, Candidate, identity
from vmscope.reader.process import user_name
from vmscope.reader.totals import TotalsFile
from vmscope.wire.totals import STACK_START, START_TICKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from vmscope.reader.machine import VM
    from vmscope.wire.totals import Note, Totals

    Key = tuple[str, str]  # the directory of regions, and the service

MOST_WAITING = 256  # regions of one user's processes that were killed
# Of the process that wrote them: they say how the numbers are to be read.
VALUES: dict[str, int | str] = {"java.property.java.vm.name": "CPython", "sun.os.hrt.frequency": 1_000_000_000}


def key_of(vm: VM) -> Key | None:
    """Where what a VM has counted goes when it ends; None where it goes nowhere."""
    if sys.platform == "win32" or not vm.service:
        return None
    return os.path.dirname(vm.path), vm.service


def note_of(vm: VM) -> Note:
    """The note of it that the totals have once its numbers are in them. VMScopeError where it cannot be read."""
    found = vm.reader.some((START_TICKS, STACK_START))
    ticks, stack = found.get(START_TICKS, 0), found.get(STACK_START, 0)
    return vm.nspid or 0, ticks if isinstance(ticks, int) else 0, stack if isinstance(stack, int) else 0


def is_there(vm: VM) -> bool:
    """Whether its region still has its name: it has not been removed."""
    folder = os.path.basename(os.path.dirname(vm.path))
    candidate = Candidate(vm.pid or 0, vm.nspid or 0, folder.removeprefix(PREFIX), vm.path, "/root/" in vm.path)
    return identity(candidate) == vm.file


def adopt() -> None:
    """Adds what this user's processes have left to the totals of their services."""
    if sys.platform == "win32" or not os.path.isdir(f"{TMP}/{PREFIX}{user_name(os.geteuid())}"):
        return
    from vmscope.memory import _file

    _file.clean()


class Keepers:
    """The totals of the services that have any, by their place."""

    def __init__(self) -> None:
        self._files: dict[Key, TotalsFile] = {}

    def read(self, keys: Iterable[Key]) -> dict[Key, Totals]:
        """Those of these services, now."""
        wanted = set(keys)
        self._files = {key: self._files.get(key) or TotalsFile(*key) for key in wanted}
        found = {}
        for key, file in self._files.items():
            file.refresh()
            if file.totals is not None:
                found[key] = file.totals
        return found
