"""Flight recordings as files: of vmscope and of JVMs from 9 on."""

from __future__ import annotations

import os
import stat

from vmscope.errors import RecordingFormatError
from vmscope.flight.convert.chunk import HEADER, Chunk, Header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vmscope.flight.convert.chunk import Event


def chunks(path: str) -> Iterator[Chunk]:
    """The chunks of a file, one at a time in memory. Raises RecordingFormatError, OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise RecordingFormatError(f"{path} is not a file", path=path)
        at, end = 0, status.st_size
        while at < end or not at:
            data = file.read(min(HEADER.size, end - at))
            if len(data) < HEADER.size:
                what = "it is empty" if not end else f"{len(data)} bytes follow its last chunk"
                raise RecordingFormatError(f"{path} is not a whole flight recording: {what}", path=path, offset=at)
            try:
                header = Header(data)
                if header.size > end - at:
                    raise ValueError(f"a chunk of {header.size} bytes, where {end - at} are left")
            except ValueError as error:
                raise RecordingFormatError(f"{path} has at byte {at} {error}", path=path, offset=at) from None
            data += file.read(header.size - HEADER.size)
            if len(data) < header.size:
                raise RecordingFormatError(f"{path} became shorter while it was read", path=path, offset=at)
            yield Chunk(path, at, header, data)
            at += header.size


def events(path: str, *names: str) -> Iterator[Event]:
    """The events of these types, of all without a name, in the file's order. Raises RecordingFormatError, OSError."""
    wanted = frozenset(names)
    is_wanted: Callable[[str], bool] = wanted.__contains__ if wanted else lambda name: True
    for chunk in chunks(path):
        yield from chunk.events(is_wanted)
