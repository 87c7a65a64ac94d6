"""A file for node_exporter's textfile collector, which sees the old answer or the new one and no part of either."""

from __future__ import annotations

import os

from vmscope.errors import VMScopeError


def write(path: str, answer: bytes) -> None:
    """Replaces the file. Its folder must be one in which this user may write."""
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")  # the collector reads *.prom
    try:
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            pass
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            with open(fd, "wb") as file:
                file.write(answer)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise VMScopeError(
            f"{path} cannot be written: {error.strerror}", hint="name a file in a folder of yours"
        ) from None
