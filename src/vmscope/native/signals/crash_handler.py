"""The twin of crash_handler.c. Python code runs between bytecodes, never in a fault's handler, so a crash does nothing.

After one the file stays until the next VM of that user starts, and readers know it for stale.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.native.region.mirror import Mirror

__all__ = ["arm", "disarm", "end_region", "is_armed"]

_armed: tuple[Mirror, bytes, int, bool] | None = None  # with where to save, the process, and whether the file stays
unlink_socket: Callable[[], None] | None = None  # the listener's


def arm(mirror: Mirror, save: bytes, stays: bool = False, /) -> None:
    """`end_region` will save the image to `save` (b"": nowhere) and unlink the file, or bring it up to date where it
    stays. A fatal signal will not."""
    global _armed
    _armed = mirror, save, os.getpid(), stays


def disarm() -> None:
    """There is nothing to end any more."""
    global _armed
    _armed = None


def end_region(*_: object) -> bool:
    """Saves the image where asked and takes the names of file and socket away. True where there was something to do."""
    global _armed
    armed, _armed = _armed, None
    if armed is None or armed[2] != os.getpid():
        return False
    mirror, path = armed[:2]
    end_file = mirror.write_file if armed[3] else mirror.unlink_file

    def save() -> None:
        if path:
            mirror.save(path)

    steps: tuple[Callable[[], None] | None, ...] = (save, end_file, unlink_socket)
    for step in steps:
        try:
            if step is not None:
                step()
        except OSError:
            continue  # as at a crash: the next step
    return True


def is_armed() -> bool:
    """Whether there is something to end."""
    return _armed is not None
