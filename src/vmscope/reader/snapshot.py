"""One consistent read of a region that its owner goes on writing.

The structure (which entries there are, and where) is copied and parsed once, checked against the prologue,
and kept. Later reads look at the prologue and the values only, and go on from the saved next entry when
there are more. A number is loaded whole. vmscope's writer tells by its clock when it replaces texts, and they
are read until they are whole; a JVM's text that changes is read until two reads agree, but for the first time.
A set of values is no transaction, and nobody pretends it is.
"""

from __future__ import annotations

import sys
import time
from struct import pack, unpack

from vmscope import native
from vmscope.errors import FormatError, StaleRegion, StructureError
from vmscope.reader.ownership import BEGIN_TIME, START_TICKS
from vmscope.wire import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from vmscope.wire.decode import Prologue

    # offset, name, data_type, units, variability, flags, vector_length, data_offset
    Row = tuple[int, str, int, int, int, int, int, int]

RETRIES = 10  # more copies of the structure, until one was not changed meanwhile
MAX_COPY = 64 << 20  # bytes: no structure needs more

_PAUSES = (0.0, 0.0, 0.0005, 0.001, 0.001, 0.002, 0.002, 0.005, 0.005, 0.01)  # seconds before each retry
_TEXT_READS = 6
_TEXT_PAUSES = (0.0, 0.0, 0.0002, 0.001, 0.002, 0.005)  # seconds after each reading of texts that was in vain
_CLOCK = "sun.os.hrt.ticks"  # odd while a writer of vmscope's replaces texts
_OURS = "vmscope.version"  # every such writer has it
_POLL = 0.02  # seconds between looks at `accessible`
_PROLOGUE_SIZE = 32
_ENTRY_HEADER_SIZE = 20
_NAMESAKES = 8
_LONG = ord("J")
_CONSTANT = 1
_BIG = sys.byteorder == "big"


