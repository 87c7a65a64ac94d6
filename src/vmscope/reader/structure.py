"""The entries of a region, and where their values stand: parsed once, from a copy, and then only added to."""

from __future__ import annotations

import sys
from struct import pack, unpack

from vmscope import native
from vmscope.errors import FormatError
from vmscope.wire import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from vmscope.wire.decode import Prologue

    # offset, name, data_type, units, variability, flags, vector_length, data_offset
    Row = tuple[int, str, int, int, int, int, int, int]

CLOCK = "sun.os.hrt.ticks"  # odd while a writer of vmscope's replaces texts
OURS = "vmscope.version"  # every such writer has it
PROLOGUE_SIZE = 32
ZERO_LENGTH = 4  # bytes, which end the entries
LONG = ord("J")
_CONSTANT = 1
_BIG = sys.byteorder == "big"


class Structure:
    """The entries of a region, and where their values stand. It only grows.

    `settled` is False when no copy of the structure could be checked, because the owner was adding entries
    all the time: then the last entries are missing, and no other. `extent` is how much of the region they need.
    """

    __slots__ = (
        "clock",
        "constants",
        "extent",
        "head",
        "names",
        "next_offset",
        "numbers",
        "offsets",
        "plain",
        "prologue",
        "retries",
        "rows",
        "settled",
        "texts",
    )

    def __init__(self, copy: Copy, *, retries: int, settled: bool) -> None:
        self.prologue = copy.prologue
        self.head = copy.data[:PROLOGUE_SIZE]
        self.retries = retries
        self.settled = settled
        self.rows: list[Row] = []
        self.names: list[str] = []  # of the numbers, in the order of `offsets`
        self.offsets = words("i", [])
        self.texts: list[tuple[str, int, int]] = []  # name, offset, length of those that can change
        self.constants: dict[str, int | str] = {}  # the texts that cannot
        self.clock = 0  # where the clock is that says whether texts are whole; 0: nowhere
        self.plain = True  # False: names that occur twice, or numbers that no word holds
        self.extend(copy)

    def extend(self, copy: Copy) -> None:
        """Takes in the rows of a copy, which follow those that are known."""
        offsets, names = self.offsets.tolist(), list(self.names)  # new ones: they may be shared
        for _, name, data_type, _, variability, _, length, start in copy.rows:
            if data_type == LONG:
                names.append(name)
                offsets.append(start)
                self.plain = self.plain and start % 8 == 0
                if name == CLOCK:
                    self.clock = start
            elif variability == _CONSTANT and (text := text_of(copy.data[start : start + length])):
                self.constants[name] = text
            else:  # an empty constant too: HotSpot writes the text after the entry
                self.texts.append((name, start, length))
        self.rows = [*self.rows, *copy.rows]
        self.names = names
        self.extent = len(copy.data)
        self.prologue = copy.prologue
        self.head = copy.data[:PROLOGUE_SIZE]
        self.next_offset = copy.next_offset
        self.offsets = words("i", offsets)
        self.numbers = words("q", [0] * len(offsets))
        count = len(self.names) + len(self.texts) + len(self.constants)
        known = {*self.names, *self.constants, *(name for name, _, _ in self.texts)}
        self.plain = self.plain and len(known) == count == len(self.rows)
        if OURS not in known:
            self.clock = 0

    def share(self, other: Structure) -> None:
        """Keeps the other's entries, where they are the same: VMs of one program have one layout."""
        if self.rows is not other.rows and self.rows == other.rows:
            self.rows, self.names, self.offsets = other.rows, other.names, other.offsets


class Copy:
    """A copy of a region's first bytes, and the entries in it; where `error` says why, there are none."""

    __slots__ = ("data", "error", "next_offset", "prologue", "rows")

    def __init__(self, data: bytes, start: int) -> None:
        self.data = data
        self.prologue = decode.prologue(data)
        self.rows: list[Row] = []
        self.next_offset = 0
        self.error: FormatError | None = None
        try:
            if self.prologue.major == 1:
                from vmscope.wire import version1

                self.rows, self.next_offset = version1.scan(data, self.prologue.big)
            else:
                self.rows, self.next_offset = native.scan(data, start or self.prologue.entry_offset, self.prologue.big)
        except FormatError as error:
            self.error = error

    @property
    def ended(self) -> bool:
        """Whether something in it ends the entries, and not where it ends itself."""
        return self.error is None and self.next_offset + ZERO_LENGTH <= len(self.data)

    def has_all(self, head: Prologue, known: int = 0) -> bool:
        """Whether it holds as many entries as the prologue had said; `known` came before it."""
        return self.error is None and known + len(self.rows) >= head.num_entries


def words(code: Literal["i", "q"], numbers: list[int]) -> memoryview:
    """A writable row of int32 ("i") or int64 ("q"). Not an array.array: that module imports collections."""
    return memoryview(bytearray(pack(f"={len(numbers)}{code}", *numbers))).cast(code)


def swap(numbers: memoryview) -> None:
    """Turns a row of int64 into the other byte order."""
    for index, number in enumerate(unpack(f"{'<' if _BIG else '>'}{len(numbers)}q", numbers)):
        numbers[index] = number


def text_of(raw: bytes) -> str:
    return "" if len(raw) <= 1 else native.decode_text(raw.partition(b"\0")[0])
