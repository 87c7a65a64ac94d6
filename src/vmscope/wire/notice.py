"""Why a process has no region's file, where others can read it: as the name of one of its mappings.

Where `/tmp` is read-only or full there can be neither a file nor a socket. A file in memory has a name of 249 bytes at
most, which /proc/PID/maps shows to whom the process may be looked at by.
"""

from __future__ import annotations

_PREFIX = "vmscope: "
_LONGEST = 249


def name(reason: str) -> str:
    """What the file in memory is called."""
    return (_PREFIX + reason).encode("ascii", "backslashreplace")[:_LONGEST].decode("ascii")


def find(maps: bytes) -> str:
    """The reason that a process's maps tell; "" where there is none."""
    _, found, rest = maps.partition(b" /memfd:" + _PREFIX.encode())
    return rest.partition(b"\n")[0].removesuffix(b" (deleted)").decode("ascii", "replace") if found else ""
