"""Other VMs' regions: who is on this host, and what their counters say. Read-only, and trusting nothing."""

from __future__ import annotations

from vmscope.errors import FormatError, StaleRegion, VMScopeError
from vmscope.reader.attachment import LOOK_CLOSER, Attachment, attach, open_candidate
from vmscope.reader.discovery import Candidate, candidates
from vmscope.reader.machine import VM, Counter
from vmscope.reader.ownership import LIVE, STALE, Locks

__all__ = ["VM", "Attachment", "Candidate", "Counter", "attach", "candidates", "vm", "vms"]


def vm(target: int | str, *, stale: bool = False) -> VM:
    """The VM of a pid, of this process (0 or "self"), or of a saved region ("file:PATH").

    Raises NoSuchProcess, AccessDenied, NoRegion, InsecureDirectory, RegionSizeError, FormatError, and, unless
    `stale`, StaleRegion where the file is a dead process's or another one's.
    """
    found = VM(attach(target))
    try:
        if not found.path_given and not stale:
            _check_owner(found)
    except VMScopeError:
        found.close()
        raise
    return found


def _check_owner(found: VM) -> None:
    asked = found.pid
    owner = found.examine(Locks())
    if owner.state == LIVE and owner.pid == asked:
        return
    if owner.state == STALE:
        what = f"process {asked} did not write {found.path}: the writer has ended"
    else:
        what = f"{found.path} belongs to a process of another pid namespace"
        if owner.state == LIVE:
            what += f", which is {owner.pid} here"
    raise StaleRegion(f"The region is not of process {asked}: {what}", pid=asked, path=found.path, hint=LOOK_CLOSER)


def vms(*, stale: bool = False, tmp: str = "/tmp") -> list[VM]:
    """Every VM that this user may read, by pid: the live ones, unless `stale`. Close them after use.

    What cannot be read, because it is no region, or not ours to read, or has just gone, is left out.
    """
    found: list[VM] = []
    seen: set[tuple[int, int]] = set()  # one region, found under its name here and as a namespace's
    locks = Locks()
    for candidate in candidates(tmp):
        try:
            attachment = open_candidate(candidate)
        except VMScopeError:
            continue
        machine = VM(attachment)
        file = attachment.found.st_dev, attachment.found.st_ino
        try:
            if (machine.examine(locks).state == LIVE or stale) and file not in seen:
                seen.add(file)
                found.append(machine)
                continue
        except (FormatError, StaleRegion):
            pass
        machine.close()
    return sorted(found, key=lambda machine: machine.pid or 0)
