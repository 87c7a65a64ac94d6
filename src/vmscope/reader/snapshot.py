"""One consistent read of a region that its owner goes on writing, and that may be made to hold its readers up.

The structure (which entries there are, and where) is copied and parsed once, checked against the prologue,
and kept. Later reads look at the prologue and the values only, and go on from the saved next entry when
there are more. A number is loaded whole. vmscope's writer tells by its clock when it replaces texts, and they
are read until they are whole; a JVM's text that changes is read until two reads agree, except the first time.
A set of values is not a transaction.

Nothing that stands in a region makes a read take longer than its entries do: `used` and the number of entries are
no more than a first guess, a large copy is made once or twice, and every read has a time of its own.
"""

from __future__ import annotations

import sys
import time

from vmscope import native
from vmscope.errors import FormatError, ReadTimeout, StaleRegion, StructureError
from vmscope.reader.ownership import BEGIN_TIME, START_TICKS
from vmscope.reader.structure import CLOCK, LONG, OURS, PROLOGUE_SIZE, ZERO_LENGTH, Copy, Structure, swap, text_of
from vmscope.wire import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from vmscope.wire.decode import Prologue

RETRIES = 10  # more copies of the structure, until one was not changed meanwhile
STILL = 6  # of these where nothing changes, though something is missing
MAX_COPY = 16 << 20  # bytes: no region has more entries than these hold
MAX_COPY_1 = 256 << 10  # of version 1.0
FIRST = 256 << 10  # bytes in which every VM says what it is; most regions are smaller
FIRST_1 = 32 << 10  # of version 1.0, of which none is larger
RECOPIED = 1 << 20  # bytes that retries may copy
PATIENCE = 2.0  # seconds for a read

_PAUSES = (0.0, 0.0, 0.0005, 0.001, 0.001, 0.002, 0.002, 0.005, 0.005, 0.01)  # seconds before each retry
_TEXT_READS = 6
_TEXT_PAUSES = (0.0, 0.0, 0.0002, 0.001, 0.002, 0.005)  # seconds after each reading of texts that was in vain
_POLL = 0.02  # seconds between looks at `accessible`
_ENTRY_HEADER_SIZE = 20
PAGE = 4096
_BIG = sys.byteorder == "big"


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


class FirstCopy:
    """A region as a first copy showed it: the prologue, raw and read, where its entries end, and where its clock is.

    It holds as long as the raw prologue stays the same.
    """

    __slots__ = ("clock", "end", "head", "raw")

    def __init__(self, raw: bytes, head: Prologue, end: int, clock: int) -> None:
        self.raw = raw
        self.head = head
        self.end = end
        self.clock = clock


