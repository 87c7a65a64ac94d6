"""GC.heap_dump: every object, in the HPROF format that heap analysers for the JVM read.

The file appears under its name when it is whole. The program stands still while its objects are written, and goes on
while they are compressed.
"""

from __future__ import annotations

import gc
import os
import time

from vmscope import native
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.commands.reply import Reply
from vmscope.drafts import Draft
from vmscope.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from vmscope.commands.registry import Output

LEAST, MOST = 1 << 14, 1 << 20  # bytes that are compressed in one step,
STEP = 0.02  # seconds that it takes
TELL = 1.0  # seconds between lines of progress


def run(
    out: Output, filename: str, all: bool, gz: int | None, overwrite: bool, parallel: int
) -> Generator[None, None, None]:
    if gz is not None and not 1 <= gz <= 9:
        raise CommandError(f"Compression level out of range (1-9): {gz}")
    begin = time.monotonic()
    try:
        draft = Draft(filename, overwrite)
    except OSError as error:
        raise CommandError(f"Unable to create {filename}: {error.strerror}") from error
    try:
        if not all:
            gc.collect()
        size = yield from fill(out, draft.fd, filename, gz)
        draft.publish()
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise CommandError(f"Unable to write {filename}: {error.strerror}; nothing is left of it") from error
    finally:
        draft.close()
    out.write(f"Heap dump file created [{size} bytes in {time.monotonic() - begin:.3f} secs]\n")


def fill(out: Output, fd: int, filename: str, gz: int | None) -> Generator[None, None, int]:
    """Writes the file; its size."""
    begin = time.monotonic()
    message = f"Dumping heap to {filename} ..."
    progress_to = out.progress_to if isinstance(out, Reply) else None
    if progress_to is not None:
        tell(out, message)
    objects, size = native.dump_heap(fd, progress_to)
    if progress_to is None:  # with it goes the status, which is known now
        out.write(f"{message}\n")
    if gz is None:
        return size
    tell(out, f"{objects} objects, {size} bytes in {time.monotonic() - begin:.3f} secs; compressing ...")
    return (yield from compress(out, fd, gz, size))


def tell(out: Output, text: str) -> None:
    """How far it is."""
    if isinstance(out, Reply):
        out.progress(text)
    else:
        out.write(f"{text}\n")
        out.flush()


def compress(out: Output, fd: int, level: int, size: int) -> Generator[None, None, int]:
    """In place, behind what has been read of it, and so in no more room; its size then.

    A step takes about 20 ms: so a fork hardly waits, and not much less, as each has to wait for the GIL.
    """
    import zlib

    packer = zlib.compressobj(level, zlib.DEFLATED, 31)  # 31: with gzip's header
    packed = bytearray()  # what is not written yet: what cannot be compressed gets longer
    done = written = 0
    piece = LEAST
    shown, share = time.monotonic(), 0
    while chunk := os.pread(fd, piece, done):
        begin = time.monotonic()
        done += len(chunk)
        packed += packer.compress(chunk)
        count = write(fd, packed[: done - written], written)
        written += count
        del packed[:count]
        now = time.monotonic()
        if now - begin > STEP:
            piece = max(piece // 2, LEAST)
        elif now - begin < STEP / 2:
            piece = min(piece * 2, MOST)
        if now - shown > TELL and done * 100 // size >= share + 5:
            shown, share = now, done * 100 // size
            tell(out, f"{share}%")
        yield
    packed += packer.flush()
    written += write(fd, packed, written)
    os.ftruncate(fd, written)
    return written


def write(fd: int, data: bytearray, offset: int) -> int:
    """All of it; how much that is."""
    left = memoryview(data)
    while left:
        count = os.pwrite(fd, left, offset)
        left, offset = left[count:], offset + count
    return len(data)


COMMANDS = (
    Command(
        "GC.heap_dump",
        "Every object, with its attributes and elements, as a file in the HPROF format.",
        run,
        impact="High: the program stands still meanwhile, some half a second for a million objects.",
        arguments=(
            Argument("filename", "The file; %p in it is the pid.", "FILE", mandatory=True),
            Argument(
                "-all", "Without a collection before, which ends what is unreachable.", "BOOLEAN", default="false"
            ),
            Argument("-gz", "Compress it, with gzip's level 1 (the fastest) to 9.", "INT"),
            Argument("-overwrite", "Replace a file that is there already.", "BOOLEAN", default="false"),
            Argument("-parallel", "Threads to write with: one does, whatever is asked for.", "INT", default="1"),
        ),
    ),
)
