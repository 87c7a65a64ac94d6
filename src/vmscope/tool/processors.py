"""How many processors this process may use: what is bound to it, and what its control group allows."""

from __future__ import annotations

import os

GROUPS = "/proc/self/cgroup"
MOUNTS = "/proc/self/mountinfo"


def available() -> int:
    """At least 1. Asked for anew each time: both may change while the process lives."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *quotas()]))


def quotas() -> list[int]:
    """The processors, rounded up, that each control group above this process may use at once, where it says so."""
    found = []
    for folder, quota, period in _limits():
        try:
            limit = _quota(folder, quota, period)
        except (OSError, ValueError):  # a group without this limit; one that is gone
            continue
        if limit is not None:
            found.append(limit)
    return found


def _quota(folder: str, quota: str, period: str) -> int | None:
    if period:
        most, each = int(_read(f"{folder}/{quota}")), int(_read(f"{folder}/{period}"))
    else:
        words = _read(f"{folder}/{quota}").split()
        if words[0] == "max":
            return None
        most, each = int(words[0]), int(words[1])
    return -(-most // each) if most > 0 and each > 0 else None


def _limits() -> list[tuple[str, str, str]]:
    """(folder, file of the quota, file of the period or "") of each group from this process's up to the root."""
    found = []
    try:
        groups = [line.split(":", 2) for line in _read(GROUPS).splitlines()]
        mounts = [line.split(" - ", 1) for line in _read(MOUNTS).splitlines()]
    except OSError:  # a system without control groups
        return []
    for _, controllers, path in groups:
        version1 = "cpu" in controllers.split(",")
        if not version1 and controllers:
            continue
        for left, right in mounts:
            kind, _, options = right.split(" ", 2)
            if kind != ("cgroup" if version1 else "cgroup2") or (version1 and "cpu" not in options.split(",")):
                continue
            root, point = left.split(" ")[3:5]
            below = path.removeprefix(root.rstrip("/")).strip("/")  # a container may see its own group as the root
            while True:
                folder = f"{point}/{below}".rstrip("/")
                files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if version1 else ("cpu.max", "")
                found.append((folder, *files))
                if not below:
                    break
                below = below.rpartition("/")[0]
    return found


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()
