"""Regions made by hand: every field can be given, right or wrong.

It knows nothing of vmscope's own encoder, so that the tests of one do not rest on the other.
Layouts are those of docs/region-format.md: version 2.0 (32-byte prologue, 20-byte entry header) and
version 1.0 (24 and 16 bytes). `big` is the byte order; int fields wrap to their width.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAGIC = b"\xca\xfe\xc0\xc0"
NONE, BYTES, TICKS, EVENTS, STRING, HERTZ = range(1, 7)
CONSTANT, MONOTONIC, VARIABLE = 1, 2, 3
V1_BYTE, V1_LONG = 8, 11  # version 1.0 has the numbers of the JVM's basic types where 2.0 has letters


def i32(value: int, big: bool = False) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "big" if big else "little")


def i64(value: int, big: bool = False) -> bytes:
    return (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "big" if big else "little")


def header(
    *,
    big: bool = False,
    magic: bytes = MAGIC,
    byte_order: int | None = None,
    major: int = 2,
    minor: int = 0,
    accessible: int = 1,
) -> bytes:
    """The first eight bytes, the same in both versions but for the last, which version 1.0 leaves 0."""
    order = (0 if big else 1) if byte_order is None else byte_order
    return magic + bytes(value & 0xFF for value in (order, major, minor, accessible))


def prologue(
    *,
    big: bool = False,
    magic: bytes = MAGIC,
    byte_order: int | None = None,
    major: int = 2,
    minor: int = 0,
    accessible: int = 1,
    used: int = 32,
    overflow: int = 0,
    mod_time_stamp: int = 0,
    entry_offset: int = 32,
    num_entries: int = 0,
) -> bytes:
    start = header(big=big, magic=magic, byte_order=byte_order, major=major, minor=minor, accessible=accessible)
    return b"".join(
        (
            start,
            i32(used, big),
            i32(overflow, big),
            i64(mod_time_stamp, big),
            i32(entry_offset, big),
            i32(num_entries, big),
        )
    )


def entry(
    name: bytes,
    value: int | bytes,
    *,
    big: bool = False,
    units: int | None = None,
    variability: int = CONSTANT,
    flags: int = 1,
    data_type: int | None = None,
    vector_length: int | None = None,
    name_offset: int = 20,
    data_offset: int | None = None,
    entry_length: int | None = None,
    pad: bytes = b"\0",
) -> bytes:
    """A version 2.0 entry: int value a J scalar, bytes value a B vector of just these bytes.

    The bytes are always laid out as HotSpot does; the fields in the header say so unless given otherwise.
    """
    scalar = isinstance(value, int)
    start = 20 + len(name) + 1
    if scalar:
        start += -start % 8
    data = i64(value, big) if isinstance(value, int) else value
    body = name + b"\0"
    body += pad * (start - 20 - len(body)) + data
    body += pad * (-(20 + len(body)) % 8)
    fields = struct.pack(
        "4B",
        (ord("J" if scalar else "B") if data_type is None else data_type) & 0xFF,
        flags & 0xFF,
        ((NONE if scalar else STRING) if units is None else units) & 0xFF,
        variability & 0xFF,
    )
    return b"".join(
        (
            i32(20 + len(body) if entry_length is None else entry_length, big),
            i32(name_offset, big),
            i32((0 if scalar else len(data)) if vector_length is None else vector_length, big),
            fields,
            i32(start if data_offset is None else data_offset, big),
            body,
        )
    )


def region(entries: list[bytes], *, big: bool = False, size: int = 4096, **fields: int | bytes) -> bytes:
    """A version 2.0 region of `size` bytes; keywords are the prologue's fields."""
    body = b"".join(entries)
    values: dict[str, int | bytes] = {"used": 32 + len(body), "num_entries": len(entries), **fields}
    return (prologue(big=big, **values) + body).ljust(size, b"\0")  # type: ignore[arg-type]


def v1_prologue(
    *,
    big: bool = False,
    magic: bytes = MAGIC,
    byte_order: int | None = None,
    major: int = 1,
    minor: int = 0,
    reserved: int = 0,
    used: int = 24,
    overflow: int = 0,
    mod_time_stamp: int = 0,
) -> bytes:
    start = header(big=big, magic=magic, byte_order=byte_order, major=major, minor=minor, accessible=reserved)
    return start + i32(used, big) + i32(overflow, big) + i64(mod_time_stamp, big)


def v1_entry(
    name: bytes,
    value: int | bytes,
    *,
    big: bool = False,
    units: int | None = None,
    variability: int = CONSTANT,
    flags: int = 1,
    data_type: int | None = None,
    vector_length: int | None = None,
    name_length: int | None = None,
    entry_length: int | None = None,
) -> bytes:
    """A version 1.0 entry: header, name and NUL, then a string at once or a long in the last eight bytes."""
    scalar = isinstance(value, int)
    body = name + b"\0"
    if isinstance(value, int):
        body += b"\0" * (-(16 + len(body)) % 8) + i64(value, big)
    else:
        body += value + b"\0" * (-(16 + len(body) + len(value)) % 8)
    fields = struct.pack(
        "4B",
        ((V1_LONG if scalar else V1_BYTE) if data_type is None else data_type) & 0xFF,
        flags & 0xFF,
        ((NONE if scalar else STRING) if units is None else units) & 0xFF,
        variability & 0xFF,
    )
    data_length = 0 if isinstance(value, int) else len(value)
    return b"".join(
        (
            i32(16 + len(body) if entry_length is None else entry_length, big),
            i32(len(name) + 1 if name_length is None else name_length, big),
            i32(data_length if vector_length is None else vector_length, big),
            fields,
            body,
        )
    )


def v1_region(entries: list[bytes], *, big: bool = False, size: int = 4096, **fields: int | bytes) -> bytes:
    body = b"".join(entries)
    values: dict[str, int | bytes] = {"used": 24 + len(body), **fields}
    return (v1_prologue(big=big, **values) + body).ljust(size, b"\0")  # type: ignore[arg-type]


def walk(data: bytes) -> Iterator[tuple[int, int]]:
    """Offset and length of each entry of a region that is known to be sound, either version."""
    order = ">" if data[4] == 0 else "<"
    offset = 24 if data[5] == 1 else struct.unpack_from(order + "i", data, 24)[0]
    while offset + 4 <= len(data):
        (length,) = struct.unpack_from(order + "i", data, offset)
        if length == 0:
            return
        yield offset, length
        offset += length
