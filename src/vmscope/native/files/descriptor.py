"""The twin of descriptor.c: a signal handler that raises while one is being made can leave it open."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Descriptor"]


class Descriptor:
    """The descriptor that a call opens, closed with the object that holds it."""

    __slots__ = ("fd",)

    def __init__(self, function: Callable[..., int], /, *arguments: Any, **keywords: Any) -> None:
        self.fd = -1
        self.fd = function(*arguments, **keywords)

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Gives it back; a second call does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
