"""The region of this process: its image, the allocation of entries in it, and its file.

Entries are appended and never removed. One that does not fit is counted in `overflow` and its counter
goes on working unseen, as in HotSpot; a later, smaller one may still fit.
"""

from __future__ import annotations

import os
import sys
from time import monotonic_ns

from vmscope import native
from vmscope.errors import RegionFileError, VMScopeError

if sys.platform == "win32":
    from vmscope.memory import _windows as _system
else:
    from vmscope.memory import _file as _system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class File(Protocol):
        """A region under its name. Each system has a module with a `RegionFile`, which is none until `publish`."""

        @property
        def path(self) -> str: ...
        @property
        def size(self) -> int: ...
        @property
        def notes(self) -> tuple[str, ...]:
            """What did not go well, and is for the log."""

        def publish(self, mirror: native.Mirror, pid: int) -> None:
            """Makes it, and tells the mirror. VMScopeError where there can be none."""

        def unlink(self) -> None:
            """Takes it away, also one that is half made; a second call does nothing. RegionFileError where it cannot
            be."""

        def abandon(self) -> None:
            """In a forked child: forgets it, which is the parent's."""

    # Name; value until the mirror's next visit, an int for a J scalar, bytes for a string; units; variability; the
    # slot whose value it shows (None: a constant), and which of its cells.
    Entry = tuple[str, int | bytes, int, int, native.Slot | None, int]

PROLOGUE = 32
_ACCESSIBLE = 7
_GRANULARITY = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 65536


class Region:
    """An image of `capacity` bytes (rounded up to whole pages), which grows up to `limit`, and what stands in it.

    `mirror` keeps the image current; `file` is where others see it, or None.
    """

    __slots__ = ("_making", "file", "mirror")

    def __init__(self, capacity: int, limit: int = 0) -> None:
        first, last = (-(-size // _GRANULARITY) * _GRANULARITY for size in (capacity, limit))
        self.mirror = native.Mirror(first, monotonic_ns(), max(first, last if sys.platform != "win32" else 0))
        self.mirror.image[:PROLOGUE] = native.EMPTY_PROLOGUE
        self.file: File | None = None
        self._making: File | None = None  # until it is whole

    @property
    def capacity(self) -> int:
        """How large it is now."""
        return len(self.mirror.image)

    def allocate(self, entries: Sequence[Entry]) -> bool:
        """Appends the entries of one counter; from then on they show its values. False when they did not fit.

        They all stand there or none. Space is taken and written in one step: a signal handler or a destructor that
        allocates comes before or after.
        """
        data, bindings = native.encode_entries(entries)
        return self.mirror.append(data, len(entries), bindings)

    def set_accessible(self) -> None:
        """Says that start-up is over: readers may look."""
        self.mirror.image[_ACCESSIBLE] = 1

    def publish(self, direct: bool = False) -> None:
        """Makes the file of this process and tells the mirror. Raises VMScopeError where there can be none.

        `direct`: the file itself becomes the image. RegionFileError where it cannot be mapped.
        """
        self._making = making = _system.RegionFile()
        try:
            making.publish(self.mirror, os.getpid())
            if direct:
                self._map(making.path)
        except Exception:
            try:
                self.unlink()
            except VMScopeError:  # the first error is the one to report
                pass
            raise
        self.file = making
        self._making = None

    def _map(self, path: str) -> None:
        try:
            self.mirror.map_file()
        except OSError as error:
            raise RegionFileError(
                f"cannot map {path}: {error.strerror}", path=path, hint="leave out -XX:-PerfDataMirror"
            ) from error

    def clean(self) -> None:
        """Removes what killed children left, as workers of a pool: no other VM may start that does."""
        if sys.platform != "win32":  # where a file goes with its process
            _system.clean()

    def unlink(self) -> None:
        """Takes the file away, also one that is half made. RegionFileError where it cannot be."""
        try:
            for file in (self._making, self.file):
                if file is not None:
                    file.unlink()
        except VMScopeError:
            self.file = self._making = None
            raise
        self.file = self._making = None  # not before: what interrupts the above leaves it to the next call
