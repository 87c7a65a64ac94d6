"""The region of this process: its image, the allocation of entries in it, and its file.

Entries are appended and never removed. One that does not fit is counted in `overflow` and its counter
goes on working unseen, as in HotSpot; a later, smaller one may still fit.
"""

from __future__ import annotations

import os
from _thread import RLock
from time import monotonic_ns

from vmscope import native
from vmscope.memory import _directory, _file, _stale
from vmscope.wire import encode

PROLOGUE = 32
_ACCESSIBLE = 7
_GRANULARITY = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 65536


class Region:
    """An image of `capacity` bytes (rounded up to whole pages) and what stands in it.

    `mirror` keeps the image current; `file` is where others see it, or None.
    """

    __slots__ = ("_depth", "_lock", "_top", "capacity", "epoch", "file", "mirror", "num_entries", "overflow")

    def __init__(self, capacity: int) -> None:
        self.capacity = -(-capacity // _GRANULARITY) * _GRANULARITY
        self.epoch = monotonic_ns()
        self.mirror = native.Mirror(self.capacity, self.epoch)
        self.mirror.image[:PROLOGUE] = encode.prologue()
        self.file: _file.RegionFile | None = None
        self.num_entries = 0
        self.overflow = 0
        self._top = PROLOGUE
        self._lock = RLock()
        self._depth = 0

    @property
    def used(self) -> int:
        """Bytes in use from the start, the prologue included; 0 until the first entry."""
        return self._top if self.num_entries else 0

    def allocate(
        self,
        name: str,
        value: int | bytes,
        *,
        units: int,
        variability: int,
        slot: native.LongSlot | native.TextSlot | None = None,
    ) -> bool:
        """Appends an entry; from then on it shows the slot's value. False when it did not fit.

        `value` stands there until the mirror's next visit: an int for a J scalar, bytes for a string.
        The space is taken before anything is written, so that a signal handler or a destructor that
        allocates in the middle gets other space; the outermost call publishes all of it.
        """
        capacity = slot.capacity + 1 if isinstance(slot, native.TextSlot) else 0
        entry = encode.entry(name, units=units, variability=variability, value=value, capacity=capacity)
        with self._lock:
            start = self._top
            if start + len(entry) >= self.capacity:
                self.overflow += len(entry)
                if not self._depth:
                    self.mirror.commit(self.used, self.num_entries, self.overflow)
                return False
            self._top += len(entry)
            self.num_entries += 1
            self._depth += 1
            try:
                self.mirror.image[start : start + len(entry)] = entry
                if slot is not None:
                    data_type = "J" if isinstance(value, int) else "B"
                    self.mirror.bind(slot, start + encode.data_offset(name, ord(data_type)))
            finally:
                self._depth -= 1
            if not self._depth:
                self.mirror.commit(self._top, self.num_entries, self.overflow)
        return True

    def set_accessible(self) -> None:
        """Says that start-up is over: readers may look."""
        self.mirror.image[_ACCESSIBLE] = 1

    def publish(self) -> None:
        """Makes the file of this process and tells the mirror. Raises VMScopeError where there can be none."""
        pid = os.getpid()
        with _directory.open_directory() as directory:
            _stale.clean(directory, pid)
            self.file = _file.create(directory, pid, self.mirror.image)
        self.mirror.set_file(os.fsencode(self.file.path), self.file.device, self.file.inode)

    def after_fork(self) -> None:
        """In a forked child: the file and the lock are the parent's."""
        self._lock = RLock()
        self._depth = 0
        self.mirror.after_fork()
        if self.file is not None:
            self.file.abandon()
            self.file = None