class Reader:
    """Reads one mapped region, again and again.

    Every read raises FormatError for what is not a region, StaleRegion when the file was truncated or holds
    another process's region by now, and ReadTimeout when it takes longer than PATIENCE.
    """

    __slots__ = ("_due", "_looks", "_path", "_pid", "_seen", "_start", "_structure", "mapping", "whole")

    def __init__(self, mapping: native.Mapping, path: str, pid: int | None = None) -> None:
        self.mapping = mapping
        self._path = path
        self._pid = pid
        self._structure: Structure | None = None
        self._looks = 2
        self._seen: FirstCopy | None = None
        self._due = 0.0
        self.whole = True
        self._start: tuple[object, object] = (0, 0)

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
            return decode.values(self._read(0, structure.extent))
        self.load(structure)
        values = dict(zip(structure.names, structure.numbers, strict=True))
        values.update(structure.constants)
        raws = self._texts([(start, length) for _, start, length in structure.texts], structure)
        values.update((text[0], text_of(raw)) for text, raw in zip(structure.texts, raws, strict=True))
        self._same_owner(structure, values)
        return values

    def _look(self) -> dict[str, int | str] | None:
        """The values straight from one copy, without a structure; None where that copy may not be all."""
        seen = self._seen or self._first_copy()
        self._seen = None
        if seen is None:
            return None
        head, size, clock = seen.head, (0, PROLOGUE_SIZE), (seen.clock, 8)
        first, before, data, after, last = self._read_in_order(size, clock, (0, seen.end), clock, size)
        if first != seen.raw or last != first or data[-ZERO_LENGTH:] != bytes(ZERO_LENGTH):
            return None  # it has changed, or the entries go on behind the used part
        try:
            values = native.read(data, head.entry_offset, head.big)
        except FormatError:
            return None
        if len(values) < head.num_entries:
            return None
        if seen.clock and OURS in values and (_odd(before, head.big) or after != before):
            return None
        self._seen = seen
        self._start = values.get(BEGIN_TIME, 0), values.get(START_TICKS, 0)
        return values

    def _first_copy(self) -> FirstCopy | None:
        raw = self._head()
        head = self._prologue(raw)
        if head.major != 2 or not PROLOGUE_SIZE <= head.used <= self._whole(head) - ZERO_LENGTH:
            return None
        data = self._used(head)
        return FirstCopy(raw, head, len(data), _clock_of(data, head.big))

    def some(self, names: tuple[str, ...], *, sound: bool = False) -> dict[str, int | str]:
        """The values of these counters, as far as they are there, read now; much less work than all of them.

        Of a region's FIRST bytes only: those that say what a VM is stand there, whatever its program adds. With
        `sound` of all of it, and only of one that is not damaged anywhere.
        """
        raw = self._head()
        head = self._prologue(raw)
        first = FIRST_1 if head.major == 1 else FIRST
        end = min(head.used if PROLOGUE_SIZE <= head.used < first else first, self._whole(head))
        try:
            data = self._sound(head) if sound else self._read(0, end)
            if self._looks and end == head.used <= self._whole(head) - ZERO_LENGTH and head.major == 2:
                self._seen = FirstCopy(raw, head, end + ZERO_LENGTH, _clock_of(data, head.big))
            if head.major == 1:
                from vmscope.wire import version1

                return version1.find(data, head.big, names)
            return native.find(data, head.entry_offset, head.big, names)
        except FormatError as error:
            if sound or not end == first < head.used:
                raise self._named(error) from None
            cut = StructureError(f"no counter of its first {FIRST:,} bytes can be read: {self._path}")
            raise self._named(cut) from None

    def _sound(self, head: Prologue) -> bytes:
        """What the entries take. FormatError where they are damaged."""
        copy = self._read(0, self._whole(head)) if head.major == 1 else self._used(head)
        if head.major == 1:
            from vmscope.wire import version1

            version1.scan(copy, head.big)
            return copy
        try:
            native.find(copy, head.entry_offset, head.big, ())
        except FormatError:
            if len(copy) == self._whole(head):
                raise
            copy = self._read(0, self._whole(head))
            native.find(copy, head.entry_offset, head.big, ())
        return copy

    def texts(self, names: Container[str]) -> dict[str, str]:
        """Those of these texts that change, as far as they are there, read now; none where they could not be had
        whole."""
        structure = self.structure()
        wanted = [text for text in structure.texts if text[0] in names]
        raws = self._texts([(start, length) for _, start, length in wanted], structure)
        return {text[0]: text_of(raw) for text, raw in zip(wanted, raws, strict=True)} if self.whole else {}

    def value(self, data_type: int, start: int, length: int) -> int | str:
        """One entry's value, read now."""
        if data_type != LONG:
            return text_of(self._texts([(start, length)], self.structure())[0])
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
            raws = [self._text(start, length) for start, length in places]
            if not _odd(before, structure.prologue.big) and self._read(structure.clock, 8) == before:
                return raws
            time.sleep(pause)
        self.whole = False  # a stuck disk, in the middle of a text
        return raws

    def _changing_text(self, start: int, length: int) -> bytes:
        # Long texts are not written in one go: two reads that agree are one text, as far as is known.
        raw = self._text(start, length)
        for _ in range(_TEXT_READS):
            again = self._read(start, length)
            if again == raw:
                break
            raw = again
        return raw

    def _text(self, start: int, length: int) -> bytes:
        self._in_time()
        return self._read(start, length)

    def _same_owner(self, structure: Structure, values: dict[str, int | str]) -> None:
        """The values came from the region that the structure describes: it was not made anew meanwhile."""
        if self._head() != structure.head:
            now = self.prologue()
            if now.num_entries < structure.prologue.num_entries or now.used < structure.prologue.used:
                raise self._stale("was made anew")
        start = values.get(BEGIN_TIME, 0), values.get(START_TICKS, 0)
        if any(self._start) and start != self._start:
            raise self._stale("was made anew")
        self._start = start

    # -- structure

    def prologue(self) -> Prologue:
        return self._prologue(self._head())

    def _prologue(self, raw: bytes) -> Prologue:
        try:
            return decode.prologue(raw)
        except FormatError as error:
            raise self._named(error) from None

    def wait_accessible(self, seconds: float) -> bool:
        """Whether the owner has added its start-up counters: now, or within this many seconds."""
        end = time.monotonic() + seconds
        while not self.prologue().accessible:
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL, left))
        return True

    def structure(self) -> Structure:
        """The structure as it is now; with what came since the last call."""
        self._due = time.monotonic() + PATIENCE
        known = self._structure
        if known is None or not known.settled:
            known = self._structure = self._parse()
        elif self._head() != known.head:
            known = self._structure = self._grown(known)
        return known

    def _parse(self) -> Structure:
        """Copies the structure until a copy was complete and not changed meanwhile, RETRIES times more at most.

        Large copies are not made again and again: that they were changed meanwhile is not an accident, or for good.
        """
        retries = recopied = 0
        while True:
            head = self.prologue()
            copy = self._copy(head)
            unchanged = _same(head, self.prologue())
            complete = copy.has_all(head)
            if complete and unchanged:
                return Structure(copy, retries=retries, settled=True)
            recopied += len(copy.data)
            still = unchanged and (retries == STILL or head.major == 1)  # no such VM lives
            if retries == RETRIES or recopied > RECOPIED or still:
                if copy.error is not None:
                    raise self._named(copy.error)
                # Nothing moves: then this is all there is, whatever the prologue counts. Or the owner adds
                # without pause: then what it had added before the copy is all here.
                if unchanged or complete:
                    return Structure(copy, retries=retries, settled=unchanged)
                raise self._named(StructureError(f"the region changed in each of {retries + 1} copies: {self._path}"))
            self._in_time()
            time.sleep(_PAUSES[retries])
            retries += 1

    def _copy(self, head: Prologue, start: int = 0) -> Copy:
        """A copy with all entries; like the JDK's reader, it does not believe that these end with the used part."""
        whole = self._whole(head)
        try:
            copy = Copy(self._used(head), start)
            if not copy.ended and len(copy.data) < whole:
                copy = Copy(self._read(0, whole), start)
        except FormatError as error:
            raise self._named(error) from None
        if copy.error is not None and whole < self.mapping.size and len(copy.data) == whole:
            copy.error = StructureError(f"the region's entries take more than {whole:,} bytes: {self._path}")
        return copy

    def _used(self, head: Prologue) -> bytes:
        """What is said to be used, and the zero length behind it; or the FIRST bytes, where the entries end there."""
        whole = self._whole(head)
        end = min(head.used + ZERO_LENGTH, whole) if head.used >= PROLOGUE_SIZE else whole
        if end > FIRST:
            data = self._read(0, FIRST)
            try:
                native.find(data, head.entry_offset, head.big, ())
            except FormatError:  # they go on
                pass
            else:
                return data
        return self._read(0, end)

    def _grown(self, known: Structure) -> Structure:
        """The structure after the prologue has changed."""
        head = self.prologue()
        if head.num_entries < known.prologue.num_entries or head.used < known.prologue.used:
            raise self._stale("was made anew")
        if head.major != 2 or not known.rows or not PROLOGUE_SIZE <= head.used <= self._whole(head):
            return self._parse()
        last = known.rows[-1]
        copy = self._copy(head, last[0])
        if copy.error is not None:
            return self._parse()
        if copy.rows[:1] != [last]:
            raise self._stale("was made anew")
        del copy.rows[:1]
        if not copy.has_all(head, len(known.rows)) or not _same(head, self.prologue()):
            return self._parse()
        known.extend(copy)
        return known

    def _whole(self, head: Prologue) -> int:
        """How many bytes of the region are looked at."""
        size, used = self.mapping.size, head.used + ZERO_LENGTH
        if used > size and size % PAGE == 0 and head.major != 1:  # a region in whole pages, as those that grow
            self.mapping.grow(-(-used // PAGE) * PAGE)  # not where that is a lie
        return min(self.mapping.size, MAX_COPY_1 if head.major == 1 else MAX_COPY)

    # -- bytes and errors

    def _head(self) -> bytes:
        return self._read(0, min(PROLOGUE_SIZE, self.mapping.size))

    def _read(self, offset: int, length: int) -> bytes:
        try:
            return self.mapping.read(offset, length)
        except OSError:
            raise self._stale("was truncated") from None

    def _read_in_order(self, *ranges: tuple[int, int]) -> tuple[bytes, ...]:
        try:
            return self.mapping.read_in_order(*ranges)
        except OSError:
            raise self._stale("was truncated") from None

    def _in_time(self) -> None:
        if time.monotonic() > self._due:
            raise ReadTimeout(
                f"The region cannot be read within {PATIENCE:.0f} s: {self._path}",
                pid=self._pid,
                path=self._path,
                hint="its process changes it without pause, or has made it very large",
            )

    def _stale(self, what: str) -> StaleRegion:
        return StaleRegion(
            f"The region {what}: {self._path}", pid=self._pid, path=self._path, hint="its process may have ended"
        )

    def _named(self, error: FormatError) -> FormatError:
        error.path = self._path
        error.pid = self._pid
        return error


def _clock_of(data: bytes, big: bool) -> int:
    """Where the clock is, in a copy of a region, whether that is a vmscope's or not; 0: nowhere."""
    start = data.find(CLOCK.encode() + b"\0") - _ENTRY_HEADER_SIZE
    if start < PROLOGUE_SIZE:
        return 0
    offset = start + int.from_bytes(data[start + 16 : start + 20], "big" if big else "little")
    return offset if offset % 8 == 0 and offset + 8 <= len(data) else 0


def _odd(raw: bytes, big: bool) -> bool:
    return bool(raw[-1 if big else 0] & 1)


def _same(a: Prologue, b: Prologue) -> bool:
    return (a.used, a.num_entries, a.mod_time_stamp) == (b.used, b.num_entries, b.mod_time_stamp)
