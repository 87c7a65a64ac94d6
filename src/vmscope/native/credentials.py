"""The twin of credentials.c: who may have this process do something."""

from __future__ import annotations

import os
from struct import iter_unpack

_AT_SECURE = 23
_NOBODY = 65534  # and, as the kernel shows it, whoever has no id in this process's user namespace


def may_attach(uid: int, gid: int) -> bool:
    """Whether a client with these effective ids may, by the ids and the privileges that the process has now."""
    if uid == 0:
        return True
    same = os.getresuid() == (uid,) * 3 and os.getresgid() == (gid,) * 3
    return same and _is_known(uid, "uid_map") and _is_known(gid, "gid_map") and not _is_privileged(uid)


def _is_known(number: int, name: str) -> bool:
    """Whether it is nobody else's: every id has one in this process's user namespace, as in the first one."""
    if number != _NOBODY:
        return True
    try:
        with open(f"/proc/self/{name}", "rb") as file:
            return file.read().endswith(b" 4294967295\n")
    except OSError:
        return False


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
