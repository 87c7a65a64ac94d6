"""One consistent read of a region that its owner goes on writing.

The structure (which entries there are, and where) is copied and parsed once, checked against the prologue,
and kept. Later reads look at the prologue and the values only, and go on from the saved next entry when
there are more. A number is loaded whole, a text is read until two reads agree. A set of values is no
transaction, and nobody pretends it is.
"""

from __future__ import annotations

import sys
import time
from array import array

from vmscope import native
from vmscope.errors import FormatError, StaleRegion, StructureError
from vmscope.reader.ownership import BEGIN_TIME, START_TICKS
from vmscope.wire import decode
from vmscope.wire.decode import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.wire.decode import Prologue, Region

RETRIES = 10  # more copies of the structure, until one was not changed meanwhile
MAX_COPY = 64 << 20  # bytes: no structure needs more

_PAUSES = (0.0, 0.0, 0.0005, 0.001, 0.001, 0.002, 0.002, 0.005, 0.005, 0.01)  # seconds before each retry
_TEXT_READS = 6
_POLL = 0.02  # seconds between looks at `accessible`
_PROLOGUE_SIZE = 32
_LONG = ord("J")
_CONSTANT = 1
_BIG = sys.byteorder == "big"


class Structure:
    """The entries of a region, and where their values stand. It only grows.

    `settled` is False when no copy of the structure could be checked, because the owner was adding entries
    all the time: then the last entries are missing, and no other.
    """

    __slots__ = (
        "constants",
        "entries",
        "head",
        "names",
        "next_offset",
        "numbers",
        "offsets",
        "plain",
        "prologue",
        "retries",
        "settled",
        "texts",
    )

    def __init__(self, region: Region, data: bytes, *, retries: int, settled: bool) -> None:
        self.prologue = region.prologue
        self.head = data[:_PROLOGUE_SIZE]
        self.retries = retries
        self.settled = settled
        self.entries: list[Entry] = []
        self.names: list[str] = []  # of the numbers, in the order of `offsets`
        self.offsets = array("q")
        self.texts: list[Entry] = []  # those that can change
        self.constants: dict[str, int | str] = {}  # the texts that cannot
        self.plain = True  # False: names that occur twice, or numbers that no word holds
        self.extend(region.entries, region.next_offset, data)

    def extend(self, entries: list[Entry], next_offset: int, data: bytes) -> None:
        for entry in entries:
            start = entry.data_offset
            if entry.data_type == _LONG:
                self.names.append(entry.name)
                self.offsets.append(start)
                self.plain = self.plain and start % 8 == 0
                continue
            text = _text(data[start : start + entry.vector_length])
            if entry.variability == _CONSTANT and text:
                self.constants[entry.name] = text
            else:  # an empty one too: HotSpot writes the text after the entry
                self.texts.append(entry)
        self.entries += entries
        self.next_offset = next_offset
        self.numbers = array("q", bytes(8 * len(self.names)))
        self.plain = self.plain and len({entry.name for entry in self.entries}) == len(self.entries)

    @property
    def last(self) -> Entry | None:
        return self.entries[-1] if self.entries else None


