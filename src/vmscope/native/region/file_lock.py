"""The twin of file_lock.c: `lock_file`, and `lock_mapping`, a mapping that keeps a file open, and its flock held.

Other than the extension's it is inherited by a forked child until the child closes it, and before
Python 3.13 it keeps a descriptor (close-on-exec).
"""

from __future__ import annotations

import fcntl
import mmap
import sys

__all__ = ["lock_file", "lock_mapping"]


def lock_file(fd: int, /) -> None:
    """Takes the file's flock, exclusive, at once: BlockingIOError where another has it."""
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_mapping(fd: int, length: int, /) -> mmap.mmap:
    """Maps `length` bytes of `fd` for reading; the descriptor may be closed. `close()` gives the lock back."""
    # Not MADV_DONTFORK: the child's object would one day unmap whatever has come to stand at that address.
    if sys.version_info >= (3, 13):
        return mmap.mmap(fd, length, mmap.MAP_SHARED, mmap.PROT_READ, trackfd=False)
    return mmap.mmap(fd, length, mmap.MAP_SHARED, mmap.PROT_READ)
