"""The Python twin of exception_handlers.c, and what a co_exceptiontable says."""

from __future__ import annotations

__all__ = ["handling_frame"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


def handling_frame(frame: FrameType, offset: int, folder: str, /) -> tuple[FrameType | None, int]:
    found: FrameType | None = frame
    while found is not None and not found.f_code.co_filename.startswith(folder):
        if has_handler(found.f_code.co_exceptiontable, offset):
            return found, offset
        found = found.f_back
        offset = found.f_lasti if found is not None else 0
    return None, 0


def has_handler(table: bytes, offset: int) -> bool:
    return any(start <= offset < end for start, end, _ in entries(table))


def entries(table: bytes) -> Iterator[tuple[int, int, int]]:
    """The entries of a co_exceptiontable: groups of four numbers, six bits a byte, the highest first."""
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            numbers.append(value)
            value = 0
    for start, length, target, _ in zip(*[iter(numbers)] * 4, strict=True):
        yield start * 2, (start + length) * 2, target * 2
