"""The twin of protocol.c: the framing of the attach protocol, on bytes that anybody may have sent."""

from __future__ import annotations

__all__ = ["frame"]

INCOMPLETE, WHOLE, BAD_VERSION, MALFORMED = range(4)

_VERSION_DIGITS = 8
_LENGTH_DIGITS = 8
_STRINGS_1 = 4
_MAX_1 = 16 << 10
_MAX_2 = 256 << 10


def frame(data: bytes, /) -> tuple[int, int, int, int]:
    """What the first bytes of a connection are: 0 too few, 1 a request, 2 of an unknown version, 3 malformed.

    Then, of a request, its version, and where its strings, each with its NUL, begin and end.
    """
    nul = data.find(0)
    if nul < 0:
        return (INCOMPLETE if len(data) <= _VERSION_DIGITS else BAD_VERSION, 0, 0, 0)
    if data[:nul] == b"1":
        return _frame_1(data, nul + 1)
    return _frame_2(data, nul + 1) if data[:nul] == b"2" else (BAD_VERSION, 0, 0, 0)


def _frame_1(data: bytes, begin: int) -> tuple[int, int, int, int]:
    end = begin
    for _ in range(_STRINGS_1):
        nul = data.find(0, end)
        if nul < 0:
            return (INCOMPLETE if len(data) < _MAX_1 else MALFORMED, 0, 0, 0)
        end = nul + 1
    return (WHOLE, 1, begin, end) if end <= _MAX_1 else (MALFORMED, 0, 0, 0)


def _frame_2(data: bytes, begin: int) -> tuple[int, int, int, int]:
    nul = begin
    while nul < len(data) and data[nul] in b"0123456789" and nul - begin < _LENGTH_DIGITS:
        nul += 1
    if nul == len(data):
        return (INCOMPLETE, 0, 0, 0)
    size = int(data[begin:nul] or b"0")
    if data[nul] != 0 or not 0 < size <= _MAX_2:
        return (MALFORMED, 0, 0, 0)
    end = nul + 1 + size
    if len(data) < end:
        return (INCOMPLETE, 0, 0, 0)
    return (WHOLE, 2, nul + 1, end) if data[end - 1] == 0 else (MALFORMED, 0, 0, 0)
