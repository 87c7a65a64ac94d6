"""Writes flight recordings: small ones with whatever a test needs in them, in either kind of integers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

START = 1_700_000_000 * 10**9  # nanoseconds since 1970, and ticks
PRIMITIVES = ("boolean", "byte", "char", "short", "int", "long", "float", "double")
FORMATS = {"boolean": ">?", "byte": ">b", "float": ">f", "double": ">d"}
FIXED = {"char": ">H", "short": ">h", "int": ">i", "long": ">q"}
TICKS = [("jdk.jfr.Timestamp", "TICKS")]

# name: fields (name, type; "*" in front: by its pool, "[]" behind: an array)
SAMPLED = {
    "jdk.types.Symbol": ["string java.lang.String"],
    "java.lang.Class": ["name *jdk.types.Symbol"],
    "jdk.types.FrameType": ["description java.lang.String"],
    "jdk.types.ThreadState": ["name java.lang.String"],
    "java.lang.Thread": ["osName java.lang.String", "javaName java.lang.String", "javaThreadId long"],
    "jdk.types.Method": ["type *java.lang.Class", "name *jdk.types.Symbol", "descriptor *jdk.types.Symbol"],
    "jdk.types.StackFrame": ["method *jdk.types.Method", "lineNumber int", "type *jdk.types.FrameType"],
    "jdk.types.StackTrace": ["truncated boolean", "frames jdk.types.StackFrame[]"],
}
SAMPLE = ["startTime long", "sampledThread *java.lang.Thread", "stackTrace *jdk.types.StackTrace",
          "state *jdk.types.ThreadState"]  # fmt: skip
TIMED = ["startTime long", "duration long"]
OWN = ["eventThread *java.lang.Thread", "stackTrace *jdk.types.StackTrace"]
EVENTS = {
    "jdk.ExecutionSample": SAMPLE,
    "jdk.NativeMethodSample": SAMPLE,
    "vmscope.WaitSample": [*TIMED, *SAMPLE[1:], "samples long"],
    "vmscope.GILWait": [*TIMED, *OWN],
    "jdk.ObjectAllocationSample": [
        "startTime long", "eventThread *java.lang.Thread", "stackTrace *jdk.types.StackTrace",
        "objectClass *java.lang.Class", "weight long",
    ],
    "jdk.JavaMonitorEnter": [*TIMED, *OWN, "monitorClass *java.lang.Class"],
    "jdk.ThreadPark": [*TIMED, *OWN, "parkedClass *java.lang.Class"],
    "jdk.JavaExceptionThrow": [*TIMED, *OWN, "message java.lang.String", "thrownClass *java.lang.Class"],
}  # fmt: skip
SIMPLE = ("jdk.types.Symbol", "jdk.types.FrameType", "jdk.types.ThreadState")


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the ninth has eight."""
    value &= (1 << 64) - 1
    data = bytearray()
    while value > 127 and len(data) < 8:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


