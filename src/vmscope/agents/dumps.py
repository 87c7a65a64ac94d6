"""Where an agent's dumps go: appended to a file, or to standard error."""

from __future__ import annotations

import os

STDERR = 2


def append(path: str, text: str) -> None:
    """`-` is standard error; so is a file that cannot be had, with a word on it. It raises nothing."""
    file = STDERR
    if path != "-":
        try:
            file = opened(path)
        except OSError as error:
            text = f"{text}(not in {path}: {error.strerror})\n"
    try:
        data = text.encode(errors="backslashreplace")
        while data:
            data = data[os.write(file, data) :]
    except OSError:
        return  # nobody to tell
    finally:
        if file != STDERR:
            os.close(file)


def opened(path: str) -> int:
    """A descriptor to append to it. OSError."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
