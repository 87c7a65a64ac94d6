"""The twin of credentials.c: who may have this process do something."""

from __future__ import annotations

import os
from struct import iter_unpack

_AT_SECURE = 23


def may_attach(uid: int, gid: int) -> bool:
    """Whether a client with these effective ids may, by the ids and the privileges that the process has now."""
    if uid == 0:
        return True
    return os.getresuid() == (uid,) * 3 and os.getresgid() == (gid,) * 3 and not _is_privileged(uid)


def _is_privileged(uid: int) -> bool:
    """Whether it has, or has had, what its user does not have by himself."""
    try:
        if os.stat("/proc/self/auxv").st_uid != uid:  # root's, as those of a process are that is not dumpable
            return True
        with open("/proc/self/status", "rb") as status:
            permitted = next(int(line[7:], 16) for line in status if line.startswith(b"CapPrm:"))
        with open("/proc/self/auxv", "rb") as vector:
            secure = dict(iter_unpack("@LL", vector.read())).get(_AT_SECURE, 0)
    except (OSError, ValueError, StopIteration):
        return True
    return bool(permitted or secure)
