"""Other VMs' regions: who is on this host, and what their counters say. Read-only, and trusting nothing."""

from __future__ import annotations

from vmscope.errors import FormatError, StaleRegion, VMScopeError
from vmscope.reader.attachment import LOOK_CLOSER, Attachment, attach, open_candidate
from vmscope.reader.discovery import TMP, Candidate, candidates, every, identity
from vmscope.reader.machine import VM, Counter
from vmscope.reader.ownership import LIVE, STALE, FileLocks, Owner

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
    owner = found.examine(FileLocks())
    if owner.state == LIVE and owner.pid == asked:
        return
    if owner.state == STALE:
        what = f"process {asked} did not write {found.path}: the writer has ended"
    else:
        what = f"{found.path} belongs to a process of another pid namespace"
        if owner.state == LIVE:
            what += f", which is {owner.pid} here"
    raise StaleRegion(f"The region is not of process {asked}: {what}", pid=asked, path=found.path, hint=LOOK_CLOSER)


def vms(*, stale: bool = False, tmp: str = TMP) -> list[VM]:
    """Every VM that this user may read, by pid: the live ones, unless `stale`. Close them after use.

    A VM is left out that cannot be read: its file is not a region, not this user's to read, or has just gone. Of the
    others not all was looked at: one that is damaged raises FormatError when its values are asked for.
    """
    kept: dict[tuple[int, str], tuple[int, VM]] = {}
    seen: set[tuple[int, int] | str] = set()
    locks = FileLocks()
    for candidate in every(tmp):
        if not stale and not may_live(candidate, locks):
            continue
        try:
            attachment = open_candidate(candidate)
        except VMScopeError:
            continue
        found = VM(attachment)
        inode = attachment.found.st_ino  # which Windows does not give for a file that is in use
        file = (attachment.found.st_dev, inode) if inode else candidate.path
        owner = None if file in seen else owner_of(found, locks)
        if owner is None or (owner.state != LIVE and not stale):
            found.close()
            continue
        seen.add(file)  # one region can be found twice: under its name here, and through /proc
        # Of two files that claim one live process, the newer one; what is not live has no such rival.
        key = owner.pid, "" if owner.state == LIVE else candidate.path
        changed = attachment.found.st_ctime_ns
        rival = kept.get(key)
        if rival is not None and rival[0] >= changed:
            found.close()
            continue
        if rival is not None:
            rival[1].close()
        kept[key] = changed, found
    return sorted([found for _, found in kept.values()], key=lambda found: found.pid or 0)


def may_live(candidate: Candidate, locks: FileLocks) -> bool:
    """False where no process has this pid or has the file locked: what users leave is not even opened."""
    if candidate.runs:
        return True
    file = identity(candidate)
    return file is not None and bool(locks.holders(*file))


def owner_of(found: VM, locks: FileLocks) -> Owner | None:
    """Whose a region is; None for a file that is not a region."""
    try:
        owner = found.examine(locks)
        found.check()
    except (FormatError, StaleRegion):
        return None
    return owner