class Structure:
    """The entries of a region, and where their values stand. It only grows.

    `settled` is False when no copy of the structure could be checked, because the owner was adding entries
    all the time: then the last entries are missing, and no other.
    """

    __slots__ = (
        "clock",
        "constants",
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
        self.head = copy.data[:_PROLOGUE_SIZE]
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
        offsets = self.offsets.tolist()
        for _, name, data_type, _, variability, _, length, start in copy.rows:
            if data_type == _LONG:
                self.names.append(name)
                offsets.append(start)
                self.plain = self.plain and start % 8 == 0
                if name == _CLOCK:
                    self.clock = start
            elif variability == _CONSTANT and (text := _text(copy.data[start : start + length])):
                self.constants[name] = text
            else:  # an empty constant too: HotSpot writes the text after the entry
                self.texts.append((name, start, length))
        self.rows += copy.rows
        self.prologue = copy.prologue
        self.head = copy.data[:_PROLOGUE_SIZE]
        self.next_offset = copy.next_offset
        self.offsets = words("i", offsets)
        self.numbers = words("q", [0] * len(offsets))
        count = len(self.names) + len(self.texts) + len(self.constants)
        names = {*self.names, *self.constants, *(name for name, _, _ in self.texts)}
        self.plain = self.plain and len(names) == count == len(self.rows)
        if _OURS not in names:
            self.clock = 0


class Copy:
    """A copy of a region's used part, and the entries in it; where `error` says why, there are none."""

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

    def has_all(self, head: Prologue, known: int = 0) -> bool:
        """Whether it holds as many entries as the prologue had said; `known` came before it."""
        return self.error is None and known + len(self.rows) >= head.num_entries


class Snapshot:
    """`values` by name, `taken` in ns since the epoch.

    `retries`: how many copies of the structure had to be thrown away. `settled`: see Structure. `accessible`:
    False while the owner is still adding its start-up counters. `whole`: False when the owner, a vmscope, was
    replacing texts at each attempt to read them, so that one may be half another.
    """

    __slots__ = ("accessible", "retries", "settled", "taken", "values", "whole")

    def __init__(self, values: dict[str, int | str], structure: Structure, whole: bool) -> None:
        self.whole = whole
        self.values = values
        self.taken = time.time_ns()
        self.retries = structure.retries
        self.settled = structure.settled
        self.accessible = structure.prologue.accessible != 0


class Reader:
    """Reads one mapped region, again and again.

    Every read raises FormatError for what is no region, and StaleRegion when the file was truncated or holds
    another process's region by now.
    """

    __slots__ = ("_born", "_looks", "_path", "_pid", "_structure", "mapping", "whole")

    def __init__(self, mapping: native.Mapping, path: str, pid: int | None = None) -> None:
        self.mapping = mapping
        self._path = path
        self._pid = pid
        self._structure: Structure | None = None
        self._looks = 2
        self.whole = True
        self._born: tuple[object, object] = (0, 0)

    # -- values

    def snapshot(self) -> Snapshot:
        values = self.values()
        return Snapshot(values, self.structure(), self.whole)

    def values(self) -> dict[str, int | str]:
        """Every value by name, read now; of two entries with one name the last counts."""
        if self._structure is None and self._looks:
            self._looks -= 1  # most regions are read once or twice: a structure is for those that are watched
            values = self._look()
            if values is not None:
                return values
        structure = self.structure()
        if not structure.plain:
            return decode.values(self._read(0, self._whole()))
        self.load(structure)
        values = dict(zip(structure.names, structure.numbers, strict=True))
        values.update(structure.constants)
        raws = self._texts([(start, length) for _, start, length in structure.texts], structure)
        values.update((text[0], _text(raw)) for text, raw in zip(structure.texts, raws, strict=True))
        self._same_owner(structure, values)
        return values

    def _look(self) -> dict[str, int | str] | None:
        """The values straight from one copy, without a structure; None where that copy may not be all."""
        raw = self._head()
        head = self._prologue(raw)
        if head.major != 2 or not _PROLOGUE_SIZE <= head.used <= self._whole() - 4:
            return None
        data = self._read(0, head.used + 4)
        if data[-4:] != b"\0\0\0\0":  # the entries go on behind the used part
            return None
        if clock := _clock_of(data, head.big):
            before = self._read(clock, 8)
            data = self._read(0, head.used + 4)
            if _odd(before, head.big) or self._read(clock, 8) != before:
                return None
        try:
            values = native.read(data, head.entry_offset, head.big)
        except FormatError:
            return None
        if len(values) < head.num_entries or self._head() != raw:
            return None
        self._born = values.get(BEGIN_TIME, 0), values.get(START_TICKS, 0)
        return values

    def some(self, names: tuple[str, ...]) -> dict[str, int | str]:
        """The values of these counters, as far as they are there, read now; much less work than all of them."""
        head = self.prologue()
        if head.major != 2 or not _PROLOGUE_SIZE <= head.used <= self._whole():
            return self.values()
        data = self._read(0, head.used)
        found: dict[str, int | str] = {}
        for name in names:
            end = len(data)
            for _ in range(_NAMESAKES):  # the last of several counts; a text may hold the name too
                end = data.rfind(name.encode() + b"\0", 0, end)
                start = end - _ENTRY_HEADER_SIZE
                if start < head.entry_offset:
                    break
                length = int.from_bytes(data[start : start + 4], "big" if head.big else "little")
                try:
                    entry = native.read(data[start : start + length], 0, head.big)
                except FormatError:
                    continue
                if name in entry:
                    found[name] = entry[name]
                    break
        return found

    def value(self, data_type: int, start: int, length: int) -> int | str:
        """One entry's value, read now."""
        if data_type != _LONG:
            return _text(self._texts([(start, length)], self.structure())[0])
        raw = self._read(start, 8)
        return int.from_bytes(raw, "big" if self.prologue().big else "little", signed=True)

    def load(self, structure: Structure) -> None:
        """Reads the numbers of a plain structure into its `numbers`."""
        try:
            self.mapping.gather(structure.offsets, structure.numbers)
        except OSError:
            raise self._stale("was truncated") from None
        if structure.prologue.big != _BIG:
            swap(structure.numbers)

    def _texts(self, places: list[tuple[int, int]], structure: Structure) -> list[bytes]:
        """The bytes of texts, each (offset, length). `whole` tells afterwards whether they could be had whole."""
        self.whole = True
        if not structure.clock:
            return [self._changing_text(start, length) for start, length in places]
        for pause in _TEXT_PAUSES:
            before = self._read(structure.clock, 8)
            raws = [self._read(start, length) for start, length in places]
            if not _odd(before, structure.prologue.big) and self._read(structure.clock, 8) == before:
                return raws
            time.sleep(pause)
        self.whole = False  # a stuck disk, amid a text
        return raws

    def _changing_text(self, start: int, length: int) -> bytes:
        # Long texts are not written in one go: two reads that agree are one text, as far as can be told.
        raw = self._read(start, length)
        for _ in range(_TEXT_READS):
            again = self._read(start, length)
            if again == raw:
                break
            raw = again
        return raw

    def _same_owner(self, structure: Structure, values: dict[str, int | str]) -> None:
        """The values came from the region that the structure describes: nobody made it anew meanwhile."""
        if self._head() != structure.head:
            now = self.prologue()
            if now.num_entries < structure.prologue.num_entries or now.used < structure.prologue.used:
                raise self._stale("was made anew")
        born = values.get(BEGIN_TIME, 0), values.get(START_TICKS, 0)
        if any(self._born) and born != self._born:
            raise self._stale("was made anew")
        self._born = born

    # -- structure

    def prologue(self) -> Prologue:
        return self._prologue(self._head())

    def _prologue(self, raw: bytes) -> Prologue:
        try:
            return decode.prologue(raw)
        except FormatError as error:
            raise self._named(error) from None

    def wait_accessible(self, seconds: float) -> bool:
        """Whether the owner has added its start-up counters: now, or within so many seconds."""
        end = time.monotonic() + seconds
        while not self.prologue().accessible:
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL, left))
        return True

    def structure(self) -> Structure:
        """The structure as it is now; with what came since the last call."""
        known = self._structure
        if known is None or not known.settled:
            known = self._structure = self._parse()
        elif self._head() != known.head:
            known = self._structure = self._grown(known)
        return known

    def _parse(self) -> Structure:
        """Copies the structure until a copy was complete and not changed meanwhile, RETRIES times more at most."""
        retries = 0
        while True:
            head = self.prologue()
            copy = self._copy(head.used)
            unchanged = _same(head, self.prologue())
            if unchanged and (not copy.has_all(head) or self._goes_on(len(copy.data))):
                copy = self._copy(0)  # all of it, like the JDK's reader, which does not look at `used`
                unchanged = _same(head, self.prologue())
            complete = copy.has_all(head)
            if complete and unchanged:
                return Structure(copy, retries=retries, settled=True)
            if retries == RETRIES:
                if copy.error is not None:
                    raise self._named(copy.error)
                # Nothing moves: then this is all there is, whatever the prologue counts. Or the owner adds
                # without pause: then what it had added before the copy is all here.
                if unchanged or complete:
                    return Structure(copy, retries=retries, settled=unchanged)
                raise self._named(StructureError(f"the region changed in each of {RETRIES} copies: {self._path}"))
            time.sleep(_PAUSES[retries])
            retries += 1

    def _copy(self, used: int, start: int = 0) -> Copy:
        """The first `used` bytes, or all where that is no sensible number."""
        whole = self._whole()
        data = self._read(0, used if _PROLOGUE_SIZE <= used <= whole else whole)
        try:
            return Copy(data, start)
        except FormatError as error:
            raise self._named(error) from None

    def _grown(self, known: Structure) -> Structure:
        """The structure after the prologue has changed."""
        head = self.prologue()
        if head.num_entries < known.prologue.num_entries or head.used < known.prologue.used:
            raise self._stale("was made anew")
        if head.major != 2 or not known.rows or not _PROLOGUE_SIZE <= head.used <= self._whole():
            return self._parse()
        last = known.rows[-1]
        copy = self._copy(max(head.used, known.next_offset), last[0])
        if copy.error is not None:
            return self._parse()
        if copy.rows[:1] != [last]:
            raise self._stale("was made anew")
        del copy.rows[:1]
        if not copy.has_all(head, len(known.rows)) or not _same(head, self.prologue()):
            return self._parse()
        known.extend(copy)
        return known

    def _goes_on(self, end: int) -> bool:
        """Whether something stands behind the used part, where a zero length or nothing should end it."""
        left = min(self._whole() - end, 4)
        return left > 0 and (left < 4 or any(self._read(end, 4)))

    def _whole(self) -> int:
        return min(self.mapping.size, MAX_COPY)

    # -- bytes and errors

    def _head(self) -> bytes:
        return self._read(0, min(_PROLOGUE_SIZE, self.mapping.size))

    def _read(self, offset: int, length: int) -> bytes:
        try:
            return self.mapping.read(offset, length)
        except OSError:
            raise self._stale("was truncated") from None

    def _stale(self, what: str) -> StaleRegion:
        return StaleRegion(
            f"The region {what}: {self._path}", pid=self._pid, path=self._path, hint="its process may have ended"
        )

    def _named(self, error: FormatError) -> FormatError:
        error.path = self._path
        error.pid = self._pid
        return error


