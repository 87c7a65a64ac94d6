"""The twin of fatal.c, which says that it cannot: Python code runs between bytecodes, never in a fault's handler.

After a crash the file stays until the next VM of that user starts, and readers know it for stale.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.native.mirror import Mirror

__all__ = ["arm", "disarm", "is_armed"]


def arm(mirror: Mirror, save: bytes, /) -> None:
    """Does nothing: a fatal signal will neither save the image nor unlink the file."""


def disarm() -> None:
    """Nothing was armed."""


def is_armed() -> bool:
    """Never."""
    return False
