"""GC.heap_dump: every object, in the HPROF format that heap analysers for the JVM read.

The file appears under its name when it is whole. The program stands still while its objects are written, and goes on
while they are compressed, which needs room for both.
"""

from __future__ import annotations

import gc
import os
import stat
import time

from vmscope import native
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output

CHUNK = 1 << 20
TELL = 1.0  # seconds between what the client is told
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def run(out: Output, filename: str, all: bool, gz: int | None, overwrite: bool, parallel: int) -> None:
    if gz is not None and not 1 <= gz <= 9:
        raise CommandError(f"Compression level out of range (1-9): {gz}")
    refuse(filename, overwrite)
    begin = time.monotonic()
    temporary = beside(filename)
    try:
        fd = create(temporary)
    except OSError as error:
        raise CommandError(f"Unable to create {filename}: {error.strerror}") from error
    try:
        try:
            if not all:
                gc.collect()
            size = fill(out, fd, filename, temporary, gz)
        finally:
            os.close(fd)
        publish(temporary, filename, overwrite)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"Unable to write {filename}: {error.strerror}; nothing is left of it") from error
    finally:
        remove(temporary)
    out.write(f"Heap dump file created [{size} bytes in {time.monotonic() - begin:.3f} secs]\n")


def fill(out: Output, fd: int, filename: str, temporary: str, gz: int | None) -> int:
    """Writes the file; its size. Nothing is sent before the objects are written: with it goes a success's status."""
    begin = time.monotonic()
    objects, size = native.dump_heap(fd)
    out.write(f"Dumping heap to {filename} ...\n")
    if gz is None:
        return size
    out.write(f"{objects} objects, {size} bytes in {time.monotonic() - begin:.3f} secs; compressing ...\n")
    out.flush()
    os.unlink(temporary)
    packed = create(temporary)
    try:
        compress(out, fd, packed, gz, size)
        return os.lseek(packed, 0, os.SEEK_CUR)
    finally:
        os.close(packed)


def refuse(filename: str, overwrite: bool) -> None:
    """CommandError for a name that is not free, or, with `overwrite`, not a file's."""
    try:
        found = os.lstat(filename)
    except OSError:
        return
    if not overwrite:
        raise CommandError(f"Unable to create {filename}: File exists; -overwrite replaces it")
    if not stat.S_ISREG(found.st_mode):
        raise CommandError(f"Unable to create {filename}: it is no file, and -overwrite replaces nothing else")


def beside(filename: str) -> str:
    """Under which name a file is written until it is whole."""
    return f"{filename}.{os.urandom(8).hex()}.partial"


def create(temporary: str) -> int:
    fd = os.open(temporary, NEW, 0o600)
    os.fchmod(fd, 0o600)  # whatever the umask
    return fd


def compress(out: Output, fd: int, packed: int, level: int, size: int) -> None:
    import zlib

    packer = zlib.compressobj(level, zlib.DEFLATED, 31)  # 31: with gzip's header
    done, told = 0, time.monotonic()
    os.lseek(fd, 0, os.SEEK_SET)
    while chunk := os.read(fd, CHUNK):
        write(packed, packer.compress(chunk))
        done += len(chunk)
        if time.monotonic() - told > TELL:
            told = time.monotonic()
            out.write(f"{done * 100 // size}%\n")
            out.flush()
    write(packed, packer.flush())


def write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def publish(temporary: str, filename: str, overwrite: bool) -> None:
    """Gives the whole file its name, which never takes another's away unless that was asked for."""
    if overwrite:
        os.replace(temporary, filename)
        return
    try:
        os.link(temporary, filename)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        refuse(filename, False)
        os.rename(temporary, filename)
    else:
        os.unlink(temporary)


def remove(temporary: str) -> None:
    try:
        os.unlink(temporary)
    except OSError:  # it has its name, or never had one
        pass


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
