"""The twin of fatal.c, which says that it cannot: Python code runs between two bytecodes, never in a handler of a fault.

After a crash the file stays until the next VM of that user starts, and readers know it for stale.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.native.mirror import Mirror

__all__ = ["arm", "disarm"]


def arm(mirror: Mirror, save: bytes, /) -> bool:
    """False: a fatal signal will neither save the image nor unlink the file."""
    return False


def disarm() -> None:
    """Nothing was armed."""
