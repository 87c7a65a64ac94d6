"""What programs of `tests.sandbox` begin with. It imports before anything is mounted that may hide the package."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import vmscope
import vmscope.process_status
import vmscope.runtime
from tests import sandbox
from vmscope import native
from vmscope.errors import VMScopeError
from vmscope.memory import _directory, _file, _stale

__all__ = [
    "IMAGE",
    "VMScopeError",
    "_directory",
    "_file",
    "_stale",
    "answer",
    "errno",
    "fcntl",
    "json",
    "native",
    "os",
    "publish",
    "refusal",
    "sandbox",
    "stat",
    "subprocess",
    "sys",
    "time",
    "tree",
    "vmscope",
]

IMAGE = bytes.fromhex("cafec0c0 01020001") + bytes(24) + (b"region" * 10918)[:65504]


def publish(tmp: str = "/tmp", pid: int | None = None) -> tuple[_file.RegionFile, list[str]]:
    pid = os.getpid() if pid is None else pid
    with _directory.open_directory(tmp=tmp) as directory:
        removed = _stale.clean(directory, pid)
        return _file.create(directory, pid, IMAGE), removed


def refusal(call: Callable[..., object], *arguments: Any, **keywords: Any) -> dict[str, object] | None:
    try:
        call(*arguments, **keywords)
    except VMScopeError as error:
        return {"type": type(error).__name__, "message": str(error), "path": error.path, "hint": error.hint}
    return None


def tree(folder: str = "/tmp") -> list[str]:
    return sorted(os.path.join(head, name) for head, dirs, names in os.walk(folder) for name in dirs + names)


def answer(**found: object) -> None:
    sys.stdout.write(json.dumps(found) + "\n")  # at once, also unbuffered: several processes write
    sys.stdout.flush()
