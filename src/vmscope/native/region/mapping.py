"""The twin of mapping.c: the same `Mapping`, read with pread instead of through memory."""

from __future__ import annotations

import os
from _thread import allocate_lock
from errno import EIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Buffer = bytes | bytearray | memoryview | Any  # an array.array is one too

__all__ = ["Mapping"]

WORD = 8

if hasattr(os, "pread"):
    _pread = os.pread
else:  # Windows
    _lock = allocate_lock()

    def _pread(fd: int, length: int, offset: int) -> bytes:
        with _lock:
            os.lseek(fd, offset, os.SEEK_SET)
            return os.read(fd, length)


class Mapping:
    """Another process's file, opened read-only; the caller's descriptor may be closed.

    A file that was truncated gives OSError, an offset outside it or a closed mapping ValueError.
    """

    __slots__ = ("_fd", "_reach", "size")

    def __init__(self, fd: int, size: int, reach: int = 0) -> None:
        self._fd = -1
        self._reach = max(size, reach)
        if size <= 0:
            raise ValueError(f"cannot map {size} bytes")
        self.size = size
        self._fd = os.dup(fd)

    @property
    def closed(self) -> bool:
        return self._fd < 0

    def read(self, offset: int, length: int) -> bytes:
        self._check(offset, length)
        if self._fd < 0:
            raise ValueError("the mapping is closed")
        parts = []
        while length > 0:
            part = _pread(self._fd, length, offset)
            if not part:
                raise OSError(EIO, "the mapped file has lost its pages: it was truncated")
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def grow(self, size: int) -> bool:
        """Looks at so much of the file, which has become larger. False where it has not, or beyond `reach`."""
        if not 0 < size <= self._reach:
            return False
        if size > self.size:
            if self._fd < 0:
                raise ValueError("the mapping is closed")
            if os.fstat(self._fd).st_size < size:
                return False
            self.size = size
        return True

    def read_in_order(self, *ranges: tuple[int, int]) -> tuple[bytes, ...]:
        for offset, length in ranges:
            self._check(offset, length)
        return tuple([self.read(offset, length) for offset, length in ranges])

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset > self.size or length > self.size - offset:
            raise ValueError(f"{length} bytes at {offset} lie outside a mapping of {self.size}")

    def gather(self, offsets: Buffer, out: Buffer) -> None:
        wanted = memoryview(offsets)
        if wanted.itemsize not in (4, 8):
            raise TypeError(f"offsets must be integers of 4 or 8 bytes, not {wanted.itemsize}")
        target = memoryview(out).cast("B")
        if target.readonly:
            raise TypeError("the buffer for the values is read-only")
        if len(target) != len(wanted) * WORD:
            raise ValueError(f"{len(wanted)} values need {len(wanted) * WORD} bytes, the buffer has {len(target)}")
        target.cast("q")[:] = self._words(wanted)

    def _words(self, offsets: memoryview) -> memoryview:
        """The words at these offsets, out of one read that spans them all."""
        if self.closed:
            raise ValueError("the mapping is closed")
        values = memoryview(bytearray(len(offsets) * WORD)).cast("q")
        if not len(offsets):
            return values
        first, last = min(offsets), max(offsets)
        if first < 0 or last > self.size - WORD or any(offset % WORD for offset in offsets):
            raise ValueError(f"an offset is not a multiple of 8 or lies outside a mapping of {self.size}")
        words = memoryview(self.read(first, last - first + WORD)).cast("q")
        for index, offset in enumerate(offsets):
            values[index] = words[(offset - first) // WORD]
        return values

    @classmethod
    def gather_all(
        cls, jobs: Sequence[tuple[Mapping, Buffer]], out: Buffer, watched: Buffer = b"", seen: Buffer | None = None
    ) -> list[int]:
        left = [memoryview(buffer).cast("B") for buffer in (out, bytearray() if seen is None else seen)]
        if any(each.readonly for each in left):
            raise TypeError("the buffer for the values is read-only")
        lost: list[int] = []
        for index, (mapping, offsets) in enumerate(jobs):
            targets = []
            for number, wanted in enumerate((offsets, watched)):
                size = len(memoryview(wanted)) * WORD
                if size > len(left[number]):
                    raise ValueError("the buffer is too small for these values")
                targets.append((wanted, left[number][:size]))
                left[number] = left[number][size:]
            try:
                for wanted, target in targets if watched else targets[:1]:
                    mapping.gather(wanted, target)
            except OSError:
                lost.append(index)
                for _, target in targets:
                    target[:] = bytes(len(target))
        for each in left:
            if each:
                raise ValueError(f"the buffer has room for {len(each) // WORD} more values than there are")
        return lost

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()
