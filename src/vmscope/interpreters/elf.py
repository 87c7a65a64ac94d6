"""Where a loaded program or library has its symbols: looked up in its own memory, as the dynamic linker does it.

The file itself is not opened: it may be gone, or stand in a container, or on a file system that never answers. What
stands in memory may be wrong, so all of it is checked and each loop has a bound.
"""

from __future__ import annotations

import struct

from vmscope.interpreters.memory import Memory, Unreadable

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_LOAD, _DYNAMIC = 1, 2
_HASH, _STRTAB, _SYMTAB, _STRSZ, _GNU_HASH = 4, 5, 6, 10, 0x6FFFFEF5
_SYMBOL = 24  # bytes
_MOST_SEGMENTS = 128
_MOST_TAGS = 512
_MOST_STEPS = 4096  # of a chain
_LONGEST_NAME = 64


class Image:
    """What is loaded at an address. Raises Unreadable where that is not an ELF image of this machine."""

    def __init__(self, memory: Memory, base: int) -> None:
        self._memory = memory
        header = memory.read(base, 64)
        if header[:6] != _MAGIC:
            raise Unreadable(base)
        offset = int.from_bytes(header[32:40], "little")
        size, count = struct.unpack_from("<HH", header, 54)
        if size != 56 or not 0 < count <= _MOST_SEGMENTS or offset > 1 << 20:
            raise Unreadable(base)
        self._bias: int | None = None
        dynamic = 0
        for number in range(count):
            kind, _, place, address = struct.unpack_from("<IIQQ", memory.read(base + offset + number * size, size))
            if kind == _LOAD and self._bias is None:
                self._bias = base - (address - place)
            elif kind == _DYNAMIC:
                dynamic = address
        if self._bias is None or not dynamic:
            raise Unreadable(base)
        self._tags: dict[int, int] = {}
        for number in range(_MOST_TAGS):
            tag, value = memory.words(self._bias + dynamic + number * 16, 2)
            if not tag:
                break
            self._tags.setdefault(tag, value)

    def _place(self, tag: int) -> int:
        """glibc has put addresses there, musl has left offsets."""
        value = self._tags.get(tag, 0)
        assert self._bias is not None
        return value + self._bias if value and value < self._bias else value

    def symbol(self, name: str) -> int:
        """The address of what is exported under this name; 0 where there is nothing. Raises Unreadable."""
        if not (self._place(_SYMTAB) and self._place(_STRTAB)):
            return 0
        wanted = name.encode() + b"\0"
        found = self._gnu(wanted) if self._tags.get(_GNU_HASH) else self._sysv(wanted)
        assert self._bias is not None
        return found + self._bias if found else 0

    def _value(self, number: int, wanted: bytes) -> int:
        """Of this symbol, where it has the name and is defined."""
        symbol = self._memory.read(self._place(_SYMTAB) + number * _SYMBOL, _SYMBOL)
        text, _, _, section, value, _ = struct.unpack("<IBBHQQ", symbol)
        if not section or text + len(wanted) > self._tags.get(_STRSZ, 0):
            return 0
        return value if self._memory.read(self._place(_STRTAB) + text, len(wanted)) == wanted else 0

    def _gnu(self, wanted: bytes) -> int:
        table = self._place(_GNU_HASH)
        buckets, first, words, _ = struct.unpack("<4I", self._memory.read(table, 16))
        if not buckets:
            return 0
        wanted_hash = 5381
        for byte in wanted[:-1]:
            wanted_hash = (wanted_hash * 33 + byte) & 0xFFFFFFFF
        start = table + 16 + words * 8
        number = int.from_bytes(self._memory.read(start + wanted_hash % buckets * 4, 4), "little")
        for _ in range(_MOST_STEPS):
            if number < first:
                return 0
            found = int.from_bytes(self._memory.read(start + (buckets + number - first) * 4, 4), "little")
            if found | 1 == wanted_hash | 1 and (value := self._value(number, wanted)):
                return value
            if found & 1:
                return 0
            number += 1
        return 0

    def _sysv(self, wanted: bytes) -> int:
        table = self._place(_HASH)
        if not table:
            return 0
        buckets, _ = struct.unpack("<2I", self._memory.read(table, 8))
        if not buckets:
            return 0
        wanted_hash = 0
        for byte in wanted[:-1]:
            wanted_hash = (wanted_hash << 4) + byte
            high = wanted_hash & 0xF0000000
            wanted_hash = (wanted_hash ^ high >> 24) & ~high & 0xFFFFFFFF
        number = int.from_bytes(self._memory.read(table + 8 + wanted_hash % buckets * 4, 4), "little")
        for _ in range(_MOST_STEPS):
            if not number:
                return 0
            if value := self._value(number, wanted):
                return value
            number = int.from_bytes(self._memory.read(table + 8 + (buckets + number) * 4, 4), "little")
        return 0
