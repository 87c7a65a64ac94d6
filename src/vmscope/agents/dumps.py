"""Where an agent's dumps go: appended to a file, or to standard error."""

from __future__ import annotations

import os

from vmscope import terminal


def append(path: str, text: str) -> None:
    """`-` is standard error; so is a file that cannot be had, with a word on it. It raises nothing."""
    try:
        try:
            file = opened(path)
        except OSError as error:
            text = f"{text}(not in {path}: {error.strerror})\n"
            file = opened("-")
    except OSError:
        return  # it cannot be reported
    try:
        terminal.write_all(file, terminal.lines(text))
    except OSError:
        return
    finally:
        os.close(file)


def opened(path: str) -> int:
    """A descriptor to append to it, of one's own. OSError, also where standard error is closed."""
    if path == "-":
        return terminal.standard_error()
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