class Snapshot:
    """`values` by name, `taken` in ns since the epoch.

    `retries`: how many copies of the structure had to be thrown away. `settled`: see Structure. `accessible`:
    False while the owner is still adding its start-up counters.
    """

    __slots__ = ("accessible", "retries", "settled", "taken", "values")

    def __init__(self, values: dict[str, int | str], structure: Structure) -> None:
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

    __slots__ = ("_born", "_path", "_pid", "_structure", "mapping")

    def __init__(self, mapping: native.Mapping, path: str, pid: int | None = None) -> None:
        self.mapping = mapping
        self._path = path
        self._pid = pid
        self._structure: Structure | None = None
        self._born: tuple[object, object] = (0, 0)

    # -- values

    def snapshot(self) -> Snapshot:
        values = self.values()
        return Snapshot(values, self.structure())

    def values(self) -> dict[str, int | str]:
        """Every value by name, read now; of two entries with one name the last counts."""
        structure = self.structure()
        if not structure.plain:
            return decode.values(self._read(0, self._whole()))
        self.load(structure)
        values: dict[str, int | str] = dict(zip(structure.names, structure.numbers, strict=True))
        values.update(structure.constants)
        for entry in structure.texts:
            values[entry.name] = self._changing_text(entry)
        self._same_owner(structure, values)
        return values

    def value(self, entry: Entry) -> int | str:
        """One entry's value, read now."""
        if entry.data_type != _LONG:
            return self._changing_text(entry)
        raw = self._read(entry.data_offset, 8)
        return int.from_bytes(raw, "big" if self.structure().prologue.big else "little", signed=True)

    def load(self, structure: Structure) -> None:
        """Reads the numbers of a plain structure into its `numbers`."""
        try:
            self.mapping.gather(structure.offsets, structure.numbers)
        except OSError:
            raise self._stale("was truncated") from None
        if structure.prologue.big != _BIG:
            structure.numbers.byteswap()

    def _changing_text(self, entry: Entry) -> str:
        # Long texts are not written in one go: two reads that agree are one text, as far as can be told.
        raw = self._read(entry.data_offset, entry.vector_length)
        for _ in range(_TEXT_READS):
            again = self._read(entry.data_offset, entry.vector_length)
            if again == raw:
                break
            raw = again
        return _text(raw)

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
        try:
            return decode.prologue(self._head())
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
        """Copies the structure until a copy was complete and not changed meanwhile, RETRIES times at most."""
        retries = 0
        while True:
            head = self.prologue()
            data, region, error = self._decode(head.used)
            unchanged = _same(head, self.prologue())
            if unchanged and (_incomplete(head, region) or self._goes_on(len(data))):
                data, region, error = self._decode(0)  # like the JDK's reader, which does not look at `used`
                unchanged = _same(head, self.prologue())
            complete = region is not None and not _incomplete(head, region)
            if region is not None and complete and unchanged:
                return Structure(region, data, retries=retries, settled=True)
            if retries == RETRIES:
                # Nothing moves: then it is no half-written entry, and this is all there is. Or the owner adds
                # without pause: what it had added before the copy is all here.
                if region is not None and (unchanged or complete):
                    return Structure(region, data, retries=retries, settled=unchanged)
                raise error or self._named(
                    StructureError(f"the region changed in each of {RETRIES} copies: {self._path}")
                )
            time.sleep(_PAUSES[retries])
            retries += 1

    def _decode(self, used: int) -> tuple[bytes, Region | None, FormatError | None]:
        """The first `used` bytes, or all where that is no sensible number, and what they mean."""
        whole = self._whole()
        data = self._read(0, used if _PROLOGUE_SIZE <= used <= whole else whole)
        try:
            return data, decode.decode(data), None
        except FormatError as error:
            return data, None, self._named(error)

    def _grown(self, known: Structure) -> Structure:
        """The structure after the prologue has changed."""
        head = self.prologue()
        if head.num_entries < known.prologue.num_entries or head.used < known.prologue.used:
            raise self._stale("was made anew")
        last = known.last
        if head.major != 2 or last is None or head.used > self._whole():
            return self._parse()
        data = self._read(0, head.used)
        try:
            end, _ = native.scan(data[: known.next_offset], last.offset, head.big)
            entries, next_offset = native.scan(data, known.next_offset, head.big)
        except FormatError:
            return self._parse()
        if len(end) != 1 or end[0][:2] != (last.offset, last.name):
            raise self._stale("was made anew")
        if len(known.entries) + len(entries) < head.num_entries or not _same(head, self.prologue()):
            return self._parse()
        known.extend([Entry(*entry) for entry in entries], next_offset, data)
        known.prologue = head
        known.head = data[:_PROLOGUE_SIZE]
        return known

    def _goes_on(self, end: int) -> bool:
        """Whether something stands behind the used part, where a zero length should end it."""
        return end + 4 <= self._whole() and any(self._read(end, 4))

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


def _same(a: Prologue, b: Prologue) -> bool:
    return (a.used, a.num_entries, a.mod_time_stamp) == (b.used, b.num_entries, b.mod_time_stamp)


def _incomplete(head: Prologue, region: Region | None) -> bool:
    return region is None or len(region.entries) < head.num_entries


def _text(raw: bytes) -> str:
    return "" if len(raw) <= 1 else native.decode_text(raw.partition(b"\0")[0])
