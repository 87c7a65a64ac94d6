"""Processes that run vmscope and have no region's file: where there can be none they say why in their maps."""

from __future__ import annotations

from vmscope.errors import AccessDenied, NoSuchProcess
from vmscope.reader.ownership import FileLocks
from vmscope.reader.process import Process, pids, process
from vmscope.wire import notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator


def unpublished(known: Container[int | None]) -> Iterator[tuple[Process, str]]:
    """Each such process, except those that are `known` to have a region, with the reason. The maps of all are read."""
    locks = FileLocks()
    for pid in pids():
        if pid in known:
            continue
        try:
            found = process(pid)
            reason = notice.find(locks.maps(found)) if found.alive else ""
        except (NoSuchProcess, AccessDenied, OSError):
            continue
        if reason:
            yield found, reason
