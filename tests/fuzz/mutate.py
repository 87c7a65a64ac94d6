"""Damaged regions without end, and the same ones again.

`mutant(seed, number)` is one region, fixed by its two numbers; `mutants(seed, count)` the first `count` of a
seed. Each starts as a region of the corpus, often cut to its used part so that every overrun meets
the end of the buffer, and suffers one to three mutations. Most of these know the format: they put values that
matter into fields that matter, move whole entries, or touch only names and values, so that a good part stays
readable and the rest fails deep in the walk and not at its door.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import NamedTuple

from tests import corpus
from tests.corpus.build import walk
from tests.corpus.handmade import turned


class Base(NamedTuple):
    """A sound region, and where its entries stand: offset and length of each."""

    data: bytes
    entries: tuple[tuple[int, int], ...]

    @property
    def order(self) -> str:
        return ">" if self.data[4] == 0 else "<"

    @property
    def version(self) -> int:
        return self.data[5]

    @property
    def used(self) -> int:
        start = 24 if self.version == 1 else 32
        return sum(self.entries[-1]) if self.entries else start


Mutation = Callable[[Random, bytearray, Base], None]

# Offsets from the entry's start and their sizes; the names are the format's.
PROLOGUE = {
    1: ((0, 4), (4, 1), (5, 1), (6, 1), (7, 1), (8, 4), (12, 4), (16, 8)),
    2: ((0, 4), (4, 1), (5, 1), (6, 1), (7, 1), (8, 4), (12, 4), (16, 8), (24, 4), (28, 4)),
}
HEADER = {
    1: ((0, 4), (4, 4), (8, 4), (12, 1), (13, 1), (14, 1), (15, 1)),
    2: ((0, 4), (4, 4), (8, 4), (12, 1), (13, 1), (14, 1), (15, 1), (16, 4)),
}
HEADER_SIZE = {1: 16, 2: 20}
CODES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 127, 128, 255, *b"BZJISCDFVL[")


@cache
def bases() -> tuple[Base, ...]:
    found = [data for data in corpus.regions().values() if data[7] or data[5] == 1]
    found += [turned(data) for data in found if data[4] == 1 and data[5] == 2 and len(data) < 40000]
    found += [data for data in found if data[5] == 1] * 4  # there are only two of version 1.0
    return tuple(Base(data, tuple(walk(data))) for data in found)


def mutants(seed: int, count: int) -> Iterator[bytes]:
    return (mutant(seed, number) for number in range(count))


def mutant(seed: int, number: int) -> bytes:
    random = Random(f"{seed}:{number}")
    base = random.choice(bases())
    data = bytearray(base.data)
    if random.random() < 0.5:
        del data[base.used + random.choice((0, 0, 0, 0, 4, 4, 8, 20, 64, 3)) :]
    for mutation in random.choices(MUTATIONS, WEIGHTS, k=random.choice((1, 1, 1, 2, 3))):
        mutation(random, data, base)
    return bytes(data)


def _put(data: bytearray, offset: int, value: int, size: int, order: str) -> None:
    """What does not fit into a mutant that was cut before is left out."""
    if offset + size <= len(data):
        raw = (value & (1 << 8 * size) - 1).to_bytes(size, "big" if order == ">" else "little")
        data[offset : offset + size] = raw


def _entry(random: Random, base: Base) -> tuple[int, int] | None:
    return random.choice(base.entries) if base.entries else None


def _number(random: Random, near: tuple[int, ...]) -> int:
    """A value at one of the edges: of the integers, or of what `near` measures."""
    kind = random.random()
    if kind < 0.6 and near:
        return random.choice(near) + random.choice((0, 0, 1, -1, 4, -4, 8, -8))
    if kind < 0.8:
        return random.choice((0, 1, 2, 3, 4, 7, 8, 19, 20, 24, 28, 32, 36, 100))
    if kind < 0.95:
        return random.choice((-1, -4, -8, -20, -32, -100, 2**31 - 1, 2**31 - 4, -(2**31), -(2**31) + 4, 2**24, 2**16))
    return random.getrandbits(32)


def flip_bytes(random: Random, data: bytearray, base: Base) -> None:
    end = min(len(data), base.used + 8)
    for _ in range(random.choice((1, 1, 2, 8))):
        if end:
            place = random.randrange(end)
            data[place] = data[place] ^ 1 << random.randrange(8) if random.random() < 0.5 else random.getrandbits(8)


def edit_prologue(random: Random, data: bytearray, base: Base) -> None:
    offset, size = random.choice(PROLOGUE[base.version])
    if size == 1:
        _put(data, offset, random.choice((0, 0, 1, 1, 2, 3, 127, 128, 255)), 1, base.order)
    else:
        entry = _entry(random, base) or (32, 0)
        _put(data, offset, _number(random, (32, base.used, len(data), entry[0], len(base.entries))), size, base.order)


def edit_header(random: Random, data: bytearray, base: Base) -> None:
    entry = _entry(random, base)
    if entry is None:
        return
    start, length = entry
    offset, size = random.choice(HEADER[base.version])
    if size == 1:
        _put(data, start + offset, random.choice(CODES), 1, base.order)
    else:
        (now,) = struct.unpack_from(base.order + "i", base.data, start + offset)
        near = (now, now, length, len(data) - start, len(data) - start - now, -start)
        _put(data, start + offset, _number(random, near), size, base.order)


def edit_offsets(random: Random, data: bytearray, base: Base) -> None:
    """name_offset, vector_length and data_offset moved a little: most such entries stay readable."""
    entry = _entry(random, base)
    if entry is None:
        return
    start, _ = entry
    for offset in random.sample((4, 8) if base.version == 1 else (4, 8, 16), 2):
        (now,) = struct.unpack_from(base.order + "i", base.data, start + offset)
        if offset != 8 or now:  # a scalar stays one
            _put(data, start + offset, now + random.choice((-4, -3, -2, -1, 1, 2, 3, 4)), 4, base.order)


def merge_entries(random: Random, data: bytearray, base: Base) -> None:
    """An entry that swallows those behind it, or ends the walk."""
    if len(base.entries) > 2:
        first = random.randrange(len(base.entries) - 1)
        last = min(first + random.choice((1, 1, 2, 5)), len(base.entries) - 1)
        start = base.entries[first][0]
        length = 0 if random.random() < 0.2 else sum(base.entries[last]) - start
        _put(data, start, length, 4, base.order)


def change_name(random: Random, data: bytearray, base: Base) -> None:
    entry = _entry(random, base)
    if entry is None:
        return
    start = entry[0] + HEADER_SIZE[base.version]
    end = min(base.data.index(b"\0", start), len(data) - 1)
    if start <= end:
        place = end if random.random() < 0.3 else random.randint(start, end)
        data[place] = random.choice((0, 10, 32, 46, 65, 0x80, 0xC3, 0xED, 0xFF, random.getrandbits(8)))


def change_value(random: Random, data: bytearray, base: Base) -> None:
    entry = _entry(random, base)
    if entry is None:
        return
    end = min(sum(entry), len(data))
    start = max(end - random.choice((1, 2, 8, 8, 16)), 0)
    value = random.choice((random.randbytes(end - start), b"\xff" * (end - start), bytes(end - start)))
    data[start:end] = value


def copy_name(random: Random, data: bytearray, base: Base) -> None:
    """One name twice, sometimes that of a counter which readers make up."""
    if len(base.entries) < 2:
        return
    head = HEADER_SIZE[base.version]
    one, other = random.sample(base.entries, 2)
    name = base.data[one[0] + head : base.data.index(b"\0", one[0] + head)]
    if random.random() < 0.2:
        name = random.choice((b"sun.perfdata.size", b"sun.perfdata.used", b"sun.perfdata.timestamp"))
    room = base.data.index(b"\0", other[0] + head) - other[0] - head
    name = name[:room]
    if other[0] + head + room <= len(data):
        data[other[0] + head : other[0] + head + len(name)] = name


def truncate(random: Random, data: bytearray, base: Base) -> None:
    entry = _entry(random, base)
    if entry is None or random.random() < 0.3:
        end = random.randint(0, min(len(data), base.used + 64))
    else:
        end = random.choice((entry[0], sum(entry))) + random.choice((0, 0, 0, 1, 2, 3, 4, -1, -4, -8, 16, 20))
    del data[max(end, 0) :]


def extend(random: Random, data: bytearray, base: Base) -> None:
    size = random.choice((1, 2, 3, 4, 8, 20, 100, 4096))
    data += random.choice((bytes(size), b"\xff" * size, random.randbytes(size)))


def shift(random: Random, data: bytearray, base: Base) -> None:
    """Bytes put in or taken out somewhere in the used part; the rest moves."""
    place = random.randint(0, min(base.used, len(data)))
    size = random.choice((1, 2, 4, 8, 32))
    if random.random() < 0.5:
        del data[place : place + size]
    else:
        data[place:place] = bytes(size) if random.random() < 0.5 else random.randbytes(size)


def splice(random: Random, data: bytearray, base: Base) -> None:
    """The head of this region with the tail of another, joined at entries most of the time."""
    other = random.choice(bases())
    if random.random() < 0.7 and base.entries and other.entries:
        here, there = random.choice(base.entries)[0], random.choice(other.entries)[0]
    else:
        here, there = random.randint(0, base.used), random.randint(0, other.used)
    data[here:] = other.data[there:]


def swap_entries(random: Random, data: bytearray, base: Base) -> None:
    if len(base.entries) < 2:
        return
    (a, a_length), (b, b_length) = sorted(random.sample(base.entries, 2))
    data[a : b + b_length] = data[b : b + b_length] + data[a + a_length : b] + data[a : a + a_length]


def repeat_entry(random: Random, data: bytearray, base: Base) -> None:
    entry, place = _entry(random, base), _entry(random, base)
    if entry is not None and place is not None:
        data[place[0] : place[0]] = base.data[entry[0] : sum(entry)]


def drop_entry(random: Random, data: bytearray, base: Base) -> None:
    entry = _entry(random, base)
    if entry is not None:
        del data[entry[0] : sum(entry)]


def turn_byte_order(random: Random, data: bytearray, base: Base) -> None:
    """The flag alone, or all words of the prologue or of one header."""
    if len(data) < 32:
        return
    kind = random.random()
    if kind < 0.4:
        data[4] ^= 1
        return
    entry = _entry(random, base)
    fields, start = (HEADER, entry[0]) if kind < 0.8 and entry is not None else (PROLOGUE, 0)
    for offset, size in fields[base.version]:
        if start + offset + size <= len(data):
            data[start + offset : start + offset + size] = data[start + offset : start + offset + size][::-1]


MIX: dict[Mutation, int] = {
    edit_header: 22,
    edit_offsets: 10,
    edit_prologue: 8,
    merge_entries: 6,
    change_name: 8,
    change_value: 8,
    copy_name: 6,
    flip_bytes: 8,
    truncate: 6,
    extend: 4,
    shift: 2,
    splice: 4,
    swap_entries: 4,
    repeat_entry: 3,
    drop_entry: 3,
    turn_byte_order: 2,
}
MUTATIONS = tuple(MIX)
WEIGHTS = tuple(MIX.values())
