"""The Python twin of mirror.c: the same thread, with the GIL."""

from __future__ import annotations

import errno
import mmap
import os
import sys
from _thread import RLock
from struct import Struct
from time import monotonic_ns

from vmscope.native.counters.histogram import HistogramSlot
from vmscope.native.counters.slots import LongSlot, TextSlot
from vmscope.native.region.save import save
from vmscope.native.threads.thread import STOP, Thread, resume

if sys.platform != "win32":
    from vmscope.native.region.file_lock import lock_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Slot = LongSlot | TextSlot | HistogramSlot
    Binding = tuple[Slot, int, int]

__all__ = ["Mirror"]

_PROLOGUE = 32
_LONG = Struct("=q")
_FIELDS = Struct("=iiqii")  # from used to num_entries
_USED, _ENTRY_OFFSET = 8, 32
_IDLE_INTERVAL = 500_000_000  # ns
_HEADER = Struct("=iiicBBBi")
_FILLER_LEAST, _MAX_GROWTHS, _PAGE = 40, 99, 4096  # as in mirror.c


class Mirror(Thread):
    """A region's image, and the thread that keeps it and its file current."""

    _kind = "mirror"

    def __init__(self, capacity: int, epoch: int, limit: int = 0) -> None:
        limit = max(limit, capacity)
        if capacity < _PROLOGUE or capacity % 8 or limit % 8 or limit > 0x7FFFFFFF:
            raise ValueError(f"an image is a multiple of 8 bytes, from 32 on, not {capacity}")
        super().__init__()
        self._whole = memoryview(bytearray(limit))  # which the system gives as it is used
        self.image = self._whole[:capacity]
        self._growths = self._extent = 0
        self.visits = self.writes = 0
        self.num_entries = self.overflow = 0
        self._epoch = epoch
        self._lock = RLock()
        self._top = self._published = _PROLOGUE
        self._stamp = 0
        self._bindings: list[tuple[int, tuple[Binding, ...]]] = []
        self._clock: LongSlot | None = None
        self._clock_offset = 0
        self._texts = False  # some were copied into the image since the file was last written
        self._in_file = b""  # the image as the file has it
        self._path: bytes | None = None
        self._identity = (0, 0)
        self._fd = -1
        self._view: memoryview | None = None
        self._direct = False
        self._interval = 0
        self._links = 0  # that the file had when it was opened; a file system may not count them
        self._lost = self._reported = False  # it was removed or cut short; `on_loss` was called
        self._on_loss: Callable[[], object] | None = None

    @property
    def used(self) -> int:
        """Bytes in use, the prologue included; 0 until the first entry."""
        return self._top if self.num_entries else 0

    def append(self, entries: bytes, count: int, bindings: tuple[Binding, ...], /) -> bool:
        """Whole entries, all or none; a binding (slot, cell, offset) says which value stands where in them.

        False if they did not fit and were counted as overflow.
        """
        length = len(entries)
        if length < 8 or length % 8 or count < 1:
            raise ValueError(f"{length} bytes are not {count} whole entries")
        for slot, cell, offset in bindings:
            size, cells, alignment = 8, 1, 8
            if isinstance(slot, TextSlot):
                size, alignment = slot.capacity + 1, 1
            elif isinstance(slot, HistogramSlot | LongSlot):
                cells = len(slot.cells)
            else:
                raise TypeError(f"append() binds slots, not {type(slot).__name__}")
            if not 0 <= cell < cells:
                raise ValueError(f"the slot has no cell {cell}")
            if offset < 4 or offset + size > length or offset % alignment:
                raise ValueError(f"no value of {size} bytes can stand at offset {offset} of entries of {length} bytes")
        stamp = monotonic_ns() - self._epoch
        with self._lock:
            fits = None
            while fits is None:
                fits = self._append(entries, count, bindings, stamp)
        if fits:
            self._kick()
        resume()
        return fits

    def _append(self, entries: bytes, count: int, bindings: tuple[Binding, ...], stamp: int) -> bool | None:
        """Whether they fit; None: a signal handler has added something meanwhile, or the image has grown."""
        image, top, length = self.image, self._top, len(entries)
        capacity = len(image)
        least = 1 if self._direct or capacity == len(self._whole) else _FILLER_LEAST
        fits = length + least <= capacity - top
        if not fits and self._grow(length):
            return None
        # Nothing is called until the entries stand: no signal handler runs in between, and no other thread.
        if self._top != top or self.image is not image:
            return None
        if not fits:
            self.overflow += length
            return False
        end = top + length
        self._top = end
        image[top + 4 : end] = entries[4:]
        image[top : top + 4] = entries[:4]  # the length last: the image may be a file that others read
        self.num_entries += count
        self._stamp = stamp
        self._bindings += [(top, bindings)]  # in place
        return True

    def _grow(self, length: int) -> bool:
        """Makes room for entries of this length; False where that cannot be. See mirror.c."""
        image, top, growths = self.image, self._top, self._growths + 1
        capacity = len(image)
        least = capacity + length + _FILLER_LEAST
        wanted = min(max(capacity * 2, -(-least // _PAGE) * _PAGE), len(self._whole))
        if self._direct or growths > _MAX_GROWTHS or wanted < least or capacity - top < _FILLER_LEAST:
            return False
        name = b"vmscope.fill.%d\0" % growths
        size = capacity - top
        header = _HEADER.pack(size, 20, size - 20 - len(name), b"B", 1, 5, 1, 20 + len(name)) + name
        end, grown = top + len(header), self._whole[:wanted]
        if self._top == top and self.image is image:  # nothing is called from here on
            image[top + 4 : end] = header[4:]
            image[top : top + 4] = header[:4]
            self._top = capacity
            self.num_entries += 1
            self._growths = growths
            self.image = grown
        return True

    def set_clock(self, slot: LongSlot, /) -> None:
        """Makes a bound slot show the ns since the epoch, at each visit."""
        if not isinstance(slot, LongSlot):
            raise TypeError(f"the clock is a LongSlot, not {type(slot).__name__}")
        offsets = [start + offset for start, bindings in self._bindings for one, _, offset in bindings if one is slot]
        if not offsets:
            raise ValueError("the clock is a slot that has an entry")
        self._clock_offset = offsets[0]
        self._clock = slot

    def refresh(self) -> None:
        """Copies the slots into the image now."""
        self._refresh()
        resume()

    def copy(self) -> tuple[bytes, int]:
        """The image with whole entries only, and how many bytes of it are in use."""
        with self._lock:
            return bytes(self.image), self._top

    def set_file(self, path: bytes, device: int, inode: int, used: int, size: int = 0, /) -> None:
        """The file of `size` bytes that the thread will write; it holds the image's first `used` bytes."""
        self._extent = size or len(self.image)
        self._path = path
        self._identity = (device, inode)
        self._published = max(used, _PROLOGUE)
        self._lost = self._reported = False

    def write_file(self) -> None:
        """Brings the file up to date, where that is still that file."""
        if self._path is None or self._direct:
            return
        self._refresh()
        fd = os.open(self._path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(fd)
            if (found.st_dev, found.st_ino) == self._identity and found.st_size >= self.used:
                _write_range(fd, self.image[: self.used], 0)
        finally:
            os.close(fd)

    def unlink_file(self) -> None:
        """Takes the name of the file away, where it still is that file."""
        if self._path is not None:
            found = os.lstat(self._path)
            if (found.st_dev, found.st_ino) == self._identity:
                os.unlink(self._path)

    def set_view(self, view: memoryview, used: int, /) -> None:
        """In place of `set_file` where the file is written through a mapping of it, as on Windows."""
        self._view = view
        self._published = max(used, _PROLOGUE)

    def map_file(self) -> None:
        """Makes the file itself the image, before start(). OSError where that cannot be."""
        if self._view is not None:
            with self._lock:
                self._view[_PROLOGUE : self._top] = self.image[_PROLOGUE : self._top]
                self.image = self._view
            self._direct = True
            return
        if self._path is None:
            raise RuntimeError("there is no file")
        fd = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # not the one with the lock
        try:
            self._check(os.fstat(fd))
            with self._lock:
                os.ftruncate(fd, len(self.image))
                _write_range(fd, self.image[_PROLOGUE : self._top], _PROLOGUE)  # what was added since it was made
                self.image = memoryview(mmap.mmap(fd, len(self.image)))
            self._direct = True
        finally:
            os.close(fd)

    def start(self, interval: int, on_loss: Callable[[], object] | None = None, /) -> None:
        """Starts the thread, which makes a visit every `interval` ns. OSError where it cannot be started.

        It calls `on_loss`, once, when the file has been removed or cut short.
        """
        if interval <= 0:
            raise ValueError("the interval is more than 0 ns")
        self._interval = interval
        self._on_loss = on_loss
        self._activate()

    def stop(self, timeout: int, /) -> bool:
        """A last copy, then the end; False if it did not end in time."""
        return self._deactivate(timeout)

    def save(self, path: bytes, /) -> None:
        """Writes the whole image, brought up to date, to a file (OSError)."""
        self._refresh()
        save(self.image, path)

    # -- the thread

    def _run(self) -> None:
        try:
            self._open_file()
            pause = self._interval
            while True:
                pause = self._interval if self._carry() else min(pause * 2, max(self._interval, _IDLE_INTERVAL))
                if self._lost and not self._reported and self._on_loss is not None:
                    self._reported = True
                    self._tell(self._on_loss)
                order = self._wait(pause)
                if order == STOP:
                    self._carry()
                if order and self._stopping:
                    return
        finally:
            self._close_file()

    def _close_file(self) -> None:
        """Leaves what the program has under the descriptor's number by now, having closed it."""
        fd, self._fd = self._fd, -1
        try:
            status = os.fstat(fd)
            if (status.st_dev, status.st_ino) == self._identity:
                os.close(fd)
        except OSError:
            pass

    def _tell(self, on_loss: Callable[[], object]) -> None:
        try:
            on_loss()
        except Exception:
            pass  # a host is never troubled

    def _refresh(self) -> bool:
        changed = False
        clock, image = self._clock, self.image
        if clock is not None:
            clock._restore((monotonic_ns() - self._epoch) & ~1)
        self._show_clock(1)
        with self._lock:
            fields = _FIELDS.pack(self.used, self.overflow, self._stamp, _ENTRY_OFFSET, self.num_entries)
            image[_USED : _USED + len(fields)] = fields  # one memcpy: a reader never sees pack_into's zeros
        everything, image = self._bindings, self.image  # in this order: it may grow
        for start, bindings in everything:
            for slot, cell, offset in bindings:
                if slot is clock:
                    continue
                encoded = _encoded(slot, cell)
                target = image[start + offset : start + offset + len(encoded)]
                if target != encoded:
                    target[:] = encoded
                    changed = True
                    self._texts |= isinstance(slot, TextSlot)
        self._show_clock(0)
        return changed

    def _show_clock(self, replacing: int) -> bytes:
        """The clock in the image, and its bytes. Its lowest bit is set while texts are being replaced."""
        if self._clock is None:
            return b""
        encoded = _LONG.pack(self._clock.value | replacing)
        self.image[self._clock_offset : self._clock_offset + 8] = encoded
        return encoded

    def _carry(self) -> bool:
        changed = False
        try:
            if self._direct:
                self._check_open()  # a store beyond the end of a mapped file would end the process
                changed = self._refresh()
            else:
                changed = self._refresh()
                self._write_file()
        except OSError as error:
            self.error = error.errno or errno.EIO
        self.writes += (self._fd >= 0 or self._view is not None) and not self._direct
        self.visits += 1
        return changed

    def _open_file(self) -> None:
        self.error = 0  # that of the last start, or of the last run
        if self._path is None or sys.platform == "win32":
            return
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            self.error = error.errno or errno.EIO
            self._lost = self.error == errno.ENOENT
            return
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != self._identity:
            self.error = errno.ESTALE
            self._lost = True
            os.close(fd)
            return
        self._links = status.st_nlink
        # Some file systems count no links. On others it went since it was opened.
        self._lost = status.st_nlink == 0 and not os.path.lexists(self._path)
        try:
            lock_file(fd)
        except OSError:  # a mapping holds the lock; on overlayfs, which maps the file below, none can
            pass
        self._fd = fd
        self._in_file = b""

    def _check(self, status: os.stat_result) -> None:
        """OSError where that is not the file, or not all of it, or it has no name."""
        if (status.st_dev, status.st_ino) != self._identity:
            self._fd = -1  # the program closed the descriptor, and its number is another file's
            raise OSError(errno.ESTALE, "the file's descriptor was closed")
        if self._links and not status.st_nlink:
            raise OSError(errno.ENOENT, "the file was removed")
        if status.st_size < self._extent:
            raise OSError(errno.EIO, "the file was cut short")

    def _check_open(self) -> None:
        if self._fd >= 0:
            try:
                self._check(os.fstat(self._fd))
            except OSError:
                self._lost = True
                raise

    def _write_file(self) -> None:
        if self._fd < 0 and self._view is None:
            return
        self._check_open()
        used, published = max(_FIELDS.unpack_from(self.image, _USED)[0], _PROLOGUE), self._published
        with self._lock:
            capacity = len(self.image)
        if capacity > self._extent and self._fd >= 0:
            os.ftruncate(self._fd, capacity)
            self._extent = capacity
        image = bytes(self.image[:used])
        if image == self._in_file:
            return
        if self._texts:
            self._write(self._show_clock(1), self._clock_offset)
            self._write(self.image[_PROLOGUE:published], _PROLOGUE)
            self._write(self._show_clock(0), self._clock_offset)
            self._texts = False
        else:
            self._write(image[_PROLOGUE:published], _PROLOGUE)
        if used > published:
            self._write(image[published + 4 :], published + 4)
            self._write(image[published : published + 4], published)
            self._published = used
        self._write(image[:_PROLOGUE], 0)
        self._in_file = image

    def _write(self, data: bytes | memoryview, offset: int) -> None:
        if self._view is not None:
            self._view[offset : offset + len(data)] = data
        else:
            _write_range(self._fd, data, offset)


def _encoded(slot: Slot, cell: int) -> bytes:
    if isinstance(slot, TextSlot):
        return slot.value.encode().ljust(slot.capacity, b"\0")
    return _LONG.pack(slot.cells[cell])


def _write_range(fd: int, data: bytes | memoryview, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view = view[written:]
        offset += written
