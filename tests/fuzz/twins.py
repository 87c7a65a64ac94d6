"""`python -m tests.fuzz.twins [SEED] [COUNT]`: mutated regions and requests through the extension and its twins."""

from __future__ import annotations

import sys
from random import Random

from tests.fuzz import checks
from tests.fuzz.mutate import mutant
from vmscope import native
from vmscope.errors import FormatError
from vmscope.native.region import walk as twin
from vmscope.wire import decode

REQUESTS = (
    b"1\0jcmd\0VM.version\0\0\0",
    b"1\0load\0instrument\0false\0agent.jar=options\0",
    b"2\x0021\0jcmd\0Thread.print -l\0",
    b"2\x004\0a\0b\0",
    b"2\x00262144\0x",
)


def request(seed: int, number: int) -> bytes:
    """A damaged request, fixed by its two numbers."""
    random = Random(f"request:{seed}:{number}")
    data = bytearray(random.choice(REQUESTS))
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        place = random.randrange(len(data) + 1)
        kind = random.randrange(6)
        if kind == 0:
            del data[place:]
        elif kind == 1:
            data[place:place] = random.choice((b"\0", b"0", b"9" * 8, b"\xff", b"x" * 70, b"x" * 17000))
        elif kind == 2:
            del data[place : place + random.randrange(4)]
        elif data and place < len(data):
            data[place] = random.choice((0, 0x30 + random.randrange(10), random.randrange(256)))
    return bytes(data)


def check(seed: int, number: int) -> None:
    """One region and one request. AssertionError where the extension and its twin differ."""
    data = mutant(seed, number)
    checks.scan(native, data)
    checks.frames(native, request(seed, number))
    try:
        head = decode.prologue(data)
        if head.major == 2:
            entries, end = twin.scan(data, head.entry_offset, head.big)
            region = decode.Region(head, [decode.Entry(*entry) for entry in entries], end)
            assert region.values(data) == native.read(data, head.entry_offset, head.big)
        else:
            assert decode.values(data) == decode.decode(data).values(data)
    except FormatError:
        pass


def main(arguments: list[str]) -> int:
    seed, count = (*map(int, arguments), *(1, 100_000)[len(arguments) :])[:2]
    for number in range(count):
        try:
            check(seed, number)
        except AssertionError as error:
            print(f"mutant {number} of seed {seed}: {error!r}", file=sys.stderr)
            return 1
    print(f"{count:,} regions and requests of seed {seed}: no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