def words(code: Literal["i", "q"], numbers: list[int]) -> memoryview:
    """A writable row of int32 ("i") or int64 ("q"). Not an array.array: that module imports collections."""
    return memoryview(bytearray(pack(f"={len(numbers)}{code}", *numbers))).cast(code)


def swap(numbers: memoryview) -> None:
    """Turns a row of int64 into the other byte order."""
    for index, number in enumerate(unpack(f"{'<' if _BIG else '>'}{len(numbers)}q", numbers)):
        numbers[index] = number


def _clock_of(data: bytes, big: bool) -> int:
    """Where the clock of a vmscope's region is, in a copy of the region; 0: nowhere."""
    start = data.find(_CLOCK.encode() + b"\0") - _ENTRY_HEADER_SIZE
    if start < _PROLOGUE_SIZE or _OURS.encode() + b"\0" not in data:
        return 0
    offset = start + int.from_bytes(data[start + 16 : start + 20], "big" if big else "little")
    return offset if offset % 8 == 0 and offset + 8 <= len(data) else 0


def _odd(raw: bytes, big: bool) -> bool:
    return bool(raw[-1 if big else 0] & 1)


def _same(a: Prologue, b: Prologue) -> bool:
    return (a.used, a.num_entries, a.mod_time_stamp) == (b.used, b.num_entries, b.mod_time_stamp)


def _text(raw: bytes) -> str:
    return "" if len(raw) <= 1 else native.decode_text(raw.partition(b"\0")[0])
