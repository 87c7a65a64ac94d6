"""What /proc knows of a process and a JVM's region does not: CPU time, memory, descriptors."""

from __future__ import annotations

import os

from vmscope.errors import VMScopeError
from vmscope.reader.process import CLOCK_TICKS, PAGE_SIZE, process, read_file

# One number of each for a process, under the names of columns; -1: not known.
FACTS = ("proc.cpu", "proc.resident", "proc.virtual", "proc.files.open", "proc.files.limit")
_LIMIT = 1 << 16


def facts(pid: int) -> list[int]:
    """CPU time in ns, bytes, bytes, descriptors and their limit."""
    try:
        found = process(pid)
    except VMScopeError:
        return [-1] * len(FACTS)
    cpu = (found.user_ticks + found.system_ticks) * (1_000_000_000 // CLOCK_TICKS)
    return [cpu, found.rss, _virtual(pid), _open_files(pid), _limit(pid)]


def _virtual(pid: int) -> int:
    try:
        return int(read_file(f"/proc/{pid}/statm", _LIMIT).split(None, 1)[0]) * PAGE_SIZE
    except (OSError, ValueError, IndexError):
        return -1


def _open_files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return -1


def _limit(pid: int) -> int:
    try:
        text = read_file(f"/proc/{pid}/limits", _LIMIT)
        line = text[text.index(b"Max open files") :].split(b"\n", 1)[0]
        return int(line.split()[3])
    except (OSError, ValueError, IndexError):  # `unlimited`
        return -1
