"""The experiments behind RULES.md: a region, one thing changed, and what the JDK's reader makes of it.

An expectation is the counters' values by name, or the simple name of the exception.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.corpus.build import MAGIC, entry, i32, prologue, region, v1_entry, v1_region
from tests.oracle.jvmstat import java_text

STRUCTURE = "MonitorStructureException"
DATA = "MonitorDataException"
TYPE = "MonitorTypeException"
VERSION = "MonitorVersionException"
ARGUMENT = "IllegalArgumentException"
UNDERFLOW = "BufferUnderflowException"
NEGATIVE = "NegativeArraySizeException"
NOT_READY = "MonitorException"

Expected = dict[str, int | str] | str
INT_MIN, INT_MAX = -(2**31), 2**31 - 1


class Case(NamedTuple):
    group: str
    name: str
    data: bytes
    expected: Expected
    release: int = 0  # only this JDK's; 0 is all


def a(**fields: int) -> bytes:
    """A 40-byte J entry; at 32 where it is the first. Its data is at 32."""
    return entry(b"a.long", 7, **{"units": 4, "variability": 2, **fields})  # type: ignore[arg-type]


def b(**fields: int) -> bytes:
    """A 40-byte string entry; at 72 where it follows `a`. Its data is at 27."""
    return entry(b"b.text", b"hello\0", **fields)  # type: ignore[arg-type]


def c(**fields: int) -> bytes:
    """A 40-byte J entry; at 112 where it is the third. Its data is at 32."""
    return entry(b"c.last", 9, **fields)  # type: ignore[arg-type]


PLAIN: Expected = {"a.long": 7, "b.text": "hello", "c.last": 9}
NO_C: Expected = {"a.long": 7, "b.text": "hello"}


def _prologue() -> list[Case]:
    cases: list[Case] = []

    def add(name: str, data: bytes, expected: Expected) -> None:
        cases.append(Case("prologue", name, data, expected))

    add("plain", region([a(), b(), c()]), PLAIN)
    big = region([entry(b"a", 7, big=True), entry(b"b", b"hello\0", big=True)], big=True)
    add("big-endian", big, {"a": 7, "b": "hello"})
    sizes: dict[int, Expected] = {0: ARGUMENT, 1: ARGUMENT, 4: ARGUMENT, 5: UNDERFLOW, 6: UNDERFLOW, 7: ARGUMENT,
                                  8: ARGUMENT, 16: ARGUMENT, 24: UNDERFLOW, 28: UNDERFLOW, 31: UNDERFLOW, 32: {},
                                  33: UNDERFLOW, 35: UNDERFLOW, 36: {}, 37: {}, 51: {}, 52: {}, 53: {}, 4097: {}}
    for size, expected in sizes.items():
        add(f"size {size}", region([], size=4097)[:size], expected)
    fields: dict[str, dict[int, Expected]] = {
        "byte_order": {2: PLAIN, 127: PLAIN, -1: PLAIN},
        "major": {0: ARGUMENT, 3: ARGUMENT, -1: ARGUMENT},
        "minor": {1: ARGUMENT, -1: ARGUMENT},
        "accessible": {0: NOT_READY, 2: PLAIN, -1: PLAIN, -128: PLAIN},
        "used": {0: PLAIN, -1: PLAIN, 5: PLAIN, INT_MAX: PLAIN},
        "overflow": {-1: PLAIN, 5: PLAIN},
        "num_entries": {0: PLAIN, -1: PLAIN, 1: PLAIN, 100: PLAIN},
        "mod_time_stamp": {-1: PLAIN, 2**63 - 1: PLAIN},
    }
    for field, values in fields.items():
        for value, expected in values.items():
            data = region([a(), b(), c()], **{field: value})  # type: ignore[arg-type]
            add(f"{field} {value}", data, expected)
    add("magic", region([a()], magic=MAGIC[:3] + b"\xc1"), VERSION)
    add("magic in the other order", region([a()], magic=MAGIC[::-1]), VERSION)
    add("magic and version", region([a()], magic=b"\0\0\0\0", minor=1), ARGUMENT)
    add("magic and accessible", region([a()], magic=b"\0\0\0\0", accessible=0), VERSION)
    add("accessible and entry", region([a(units=0)], accessible=0), NOT_READY)
    return cases


def _walk() -> list[Case]:
    cases: list[Case] = []

    def add(name: str, data: bytes, expected: Expected) -> None:
        cases.append(Case("walk", name, data, expected))

    offsets: dict[int, Expected] = {INT_MIN: STRUCTURE, -4: STRUCTURE, -1: STRUCTURE, 0: STRUCTURE, 1: STRUCTURE,
                                    4: STRUCTURE, 8: STRUCTURE, 12: {}, 16: {}, 24: STRUCTURE, 33: STRUCTURE,
                                    34: STRUCTURE, 36: STRUCTURE, 72: {"b.text": "hello", "c.last": 9}, 4092: {},
                                    4093: STRUCTURE, 4096: {}, 4097: STRUCTURE, 4100: STRUCTURE, INT_MAX: STRUCTURE}
    for offset, expected in offsets.items():
        add(f"entry_offset {offset}", region([a(), b(), c()], entry_offset=offset), expected)
    lengths: dict[int, Expected] = {INT_MIN: STRUCTURE, -4: STRUCTURE, -1: STRUCTURE, 0: {"a.long": 7}, 1: STRUCTURE,
                                    4: STRUCTURE, 20: STRUCTURE, 24: STRUCTURE, 27: STRUCTURE, 28: STRUCTURE, 32: NO_C,
                                    36: NO_C, 39: STRUCTURE, 40: PLAIN, 41: STRUCTURE, 44: STRUCTURE, 48: NO_C,
                                    80: NO_C, 4024: NO_C, 4025: STRUCTURE, 4028: STRUCTURE, 4096: STRUCTURE,
                                    4097: STRUCTURE, INT_MAX: STRUCTURE}
    for length, expected in lengths.items():
        add(f"entry_length {length}", region([a(), b(entry_length=length), c()]), expected)
    one = region([entry(b"abc", 7)])
    add("ends with the last entry", one[:64], {"abc": 7})
    add("last entry cut", one[:60], STRUCTURE)
    add("4 zeros at the end", one[:68], {"abc": 7})
    for extra in (1, 2, 3):
        add(f"{extra} bytes at the end", one[: 64 + extra], UNDERFLOW)
    add("header of 4 bytes", one[:64] + i32(4), UNDERFLOW)
    add("header of 16 bytes", one[:64] + i32(16) + bytes(12), UNDERFLOW)
    smallest = i32(20) + i32(20) + i32(1) + b"B\x01\x05\x01" + i32(20)
    add("smallest entry at the end", one[:64] + smallest, UNDERFLOW)
    add("smallest entry before the end", one[:64] + smallest + i32(0), {"abc": 7, "": ""})
    add("smallest entry before another", region([smallest, entry(b"abc", 7)]), {"abc": 7, "": ""})
    add("header longer than its entry", region([i32(8) + i32(0) + i32(0) + b"J\x01\x01\x01" + i32(0)]), {"": 8})
    add("odd length up to the end", region([entry(b"abc", b"123", entry_length=30)])[:62], STRUCTURE)
    return cases


def _tail(
    name: bytes, data_offset: int, *, vector_length: int = 1, data_type: str = "B", name_offset: int = 20
) -> bytes:
    """One entry that ends with its name, and the region with it."""
    size = 20 + len(name)
    fields = bytes([ord(data_type), 1, 5, 1])
    start = i32(size) + i32(name_offset) + i32(vector_length) + fields + i32(data_offset)
    return prologue(num_entries=1, used=32 + size) + start + name


def _entry() -> list[Case]:
    cases: list[Case] = []

    def add(name: str, data: bytes, expected: Expected) -> None:
        cases.append(Case("entry", name, data, expected))

    def b_with(name: str, value: int, expected: Expected) -> None:
        add(f"string {name} {value}", region([a(), b(**{name: value}), c()]), expected)

    def named(name: str, value: int | str = "hello") -> Expected:
        return {"a.long": 7, name: value, "c.last": 9}

    for value in (-1000, -1, 0, 1, 4, 19, 21):
        b_with("name_offset", value, PLAIN)
    for value, name in {22: "b.tex", 23: "b.te", 26: "b", 27: ""}.items():
        b_with("name_offset", value, named(name))
    for value, expected in {INT_MIN: NEGATIVE, INT_MIN + 27: NEGATIVE, 28: NEGATIVE, 40: NEGATIVE, 41: STRUCTURE,
                            INT_MAX: STRUCTURE}.items():
        b_with("name_offset", value, expected)
    for value, text in {1: "", 2: "he", 5: "hello", 6: "hello", 13: "hello", 100: "hello", 3997: "hello"}.items():
        b_with("vector_length", value, named("b.text", text))
    for value, expected in {0: TYPE, -1: ARGUMENT, INT_MIN: ARGUMENT, 3998: ARGUMENT, INT_MAX: ARGUMENT}.items():
        b_with("vector_length", value, expected)
    strings = {20: ("", "b.text"), 21: ("b", ".text"), 22: ("b.", "text"), 25: ("b.tex", "t"), 26: ("b.text", ""),
               28: ("b.text", "ello"), 33: ("b.text", ""), 39: ("b.text", ""), 40: ("b.text", "(")}
    for value, (name, text) in strings.items():
        b_with("data_offset", value, named(name, text))
    for value, expected in {-73: NEGATIVE, -1: NEGATIVE, 0: NEGATIVE, 19: NEGATIVE, 41: STRUCTURE,
                            INT_MAX: STRUCTURE}.items():
        b_with("data_offset", value, expected)
    for value, found in {0: "(", -40: "(", -72: java_text(b"\xca\xfe\xc0\xc0\x01\x02")}.items():
        data = region([a(), b(data_offset=value, name_offset=value), c()])
        add(f"string data before its entry {value}", data, named("", found))
    add("string data before the region", region([a(), b(data_offset=-73, name_offset=-73), c()]), ARGUMENT)

    for value in (-1, 0, 8, 19):
        add(f"long data_offset {value}", region([a(data_offset=value), b(), c()]), NEGATIVE)
    longs = {20: ("", 113724013424225), 21: ("a", 444234427438), 27: ("a.long", 7 << 40), 28: ("a.long", 7 << 32),
             29: ("a.long", 7 << 24), 31: ("a.long", 7 << 8), 33: ("a.long", 40 << 56), 36: ("a.long", 40 << 32),
             40: ("a.long", 40 | 20 << 32)}
    for value, (name, number) in longs.items():
        add(f"long data_offset {value}", region([a(data_offset=value), b(), c()]),
            {name: number, "b.text": "hello", "c.last": 9})
    add("long data_offset 41", region([a(data_offset=41), b(), c()]), STRUCTURE)
    add("long up to the end", region([a(), b(), c()], size=152), PLAIN)
    for value in (33, 36, 40):
        add(f"long beyond the end {value}", region([a(), b(), c(data_offset=value)], size=152), ARGUMENT)
    for value in (INT_MIN, -1, 1, 2, 100):
        add(f"long vector_length {value}", region([a(vector_length=value), b(), c()]), TYPE)

    for letter in "BZJISCDFVL[":
        code = ord(letter)
        add(f"long type {letter}", region([a(data_type=code), b(), c()]), PLAIN if letter == "J" else TYPE)
        add(f"string type {letter}", region([a(), b(data_type=code), c()]), PLAIN if letter == "B" else TYPE)
    for code in (0, 1, 11, ord("b"), ord("j"), 128, 128 + ord("B"), 128 + ord("J"), 255):
        add(f"type {code}", region([a(data_type=code), b(), c()]), STRUCTURE)
    for code in (-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 127, 128):
        known = 1 <= code <= 6
        add(f"long units {code}", region([a(units=code), b(), c()]), PLAIN if known else DATA)
        string = PLAIN if code == 5 else TYPE if known else DATA
        add(f"string units {code}", region([a(), b(units=code), c()]), string)
    for code in (-1, 0, 1, 2, 3, 4, 127, 128):
        add(f"long variability {code}", region([a(variability=code), b(), c()]), PLAIN if code in (1, 2, 3) else DATA)
        add(f"string variability {code}", region([a(), b(variability=code), c()]), PLAIN if code in (1, 3) else DATA)
    add("type before name_offset", region([a(data_type=0, name_offset=99, units=0)]), STRUCTURE)
    add("name_offset before variability", region([a(name_offset=99, variability=0)]), STRUCTURE)
    add("variability before the name", region([a(variability=0, name_offset=40)]), DATA)
    add("units before type and vector", region([a(units=0, vector_length=1)]), DATA)
    add("units of a vector before its length", region([b(units=1, vector_length=-1)]), TYPE)
    add("length of a vector before Monotonic", region([b(variability=2, vector_length=-1)]), ARGUMENT)
    add("Monotonic vector that is no string", region([b(variability=2, units=2)]), TYPE)
    add("scalar type before the data's place", region([c(data_offset=40, data_type=ord("B"))], size=72), TYPE)
    for flags in (0, 1, 2, 3, 128, 255):
        add(f"flags {flags}", region([a(flags=flags)]), {"a.long": 7})

    add("name up to the last byte", _tail(b"abcd", 24), UNDERFLOW)
    add("name up to the last byte but one", _tail(b"abcd", 23), {"abc": ""})
    add("name of a long up to the last byte", _tail(b"abcd", 24, vector_length=0, data_type="J"), UNDERFLOW)
    add("name up to the last byte, data before", _tail(b"abcd", 20, name_offset=16), UNDERFLOW)
    add("name up to the last byte but one, data before", _tail(b"abcd", 20, name_offset=17), {"abc": ""})
    add("name with its NUL in the last byte", _tail(b"abc\0", 20, name_offset=-20), {"abc": ""})
    add("name beyond the end", _tail(b"abcdabcd", 20, name_offset=-20), UNDERFLOW)
    add("string in the last byte", _tail(b"abc\0", 23), {"abc": ""})
    add("string behind the last byte", _tail(b"abc\0", 24), ARGUMENT)
    return cases


def _names() -> list[Case]:
    cases: list[Case] = []

    def add(name: str, data: bytes, expected: Expected, group: str = "names") -> None:
        cases.append(Case(group, name, data, expected))

    add("no NUL before a long", region([entry(b"abcdefghijk", 7).replace(b"k\0", b"kZ")]), {"abcdefghijkZ": 7})
    add("padding instead of a NUL", region([entry(b"abcde", 7).replace(b"e\0\0\0\0\0\0\0", b"eXYZWVUT")]),
        {"abcdeXYZWVUT": 7})
    add("no NUL before a string", region([entry(b"ab", b"hi\0").replace(b"ab\0", b"abc")]), {"abc": "hi"})
    add("empty", region([entry(b"", 1)]), {"": 1})
    add("empty, of a string", region([entry(b"", b"x\0")]), {"": "x"})
    add("blank and control characters", region([entry(b"a b\n\t\x01\x7f", 1)]), {"a b\n\t\x01\x7f": 1})
    add("the last of a name wins", region([entry(b"a", 1), entry(b"a", 2), entry(b"b", 3)]), {"a": 2, "b": 3})
    add("of another type too", region([entry(b"a", 1), entry(b"a", b"x\0")]), {"a": "x"})
    add("string over long", region([entry(b"a", b"x\0"), entry(b"a", 1)]), {"a": 1})
    add("string starts with NUL", region([entry(b"a", b"\0abc\0")]), {"a": ""})
    add("string with a NUL inside", region([entry(b"a", b"ab\0cd\0")]), {"a": "ab"})
    for variability in (1, 3):
        for raw, text in ((b"abcd", "abcd"), (b"x", "")):
            data = region([entry(b"a", raw, variability=variability)])
            add(f"no NUL in the string {text!r} {variability}", data, {"a": text})
    add("string beyond its entry", region([entry(b"ab", b"abcdefghi", vector_length=60), entry(b"b", 1)]),
        {"ab": "abcdefghi ", "b": 1})
    add("extremes", region([entry(b"a", -1), entry(b"b", 2**63 - 1), entry(b"c", -(2**63))]),
        {"a": -1, "b": 2**63 - 1, "c": -(2**63)})
    texts = (b"caf\xc3\xa9", b"\xe9", b"\xff\xfe", b"\xe2\x82", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80", b"\xc0\x80",
             b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xed", b"\xed\xa0", b"\xed\xa0\x80",
             b"\xed\xbf\xbf!", b"\xed\xa0!", b"\xed\xa0\xed", b"\xed\xa0\x80\xed\xb0\x80", b"\xed\x9f\xbf",
             b"\xed\xa0\x80\x80")
    for raw in texts:
        add(f"name {raw!r}", region([entry(raw, 1)]), {java_text(raw): 1}, "text")
        add(f"string {raw!r}", region([entry(b"a", raw + b"\0")]), {"a": java_text(raw)}, "text")
    return cases


V1_START: dict[str, int | bytes] = {
    "hotspot.rt.hrt.ticks": 5,
    "hotspot.rt.hrt.frequency": 1000,
    "java.vm.version": b"1.4.1\0",
    "java.vm.name": b"Java HotSpot(TM)\0",
    "hotspot.vm.args": b"-x\0",
}


def v1_start(changes: dict[str, int | bytes | None] | None = None, *, big: bool = False) -> list[bytes]:
    """The counters that the readers wait for; a change to None leaves one out."""
    values = {**V1_START, **(changes or {})}
    return [v1_entry(name.encode(), value, big=big) for name, value in values.items() if value is not None]


def _v1() -> list[Case]:
    cases: list[Case] = []
    known: dict[str, int | str] = {
        name: value if isinstance(value, int) else value[:-1].decode() for name, value in V1_START.items()
    }

    def add(name: str, entries: list[bytes], found: Expected, **fields: int) -> None:
        expected = found if isinstance(found, str) else {**known, **found}
        cases.append(Case("v1", name, v1_region([*v1_start(), *entries], **fields), expected))  # type: ignore[arg-type]

    def both(field: str, longs: dict[int, Expected], strings: dict[int, Expected]) -> None:
        for value, found in longs.items():
            made = v1_entry(b"a.long", 7, **{field: value})  # type: ignore[arg-type]
            add(f"long {field} {value}", [made, v1_entry(b"z", 1)], found)
        for value, found in strings.items():
            made = v1_entry(b"b.text", b"hello\0", **{field: value})  # type: ignore[arg-type]
            add(f"string {field} {value}", [made, v1_entry(b"z", 1)], found)

    def z(name: str, value: int | str) -> Expected:
        return {name: value, "z": 1}

    add("plain", [], {})
    cases.append(Case("v1", "big-endian", v1_region(v1_start(big=True), big=True), dict(known)))
    for field, values in {"reserved": (1, 7, -1), "used": (0, -1, INT_MAX), "overflow": (-1, 5), "byte_order": (2, -1),
                          "mod_time_stamp": (-1,)}.items():
        for value in values:
            add(f"{field} {value}", [], {}, **{field: value})
    add("minor 1", [], ARGUMENT, minor=1)
    sizes = {8: ARGUMENT, 23: ARGUMENT, 24: NOT_READY, 25: UNDERFLOW, 27: UNDERFLOW, 28: NOT_READY}
    for size, expected in sizes.items():
        cases.append(Case("v1", f"size {size}", v1_region([])[:size], expected))
    last_long = v1_region([*v1_start(), v1_entry(b"a.long", 7)])
    end = last_long.rindex(b"\x07" + bytes(7)) + 8
    cases.append(Case("v1", "ends with the last entry", last_long[:end], {**known, "a.long": 7}))
    cases.append(Case("v1", "last entry cut", last_long[: end - 1], STRUCTURE))
    cases.append(Case("v1", "one byte at the end", last_long[: end + 1], UNDERFLOW))

    both("entry_length",
         {-1: STRUCTURE, 0: {}, 1: STRUCTURE, 4: STRUCTURE, 8: {"a.long": 8 | 7 << 32}, 16: STRUCTURE, 23: STRUCTURE,
          30: STRUCTURE, 32: z("a.long", 7), 33: STRUCTURE, 40: {"a.long": 32 | 2 << 32}},
         {-1: STRUCTURE, 0: {}, 8: STRUCTURE, 28: {"b.text": "hello"}, 30: STRUCTURE, 32: z("b.text", "hello"),
          40: {"b.text": "hello"}})
    both("name_length",
         {-1: STRUCTURE, 0: STRUCTURE, 1: z("", 7), 2: z("a", 7), 6: z("a.lon", 7), 8: z("a.long\0", 7),
          16: z("a.long\0\0\x07" + "\0" * 6, 7), 33: STRUCTURE},
         {-1: STRUCTURE, 0: STRUCTURE, 1: z("", ".text"), 2: z("b", "text"), 6: z("b.tex", ""),
          8: z("b.text\0", "ello"), 33: STRUCTURE})
    both("vector_length",
         {-1: STRUCTURE, 1: TYPE, 32: TYPE, 33: STRUCTURE},
         {-1: STRUCTURE, 0: TYPE, 1: z("b.text", ""), 5: z("b.text", "hello"), 24: z("b.text", "hello"),
          32: z("b.text", "hello"), 33: STRUCTURE})
    types = (0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 66, 74, 99, 255)
    both("data_type",
         {code: z("a.long", 7) if code == 11 else TYPE for code in types},
         {code: z("b.text", "hello") if code == 8 else TYPE for code in types})
    both("units",
         {code: z("a.long", 7) if 1 <= code <= 6 else DATA for code in (-1, 0, 1, 5, 6, 7)},
         {-1: DATA, 0: DATA, 1: TYPE, 5: z("b.text", "hello"), 6: TYPE, 7: DATA})
    both("variability",
         {code: z("a.long", 7) if 1 <= code <= 3 else DATA for code in (-1, 0, 1, 2, 3, 4)},
         {code: z("b.text", "hello") if code in (1, 3) else DATA for code in (-1, 0, 1, 2, 3, 4)})
    add("NUL in a name", [v1_entry(b"a\0b", 7)], {"a\0b": 7})
    add("the last of a name wins", [v1_entry(b"a", 7), v1_entry(b"a", 8)], {"a": 8})
    for name in V1_START:
        others = {other: value for other, value in known.items() if other != name}
        needed = {17: ("hotspot.rt.hrt.ticks", "java.vm.version", "java.vm.name"), 25: ("hotspot.rt.hrt.frequency",)}
        data = v1_region(v1_start({name: None}))
        for release, names in needed.items():
            missing = NOT_READY if name.startswith("hotspot") else "NullPointerException"
            cases.append(Case("v1", f"without {name}", data, missing if name in names else others, release))
    for release, name in {17: "hotspot.rt.hrt.ticks", 25: "hotspot.rt.hrt.frequency"}.items():
        cases.append(Case("v1", f"{name} 0", v1_region(v1_start({name: 0})), NOT_READY, release))
        cases.append(Case("v1", f"{name} text", v1_region(v1_start({name: b"x\0"})), "ClassCastException", release))
    return cases


CASES = _prologue() + _walk() + _entry() + _names() + _v1()
