"""The few forms of protobuf's wire format that OTLP's metrics need."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_VARINT, _FIXED64, _LENGTH = 0, 1, 2


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def key(field: int, wire: int) -> bytes:
    return varint(field << 3 | wire)


def number(field: int, value: int) -> bytes:
    return key(field, _VARINT) + varint(value)


def boolean(field: int, value: bool) -> bytes:
    return number(field, 1) if value else b""


def fixed(field: int) -> bytes:
    """What stands before 8 bytes."""
    return key(field, _FIXED64)


def message(field: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return head(field, len(body)) + body


def head(field: int, size: int) -> bytes:
    """What stands before a message of this size."""
    return key(field, _LENGTH) + varint(size)


def text(field: int, value: str) -> bytes:
    return message(field, value.encode("utf-8", "backslashreplace"))


def doubles(field: int, values: Iterable[float]) -> bytes:
    found = list(values)
    return message(field, struct.pack(f"<{len(found)}d", *found)) if found else b""
