"""The corpus's regions that no HotSpot at hand can write: other byte order, version 1.0, the edges of the format."""

from __future__ import annotations

import struct

from tests.corpus import load
from tests.corpus.build import (
    BYTES,
    CONSTANT,
    EVENTS,
    HERTZ,
    MONOTONIC,
    NONE,
    TICKS,
    VARIABLE,
    entry,
    region,
    v1_entry,
    v1_region,
    walk,
)

CONVERTED = "17.0.15-debian-serial"  # the real region that is turned round


def handmade() -> dict[str, bytes]:
    """Every hand-made region by name; the same bytes on each call."""
    return {
        "made-big-endian": turned(load(CONVERTED)),
        "made-v1-little-endian": version_1(big=False),
        "made-v1-big-endian": version_1(big=True),
        "made-empty": region([], used=0),
        "made-prologue-only": region([], size=32),
        "made-minimal": region([entry(b"a", 1)], size=64),
        "made-full": full(),
        "made-overflow": region([entry(b"fits", 1)], overflow=72),
        "made-not-accessible": region([entry(b"early", 1)], accessible=0),
        "made-texts": texts(),
        "made-aligned-texts": aligned_texts(),
        "made-numbers": numbers(),
        "made-repeated-names": region([entry(b"name", 1), entry(b"name", b"two\0"), entry(b"name", 3)]),
        "made-64-kib": region([entry(f"made.counter.{i}".encode(), i) for i in range(1000)], size=65536),
    }


def turned(data: bytes) -> bytes:
    """A little-endian version 2.0 region in the other byte order."""
    used, overflow, stamp, offset, count = struct.unpack_from("<iiqii", data, 8)
    out = bytearray(data)
    out[4] = 0
    struct.pack_into(">iiqii", out, 8, used, overflow, stamp, offset, count)
    for start, length in walk(data):
        name, vector = struct.unpack_from("<ii", data, start + 4)
        (place,) = struct.unpack_from("<i", data, start + 16)
        struct.pack_into(">iii", out, start, length, name, vector)
        struct.pack_into(">i", out, start + 16, place)
        if vector == 0:
            out[start + place : start + place + 8] = data[start + place : start + place + 8][::-1]
    return bytes(out)


def full() -> bytes:
    """Entries up to the last byte: no zero length ends the walk."""
    entries = [entry(f"full.{i:02}".encode(), i) for i in range(101)]
    entries.append(entry(b"t", b"x\0"))
    return region(entries, size=4096, overflow=40)


def texts() -> bytes:
    """Every kind of string: empty, longer than what is shown, outside ASCII, outside UTF-8, unsupported."""
    long = "".join(chr(ord("a") + i % 26) for i in range(1024)).encode()
    return region(
        [
            entry(b"text.empty", b"\0"),
            entry(b"text.empty.variable", bytes(65), variability=VARIABLE),
            entry(b"text.variable", b"open".ljust(65, b"\0"), variability=VARIABLE),
            entry(b"text.blanks", b" two  words \0"),
            entry(b"text.latin", "café".encode() + b"\0"),
            entry(b"text.wide", "東京 😀".encode() + b"\0"),
            entry(b"text.not.utf8", b"\xe9t\xe9\0"),
            entry(b"text.lines", b"one\ntwo\tthree\0"),
            entry(b"text.quotes", b"say \"yes\" \\ 'no'\0"),
            entry(b"text.long", long + b"\0"),
            entry(b"text.after.nul", b"seen\0not seen\0"),
            entry(b"text.unsupported", b"u\0", flags=0),
            entry(b'text.names{kind="a"}', b"labelled\0"),
        ]
    )


def aligned_texts() -> bytes:
    """Strings at offsets that are multiples of eight, as no HotSpot writes and every reader accepts."""
    values = ((b"aligned.a", b"one\0"), (b"aligned.bcd", b"three\0"), (b"plain", b"two\0"))
    return region([entry(name + bytes(-(20 + len(name) + 1) % 8), value) for name, value in values])


