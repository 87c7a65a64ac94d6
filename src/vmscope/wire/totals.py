"""What the ended processes of a service have counted, as a region: its entries are theirs, added up.

Besides, it has the service's name, when the first of the processes began, and a note of each process that it contains.
A note is what makes folding safe: whoever finds a region whose process is noted removes it, and adds nothing.
"""

from __future__ import annotations

from struct import Struct

from vmscope import native
from vmscope.native import FLOAT, TIME
from vmscope.wire import decode, encode, floats, series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Buffer

    Note = tuple[int, int, int]  # pid, when it started, where its stack began: a process, and which program of it
    Number = tuple[str, int, int, int]  # name, value, units, variability

FOLDER = "services"  # beside the regions, mode 0700: the files of the totals, each called as its service
SERVICE = "vmscope.service"
START_TICKS, STACK_START = "vmscope.process.startTicks", "vmscope.process.stackStart"
BEGIN_TIME = "sun.rt.createVmBeginTime"
SUM, MIN, MAX, MOST_RECENT = "sum", "min", "max", "mostrecent"

NOTES = 128  # that are kept at least: readers look at regions first, then at the totals
MOST_NUMBERS = 1 << 18
MOST_BYTES = 64 << 20

_CREATED = "vmscope.totals.created"
_NOTE = "vmscope.totals.ended."
_LONGEST = 240  # characters of a file's name
_PLAIN = frozenset(b"-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")  # also in a file's name
_NONE, _STRING = 1, 5
_CONSTANT, _MONOTONIC = 1, 2
_LONG = ord("J")
_LONGS = Struct("<q"), Struct(">q")
_PAGE = 4096
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


def file_name(service: str) -> str:
    """What the file of a service is called; "" for a name that is too long."""
    safe = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in service.encode("utf-8", "replace"))
    return safe if len(safe) <= _LONGEST else ""