class Writer:
    """One chunk: `event(name, *values)`, `pooled(type, *values)` for a key, then `chunk()`.

    A string is written as UTF-8; a value for an array is a list, for a type with fields a tuple, for a pooled field its
    key.
    """

    def __init__(
        self,
        events: Mapping[str, Sequence[str]] = EVENTS,
        types: Mapping[str, Sequence[str]] = SAMPLED,
        *,
        compressed: bool = True,
        minor: int = 1,
        ticks_per_second: int = 10**9,
    ) -> None:
        self.fields: dict[str, list[tuple[str, str, bool, bool]]] = {
            name: [] for name in (*PRIMITIVES, "java.lang.String")
        } | {name: [self._field(each) for each in fields] for name, fields in {**types, **events}.items()}
        self.events = set(events)
        self.numbers = {name: number for number, name in enumerate(self.fields, 20)}
        self.compressed = compressed
        self.minor = minor
        self.ticks_per_second = ticks_per_second
        self.body: list[bytes] = []
        self.pools: dict[str, dict[tuple[object, ...], int]] = {}

    @staticmethod
    def _field(text: str) -> tuple[str, str, bool, bool]:
        name, type = text.split(" ")
        return name, type.strip("*[]"), type.startswith("*"), type.endswith("[]")

    # -- values

    def number(self, kind: str, value: int | float) -> bytes:
        if kind in FORMATS:
            return struct.pack(FORMATS[kind], value)
        if not self.compressed:
            return struct.pack(FIXED[kind], value)
        if kind == "int":
            value = int(value) & 0xFFFFFFFF
        return varint(int(value))

    def string(self, text: str | bytes | None) -> bytes:
        """Bytes stand there as they are."""
        if text is None or isinstance(text, bytes):
            return text or b"\0"
        data = text.encode("utf-8", "surrogatepass")
        return b"\3" + self.number("int", len(data)) + data

    def value(self, type: str, value: object) -> bytes:
        if type == "java.lang.String":
            assert value is None or isinstance(value, (str, bytes))
            return self.string(value)
        if type in PRIMITIVES:
            assert isinstance(value, (int, float))
            return self.number(type, value)
        assert isinstance(value, tuple), (type, value)
        return self.struct(type, value)

    def struct(self, name: str, values: Sequence[object]) -> bytes:
        data = b""
        for (_, type, pooled, array), value in zip(self.fields[name], values, strict=True):
            ones = value if array else [value]
            assert isinstance(ones, list)
            if array:
                data += self.number("int", len(ones))
            data += b"".join(self.value("long" if pooled else type, one) for one in ones)
        return data

    # -- what a test puts in

    def event(self, name: str, *values: object) -> None:
        self.body.append(self.sized(self.number("long", self.numbers[name]) + self.struct(name, values)))

    def pooled(self, type: str, *values: object) -> int:
        """The key of a value, the same for the same one."""
        pool = self.pools.setdefault(type, {})
        key = tuple(tuple(value) if isinstance(value, list) else value for value in values)
        return pool.setdefault(key, len(pool) + 1)

    def stack(self, *names: str, kind: str = "Interpreted") -> int:
        """The key of a stack, given from its root on: `shop/Orders.price`, `shop/Orders.price:12`."""
        frames = []
        for name in reversed(names):
            name, _, line = name.partition(":")
            owner, _, method = name.rpartition(".")
            type = self.pooled("java.lang.Class", self.pooled("jdk.types.Symbol", owner))
            descriptor = self.pooled("jdk.types.Symbol", "()V")
            method_key = self.pooled("jdk.types.Method", type, self.pooled("jdk.types.Symbol", method), descriptor)
            frames.append((method_key, int(line or 1), self.pooled("jdk.types.FrameType", kind)))
        return self.pooled("jdk.types.StackTrace", False, frames)

    def thread(self, name: str) -> int:
        return self.pooled("java.lang.Thread", name, name, 1)

    def type(self, name: str) -> int:
        """The key of a class."""
        return self.pooled("java.lang.Class", self.pooled("jdk.types.Symbol", name))

    def sample(self, name: str, thread: str, *stack: str, at: int = 0) -> None:
        """An ExecutionSample or a NativeMethodSample, some nanoseconds after the start."""
        state = self.pooled("jdk.types.ThreadState", "STATE_RUNNABLE")
        self.event(name, START + at, self.thread(thread), self.stack(*stack), state)

    def wait(self, thread: str, samples: int, *stack: str) -> None:
        state = self.pooled("jdk.types.ThreadState", "STATE_SLEEPING")
        self.event("vmscope.WaitSample", START, 1, self.thread(thread), self.stack(*stack), state, samples)

    # -- the bytes

    def sized(self, body: bytes) -> bytes:
        """An event, its size in front."""
        if not self.compressed:
            return struct.pack(">i", 4 + len(body)) + body
        size = len(body) + 1
        while len(varint(size)) + len(body) != size:
            size = len(varint(size)) + len(body)
        return varint(size) + body

    def checkpoint(self, pools: Mapping[str, Mapping[tuple[object, ...], int]], distance: int) -> bytes:
        long = self.number
        body = long("long", 1) + long("long", START) + long("long", 0) + long("long", distance) + b"\0"
        body += self.number("int", len(pools))
        for name, values in pools.items():
            body += long("long", self.numbers[name]) + self.number("int", len(values))
            for value, key in values.items():
                body += long("long", key)
                if name == "java.lang.String":
                    assert isinstance(value[0], str)
                    body += self.string(value[0])
                else:
                    body += self.struct(name, [list(each) if isinstance(each, tuple) else each for each in value])
        return self.sized(body)

    def metadata(self) -> bytes:
        strings: dict[str, int] = {}

        def word(text: str) -> bytes:
            return self.number("int", strings.setdefault(text, len(strings)))

        def element(name: str, attributes: Mapping[str, object], *children: bytes) -> bytes:
            data = word(name) + self.number("int", len(attributes))
            for key, value in attributes.items():
                data += word(key) + word(str(value))
            return data + self.number("int", len(children)) + b"".join(children)

        classes = []
        for name, fields in self.fields.items():
            attributes: dict[str, object] = {"id": self.numbers[name], "name": name}
            if name in self.events:
                attributes["superType"] = "jdk.jfr.Event"
            if name in SIMPLE:
                attributes["simpleType"] = "true"
            described = []
            for field, type, pooled, array in fields:
                of: dict[str, object] = {"name": field, "class": self.numbers[type]}
                if pooled:
                    of["constantPool"] = "true"
                if array:
                    of["dimension"] = 1
                described.append(element("field", of))
            classes.append(element("class", attributes, *described))
        region = element("region", {"locale": "en", "gmtOffset": "0"})
        tree = element("root", {}, element("metadata", {}, *classes), region)
        body = b"".join(self.number("long", value) for value in (0, START, 0, 1))
        body += self.number("int", len(strings)) + b"".join(map(self.string, strings))
        return self.sized(body + tree)

    def chunk(self, *, change: Callable[[bytearray], None] | None = None) -> bytes:
        """The whole chunk, with the pools in two checkpoints."""
        pools = list(self.pools.items())
        half = len(pools) // 2
        first = self.checkpoint(dict(pools[:half]), 0)
        between = b"".join(self.body)
        distance = -(len(first) + len(between))
        last = self.checkpoint(dict(pools[half:]), distance)
        metadata = self.metadata()
        size = 68 + len(first) + len(between) + len(last) + len(metadata)
        header = struct.pack(
            ">4sHHqqqqqqqBBBB", b"FLR\0", 2, self.minor, size, 68 + len(first) + len(between), size - len(metadata),
            START, 10**9, START, self.ticks_per_second, 0, 0, 0, int(self.compressed),
        )  # fmt: skip
        data = bytearray(header + first + between + last + metadata)
        if change is not None:
            change(data)
        return bytes(data)