def numbers() -> bytes:
    """The edges of 64 bits, and every pair of units and variability."""
    values = (0, 1, -1, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1, 2**63 - 1, -(2**63))
    entries = [entry(f"number.{i}".encode(), value) for i, value in enumerate(values)]
    for units in (NONE, BYTES, TICKS, EVENTS, 5, HERTZ):
        for variability in (CONSTANT, MONOTONIC, VARIABLE):
            name = f"number.units.{units}.variability.{variability}"
            entries.append(entry(name.encode(), units * 10 + variability, units=units, variability=variability))
    return region(entries, mod_time_stamp=2**40 + 5)


def version_1(*, big: bool) -> bytes:
    """What a VM of 1.4 published, as far as jstat asks for it: the old names, which readers know by alias."""
    texts = {
        "java.vm.version": "1.4.1",
        "java.vm.name": "Java HotSpot(TM) Client VM",
        "java.vm.vendor": "Sun Microsystems Inc.",
        "java.vm.info": "mixed mode",
        "java.class.path": "work.jar",
        "java.home": "/opt/jdk-1.4.1/jre",
        "hotspot.vm.args": "-Xmx64m",
        "hotspot.vm.flags": "",
        "hotspot.rt.java.command": "Work 20",
        "hotspot.gc.generation.0.name": "new",
        "hotspot.gc.generation.0.space.0.name": "eden",
        "hotspot.gc.generation.0.space.1.name": "s0",
        "hotspot.gc.generation.0.space.2.name": "s1",
        "hotspot.gc.generation.1.name": "old",
        "hotspot.gc.generation.2.name": "perm",
        "hotspot.gc.collector.0.name": "Copy",
        "hotspot.gc.collector.1.name": "MSC",
    }
    heap = {
        "generation.0.capacity.current": 4194304,
        "generation.0.capacity.max": 22347776,
        "generation.0.capacity.min": 4194304,
        "generation.0.space.0.capacity": 3407872,
        "generation.0.space.0.size": 17956864,
        "generation.0.space.0.used": 1703936,
        "generation.0.space.1.capacity": 393216,
        "generation.0.space.1.size": 2195456,
        "generation.0.space.1.used": 0,
        "generation.0.space.2.capacity": 393216,
        "generation.0.space.2.size": 2195456,
        "generation.0.space.2.used": 101376,
        "generation.1.capacity.current": 10485760,
        "generation.1.capacity.max": 44761088,
        "generation.1.capacity.min": 10485760,
        "generation.1.space.0.capacity": 10485760,
        "generation.1.space.0.size": 44761088,
        "generation.1.space.0.used": 5242880,
        "generation.2.capacity.current": 4194304,
        "generation.2.capacity.max": 67108864,
        "generation.2.capacity.min": 4194304,
        "generation.2.space.0.capacity": 4194304,
        "generation.2.space.0.size": 67108864,
        "generation.2.space.0.used": 2097152,
    }
    times = {
        "hotspot.gc.collector.0.invocations": 12,
        "hotspot.gc.collector.0.time": 24000,
        "hotspot.gc.collector.1.invocations": 3,
        "hotspot.gc.collector.1.time": 90000,
        "hotspot.rt.cl.classes.loaded": 250,
        "hotspot.rt.cl.time": 310000,
        "hotspot.threads.live.count": 5,
    }
    entries = [v1_entry(name.encode(), value.encode() + b"\0", big=big) for name, value in texts.items()]
    entries += [
        v1_entry(f"hotspot.gc.{name}".encode(), value, big=big, units=BYTES, variability=VARIABLE)
        for name, value in heap.items()
    ]
    entries += [
        v1_entry(name.encode(), value, big=big, units=TICKS if "time" in name else EVENTS, variability=MONOTONIC)
        for name, value in times.items()
    ]
    entries.append(v1_entry(b"hotspot.rt.hrt.frequency", 1000000, big=big, units=HERTZ))
    entries.append(v1_entry(b"hotspot.rt.hrt.ticks", 4200000, big=big, units=TICKS, variability=MONOTONIC))
    return v1_region(entries, big=big, size=8192, mod_time_stamp=4100000)