class Totals:
    """`numbers` by name: value, units, variability. `notes` in the order in which they were made.

    `created` is when the first process began, in ms since the epoch; 0 where there was none.
    """

    __slots__ = ("created", "notes", "numbers", "service")

    def __init__(self, service: str) -> None:
        self.service = service
        self.created = 0
        self.numbers: dict[str, tuple[int, int, int]] = {}
        self.notes: dict[Note, None] = {}

    def add(self, numbers: Iterable[Number], ended: Note, began: int) -> None:
        """Adds what a process has counted: what only grows, histograms, and gauges by their mode. Other gauges end with
        their process."""
        if ended in self.notes:
            return
        found = list(numbers)
        is_removed = series.removal((name, value) for name, value, *_ in found)
        found = [number for number in found if not is_removed(number[0])]
        histograms = _histograms(name for name, *_ in found)
        before, times = self.numbers, {name: value for name, value, *_ in found if TIME in name}
        stamps = {name: self.numbers[name][0] for name in times if name in self.numbers}
        for name, value, units, variability in found:
            mode = _mode(name, variability, histograms)
            if not mode or (name not in before and len(before) >= MOST_NUMBERS):
                continue
            if name in before:
                old = before[name][0]
                if mode == MOST_RECENT:
                    stamp = time_of(name)
                    value = value if times.get(stamp, 0) >= stamps.get(stamp, 0) else old
                else:
                    value = _combined(mode, old, value, bits=FLOAT[1:] in marks(name))
            before[name] = value, units, variability
        self.created = min(self.created or began, began)
        self.notes[ended] = None

    def prune(self, is_there: Callable[[int], bool]) -> None:
        """Forgets old notes, except those of processes whose region is still there."""
        for note in list(self.notes)[:-NOTES]:
            if not is_there(note[0]):
                del self.notes[note]

    def encode(self) -> bytes:
        """The region, in whole pages."""
        entries: list[tuple[str, int | bytes, int, int, None, int]] = [
            (SERVICE, self.service.encode("utf-8", "replace"), _STRING, _CONSTANT, None, 0),
            (_CREATED, self.created, _NONE, _CONSTANT, None, 0),
        ]
        for pid, ticks, stack in self.notes:
            entries.append((f"{_NOTE}{pid}.{ticks}.{stack}", 1, _NONE, _CONSTANT, None, 0))
        for name, (value, units, variability) in self.numbers.items():
            entries.append((name, value, units, variability, None, 0))
        data, _ = native.encode_entries(entries)
        used = len(encode.prologue()) + len(data)
        head = encode.prologue(used=used, num_entries=len(entries), accessible=1)
        return (head + data).ljust((used + 4 + _PAGE - 1) // _PAGE * _PAGE, b"\0")


def of_region(data: Buffer) -> tuple[str, list[Number], dict[str, int]]:
    """The service of a process whose region this is, its numbers, and those that say which process it is. FormatError
    where it is none."""
    region = decode.decode(data)
    raw = data if isinstance(data, bytes) else bytes(memoryview(data))
    long = _LONGS[region.prologue.big].unpack_from
    service, numbers, who = "", [], {}
    for entry in region.entries:
        if entry.data_type == _LONG:
            if entry.data_offset + 8 > len(raw):
                continue
            value = long(raw, entry.data_offset)[0]
            numbers.append((entry.name, value, entry.units, entry.variability))
            if entry.name in (START_TICKS, STACK_START, BEGIN_TIME):
                who[entry.name] = value
        elif entry.name == SERVICE:
            text = raw[entry.data_offset : entry.data_offset + entry.vector_length].partition(b"\0")[0]
            service = native.decode_text(text)
    return service, numbers, who


def decoded(data: Buffer) -> Totals:
    """The totals that `encode` has made. FormatError where they are not a region."""
    service, numbers, _ = of_region(data)
    totals = Totals(service)
    for name, value, units, variability in numbers:
        if name == _CREATED:
            totals.created = value
        elif name.startswith(_NOTE):
            note = name[len(_NOTE) :].split(".")
            if len(note) == 3 and all(part.isdigit() for part in note):
                totals.notes[int(note[0]), int(note[1]), int(note[2])] = None
        elif variability != _CONSTANT:
            totals.numbers[name] = value, units, variability
    return totals


def kept(names: list[str], variabilities: list[int]) -> list[bool]:
    """Which numbers of a process outlive it."""
    histograms = _histograms(names)
    return [bool(_mode(name, code, histograms)) for name, code in zip(names, variabilities, strict=True)]


def _histograms(names: Iterable[str]) -> set[str]:
    return {name.partition(".bucket{")[0] for name in names if ".bucket{" in name}


def time_of(name: str) -> str:
    """The entry that says when a gauge of mode mostrecent was set."""
    return name if TIME in name else name.replace(f"#{MOST_RECENT}", f"#{MOST_RECENT}{TIME}").removesuffix(FLOAT)


def marks(name: str) -> frozenset[str]:
    """What stands behind each `#` of an entry's name, before its labels or behind them."""
    if "#" not in name:
        return frozenset()
    base, _, rest = name.partition("{")
    behind = rest.rpartition("}")[2] if rest else ""
    return frozenset((*base.split("#")[1:], *behind.split("#")[1:]))


def _mode(name: str, variability: int, histograms: set[str]) -> str:
    """How the numbers of two ended processes become one; "" for what is not kept."""
    if variability == _CONSTANT:
        return ""
    if variability == _MONOTONIC:
        return SUM
    base = name.partition("{")[0].partition("#")[0]
    if base.endswith(".sum") and base.removesuffix(".sum") in histograms:
        return SUM
    found = marks(name)
    return next((mode for mode in (SUM, MIN, MAX, MOST_RECENT) if mode in found), "")


def _combined(mode: str, old: int, new: int, *, bits: bool) -> int:
    if bits:
        one, other = floats.double(old), floats.double(new)
        return floats.bits(one + other if mode == SUM else min(one, other) if mode == MIN else max(one, other))
    found = old + new if mode == SUM else min(old, new) if mode == MIN else max(old, new)
    return max(_LOWEST, min(_HIGHEST, found))
