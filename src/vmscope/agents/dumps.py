"""Where an agent's dumps go: appended to a file, or to standard error."""

from __future__ import annotations

import os
import stat
from fcntl import F_DUPFD_CLOEXEC, fcntl

STDERR = 2


def identity(file: int) -> tuple[int, int] | None:
    """Which file a descriptor is; None where it is closed."""
    try:
        status = os.fstat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


_first = identity(STDERR)  # what it was when the first agent came


def append(path: str, text: str) -> None:
    """`-` is standard error; so is a file that cannot be had, with a word on it. It raises nothing."""
    try:
        try:
            file = opened(path)
        except OSError as error:
            text = f"{text}(not in {path}: {error.strerror})\n"
            file = opened("-")
    except OSError:
        return  # nobody to tell
    try:
        data = text.encode(errors="backslashreplace")
        while data:
            data = data[os.write(file, data) :]
    except OSError:
        return
    finally:
        os.close(file)


def opened(path: str) -> int:
    """A descriptor to append to it, of one's own. OSError, also where standard error is closed.

    A program may have closed that, as daemons do, and its number be another file's now, which is none of ours. What is
    put in its place on purpose is inherited by children; what Python opens at a number that is free is not.
    """
    if path != "-":
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    inherited = os.get_inheritable(STDERR)
    file = fcntl(STDERR, F_DUPFD_CLOEXEC, STDERR + 1)  # what is found out of it holds for what is written to it
    if identity(file) != _first and (not inherited or stat.S_ISSOCK(os.fstat(file).st_mode)):
        os.close(file)
        raise OSError("standard error is closed")
    return file
