"""The Python twin of hprof.c: a file in the HPROF 1.0.2 format, as it is being written."""

from __future__ import annotations

import os
import time
from struct import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OBJECT, DOUBLE, BYTE, INT, LONG = 2, 7, 8, 10, 11
WIDTHS = {OBJECT: "Q", DOUBLE: "d", BYTE: "b", INT: "i", LONG: "q"}
SIZES = {OBJECT: 8, DOUBLE: 8, BYTE: 1, INT: 4, LONG: 8}
OURS = 1 << 60  # ids of what is in the dump alone
ROOM = 1 << 20
LONGEST = (1 << 32) // 8 - 64


class Hprof:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.written = self.serial = 0
        self.next = OURS
        self.out = bytearray(b"JAVA PROFILE 1.0.2\0" + pack(">IQ", 8, time.time_ns() // 1_000_000))  # whole records
        self.segment = bytearray()
        self.names: dict[str, int] = {}
        self.loads: dict[int, int] = {}  # serial number of each class
        self.array_class = self.new()

    def flush(self) -> None:
        view = memoryview(self.out)
        while view:
            count = os.write(self.fd, view)
            self.written += count
            view = view[count:]
        view.release()
        self.out = bytearray()

    def record(self, tag: int, body: bytes | bytearray) -> None:
        """One at the outermost level; it ends the segment."""
        if self.segment:
            segment, self.segment = self.segment, bytearray()
            self.record(0x1C, segment)
        self.out += pack(">BII", tag, 0, len(body))
        self.out += body
        if len(self.out) > ROOM:
            self.flush()

    def part(self, *parts: bytes | bytearray) -> None:
        """One of a segment."""
        for each in parts:
            self.segment += each
        if len(self.segment) > ROOM:
            segment, self.segment = self.segment, bytearray()
            self.record(0x1C, segment)

    def new(self) -> int:
        self.next += 1
        return self.next

    def name(self, text: str) -> int:
        """Its id; written once."""
        found = self.names.get(text)
        if found is None:
            found = self.names[text] = self.new()
            self.record(0x01, pack(">Q", found) + text.encode("utf-8", "backslashreplace"))
        return found

    def load(self, id: int, name: str) -> int:
        self.serial += 1
        self.loads[id] = self.serial
        self.record(0x02, pack(">IQIQ", self.serial, id, 1, self.name(name)))
        return self.serial

    def describe(
        self,
        id: int,
        base: int,
        size: int,
        statics: Sequence[tuple[int, int, int]],
        fields: Sequence[tuple[str, int, object]],
    ) -> None:
        rows = [pack(">QB", self.name(name), kind) for name, kind, _ in fields]
        self.part(
            pack(">BQI6QIHH", 0x20, id, 1, base, 0, 0, 0, 0, 0, size, 0, len(statics)),
            *(pack(f">QB{WIDTHS[kind]}", name, kind, value) for name, kind, value in statics),
            pack(">H", len(rows)),
            *rows,
        )

    def array(self, id: int, items: Iterable[int]) -> int:
        found = list(items)[:LONGEST]
        if not found:
            return 0
        self.part(pack(">BQIIQ", 0x22, id, 1, len(found), self.array_class), pack(f">{len(found)}Q", *found))
        return id

    def raw(self, id: int, data: bytes | bytearray) -> int:
        self.part(pack(">BQIIB", 0x23, id, 1, len(data), BYTE), data)
        return id
