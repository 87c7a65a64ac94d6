"""The twin of credentials.c: who may have this process do something."""

from __future__ import annotations

import os
from errno import EMFILE, ENFILE
from struct import iter_unpack

_AT_SECURE = 23
_NOBODY = 65534  # where the kernel does not say whom it shows for who has no id in a user namespace
_CAPABILITIES = (b"CapPrm", b"CapEff", b"CapInh", b"CapBnd")


def may_attach(uid: int, gid: int) -> bool:
    """Whether a client with these effective ids may, by the ids and the privileges that the calling thread has now."""
    if uid == 0:
        return True
    same = os.getresuid() == (uid,) * 3 and os.getresgid() == (gid,) * 3
    return same and _is_known(uid, "uid") and _is_known(gid, "gid") and not _is_privileged(uid)


def _is_known(number: int, kind: str) -> bool:
    """Whether it is the first one: every id has one in this process's user namespace, as in the first one."""
    try:
        with open(f"/proc/self/{kind}_map", "rb") as file:
            if file.read().endswith(b" 4294967295\n"):
                return True
    except OSError:
        pass
    try:
        with open(f"/proc/sys/kernel/overflow{kind}", "rb") as file:
            return number != int(file.read())
    except (OSError, ValueError):
        return number != _NOBODY


def _is_privileged(uid: int) -> bool:
    """Whether it has, or has had, what its user does not have by himself."""
    try:
        if os.stat("/proc/self/auxv").st_uid != uid:  # root's, as those of a process are that is not dumpable
            return True
        permitted = ThreadRights("thread-self").capabilities[0]
        with open("/proc/self/auxv", "rb") as vector:
            secure = dict(iter_unpack("@LL", vector.read())).get(_AT_SECURE, 0)
    except (OSError, ValueError):
        return True
    return bool(permitted or secure)


class ThreadRights:
    """Those of a task, by its folder in /proc. OSError or ValueError where they cannot be known."""

    __slots__ = ("capabilities", "filters", "groups", "ids", "no_new_privileges", "seccomp")

    def __init__(self, task: str) -> None:
        with open(f"/proc/{task}/status", "rb") as status:
            fields = dict(line.partition(b":")[::2] for line in status)
        if b"CapPrm" not in fields:
            raise ValueError(f"/proc/{task}/status has no capabilities")
        self.ids = fields[b"Uid"].split(), fields[b"Gid"].split()  # real, effective, saved, and the one for files
        self.groups = fields[b"Groups"].split()  # the supplementary ones
        self.capabilities = [int(fields.get(name, b"0"), 16) for name in _CAPABILITIES]
        self.no_new_privileges = int(fields.get(b"NoNewPrivs", b"0"))
        self.seccomp = int(fields.get(b"Seccomp", b"0"))
        self.filters = int(fields.get(b"Seccomp_filters", b"0"))

    def excess(self, other: ThreadRights) -> str:
        """What these have that the other's have not; "": nothing."""
        if self.ids != other.ids:
            return "ids"
        if self.groups != other.groups:
            return "groups"
        if any(own & ~others for own, others in zip(self.capabilities, other.capabilities, strict=True)):
            return "capabilities"
        if self.no_new_privileges < other.no_new_privileges:
            return "NoNewPrivs"
        confined = self.seccomp == other.seccomp and self.filters >= other.filters
        return "" if confined or not other.seccomp else "Seccomp"

    def is_plain(self, uid: int, gid: int) -> bool:
        uids, gids = self.ids
        return uids[:3] == [b"%d" % uid] * 3 and gids[:3] == [b"%d" % gid] * 3 and not self.capabilities[0]


def _find_privileged(uid: int, gid: int) -> int:
    """The number of a thread that has other ids or capabilities; 0: none."""
    for name in os.listdir("/proc/self/task"):
        try:
            if not ThreadRights(f"self/task/{name}").is_plain(uid, gid):
                return int(name)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
    return 0


def all_may_attach(uid: int, gid: int) -> bool:
    """As may_attach, by the ids and the capabilities of all threads. Once it may, no thread gets others."""
    try:
        return uid == 0 or not _find_privileged(uid, gid)
    except (OSError, ValueError):
        return False


def exceeds_main(unknown: bool) -> bool:
    """Whether the calling thread has rights that the main thread has not, or that cannot be known; `unknown` is the
    answer where the process has no descriptor left to look with."""
    try:
        return bool(ThreadRights("thread-self").excess(ThreadRights("self")))
    except OSError as error:
        return unknown or error.errno not in (EMFILE, ENFILE)
    except ValueError:
        return True


def describe_limit(task: str) -> str:
    """Who cannot attach because threads differ in their rights, where `task` carries requests out; "": all can."""
    try:
        own = ThreadRights(task)
        if more := own.excess(ThreadRights("self")):
            return (
                f"no client can attach: threads of vmscope have rights that the main thread does not have ({more}); "
                "call vmscope.stop() and start() once the program has changed its rights"
            )
        uid, gid = (int(ids[0]) for ids in own.ids)
        if own.is_plain(uid, gid) and (other := _find_privileged(uid, gid)):
            return f"root alone can attach: thread {other} has other ids than the process, or capabilities"
    except (OSError, ValueError):
        pass
    return ""
