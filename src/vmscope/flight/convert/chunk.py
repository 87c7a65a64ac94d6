"""A chunk: a whole recording in itself, of which a file has one after the other."""

from __future__ import annotations

from struct import Struct

from vmscope.errors import RecordingFormatError
from vmscope.flight.convert.encoding import Integers, PooledString, signed
from vmscope.flight.convert.metadata import STRING, Types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from vmscope.flight.convert.metadata import Field, Type

MAGIC = b"FLR\0"
HEADER = Struct(">4sHHqqqqqqqBBBB")  # 68 bytes: see Header

_METADATA, _CHECKPOINT = 0, 1  # numbers of events
_COMPRESSED = 1  # flag
_SECOND = 10**9


class Header:
    """What stands before a chunk's events."""

    __slots__ = (
        "checkpoint", "compressed", "duration", "generation", "metadata", "size", "start", "start_ticks",
        "ticks_per_second", "version",
    )  # fmt: skip

    size: int
    checkpoint: int
    metadata: int
    start: int
    duration: int
    start_ticks: int
    ticks_per_second: int
    generation: int

    def __init__(self, data: bytes) -> None:
        """From its 68 bytes. ValueError."""
        (
            magic, major, minor, self.size, self.checkpoint, self.metadata, self.start, self.duration,
            self.start_ticks, self.ticks_per_second, self.generation, _, _, flags,
        ) = HEADER.unpack(data)  # fmt: skip
        self.version = (major, minor)
        self.compressed = bool(flags & _COMPRESSED)
        if magic != MAGIC:
            raise ValueError("no flight recording, or what follows one: a chunk begins with FLR")
        if major != 2:
            raise ValueError(f"version {major}.{minor} of the format; this reads 2.0 and 2.1")
        if self.generation or not self.size:
            raise ValueError("a chunk that is not finished: its process writes it, or was killed then")
        if self.size < HEADER.size or self.ticks_per_second <= 0:
            raise ValueError(f"a chunk of {self.size} bytes and {self.ticks_per_second} ticks in a second")


class Value:
    """A value with fields. What a field refers to is looked up when it is asked for."""

    __slots__ = ("chunk", "raw", "type")

    def __init__(self, type: Type, raw: list[object], chunk: Chunk) -> None:
        self.type = type
        self.raw = raw
        self.chunk = chunk

    def __contains__(self, name: str) -> bool:
        return name in self.type.fields

    def __getitem__(self, name: str) -> object:
        """A field: number, string, Value, list of these, or None. KeyError where the type has no such field."""
        field = self.type.fields[name]
        raw = self.raw[field.index]
        if field.array and isinstance(raw, list):
            return [self.chunk.resolve(field, each) for each in raw]
        return self.chunk.resolve(field, raw)

    def get(self, name: str) -> object:
        """A field; None where the type has no such field."""
        return self[name] if name in self.type.fields else None

    def number(self, name: str) -> int:
        """A field as a whole number; 0 where it is none."""
        value = self.get(name)
        return value if isinstance(value, int) else 0

    def text(self, name: str) -> str:
        """A field as a string; "" where it is none."""
        value = self.get(name)
        return value if isinstance(value, str) else ""

    def value(self, name: str) -> Value | None:
        """A field that has fields."""
        value = self.get(name)
        return value if isinstance(value, Value) else None

    def values(self, name: str) -> list[Value]:
        """The elements of an array that have fields."""
        value = self.get(name)
        return [each for each in value if isinstance(each, Value)] if isinstance(value, list) else []

    def key(self, name: str) -> int:
        """The key that a pooled field has in its pool."""
        raw = self.raw[self.type.fields[name].index] if name in self.type.fields else 0
        return raw if isinstance(raw, int) else 0


class Event(Value):
    """An event. Times are nanoseconds, since 1970 where they are points in time."""

    __slots__ = ()

    @property
    def start(self) -> int:
        return self.chunk.time(self.number("startTime"))

    @property
    def duration(self) -> int:
        return self.chunk.nanoseconds(self.number("duration"))


class Chunk:
    """A chunk in memory. `data` begins at `position` of the file `path`."""

    __slots__ = ("_integers", "_pools", "data", "header", "path", "position", "types")

    def __init__(self, path: str, position: int, header: Header, data: bytes) -> None:
        """Raises RecordingFormatError."""
        self.path = path
        self.position = position
        self.header = header
        self.data = data
        self._integers = Integers(header.compressed)
        self._pools: dict[int, dict[int, object]] = {}
        self.types = self._checked(header.metadata, self._read_types)

    # -- time

    def nanoseconds(self, ticks: int) -> int:
        """A duration."""
        return ticks * _SECOND // self.header.ticks_per_second

    def time(self, ticks: int) -> int:
        """A point in time, since 1970."""
        return self.header.start + self.nanoseconds(ticks - self.header.start_ticks)

    # -- reading

    def _checked(self, at: int, read: Callable[[bytes, int], Types]) -> Types:
        """What stands in the event at a position."""
        try:
            event, begin, number = self._event(at)
            if number != _METADATA:
                raise ValueError(f"an event of the type {number}, where the types should be described")
            return read(event, begin)
        except (IndexError, ValueError) as error:
            raise self._damaged(at, error) from None

    def _event(self, at: int) -> tuple[bytes, int, int]:
        """The bytes of the event at a position, where its fields begin, and the number of its type."""
        if not HEADER.size <= at < len(self.data):
            raise ValueError(f"an event at {at} of a chunk of {len(self.data)} bytes")
        size, begin = self._integers.integer(self.data, at)
        if not begin - at < size <= len(self.data) - at:
            raise ValueError(f"an event of {size} bytes, where {len(self.data) - at} are left")
        event = self.data[at : at + size]
        number, begin = self._integers.number(event, begin - at)
        return event, begin, number

    def _damaged(self, at: int, error: Exception) -> RecordingFormatError:
        at = min(max(at, 0), len(self.data))
        what = str(error) if isinstance(error, ValueError) else "it ends before its last value"
        return RecordingFormatError(
            f"{self.path} is damaged at byte {self.position + at}: {what}", path=self.path, offset=self.position + at
        )

    def _read_types(self, event: bytes, at: int) -> Types:
        for _ in range(3):  # start, duration, number
            _, at = self._integers.long(event, at)
        return Types(event, at, self._integers)

    # -- events

    def events(self, names: Callable[[str], bool]) -> Iterator[Event]:
        """The events of the types whose names are wanted, in the file's order. Raises RecordingFormatError."""
        wanted = {type.id: type for type in self.types.by_id.values() if names(type.name)}
        wanted = {id: type for id, type in wanted.items() if id > _CHECKPOINT and type.fields}
        if not wanted:
            return
        self._read_pools(self.types.pools_of(names))
        for at, number in self._positions(wanted):
            type = wanted[number]
            try:
                event, begin, _ = self._event(at)
                raw, _ = self.types.reader(type)(event, begin)
            except (IndexError, ValueError) as error:
                raise self._damaged(at, error) from None
            assert isinstance(raw, list)
            yield Event(type, raw, self)

    def _positions(self, wanted: Collection[int]) -> Iterator[tuple[int, int]]:
        """Where each event of the wanted types begins, and the number of its type: most are passed over here."""
        at, data, end = HEADER.size, self.data, len(self.data)
        integer, long = self._integers.integer, self._integers.number
        compressed = self.header.compressed
        try:
            while at < end:
                size, behind = data[at], at + 1
                if size > 127 or not compressed:
                    size, behind = integer(data, at)
                if not behind - at < size <= end - at:
                    raise ValueError(f"an event of {size} bytes, where {end - at} are left")
                number = data[behind]
                if number > 127 or not compressed:
                    number, _ = long(data, behind)
                if number in wanted:
                    yield at, number
                at += size
        except (IndexError, ValueError) as error:
            raise self._damaged(at, error) from None

    # -- pools

    def _read_pools(self, wanted: set[int]) -> None:
        """Follows the chain of checkpoints, the last one first, each of which says how far the one before is."""
        self._pools = {id: {} for id in wanted}
        at = self.header.checkpoint
        while at:
            try:
                event, begin, number = self._event(at)
                if number != _CHECKPOINT:
                    raise ValueError(f"an event of the type {number}, where a checkpoint should be")
                distance = self._read_checkpoint(event, begin)
                if distance > 0:
                    raise ValueError(f"a checkpoint whose predecessor is {distance} bytes behind it")
            except (IndexError, ValueError) as error:
                raise self._damaged(at, error) from None
            at = at + distance if distance else 0

    def _read_checkpoint(self, event: bytes, at: int) -> int:
        """Adds its values to the pools; how far away the checkpoint before is, 0 for none."""
        integers = self._integers
        _, at = integers.number(event, at)  # start
        _, at = integers.number(event, at)  # duration
        distance, at = integers.number(event, at)
        count, at = integers.count(event, at + 1)  # behind the flags
        for _ in range(count):
            number, at = integers.number(event, at)
            values, at = integers.count(event, at)
            type = self.types.by_id.get(number)
            if type is None:
                raise ValueError(f"a pool of the type {number}, which is missing")
            read = self.types.reader(type)
            pool = self._pools.get(number)
            if pool is None:
                pool = {}  # read, for there is no other way past it
            for _ in range(values):
                key, at = integers.number(event, at)
                pool[key], at = read(event, at)
        return distance

    def resolve(self, field: Field, raw: object) -> object:
        """What a field's raw value stands for."""
        if field.pooled:
            return self._pooled(field.type, raw)
        return self._value(field.type, raw)

    def _pooled(self, type: Type, key: object) -> object:
        raw = self._pools.get(type.id, {}).get(signed(key, 64)) if isinstance(key, int) else None
        return None if raw is None else self._value(type, raw)

    def pooled(self, name: str, key: int) -> Value | None:
        """The value of a key in the pool of a type."""
        type = self.types.by_name.get(name)
        value = None if type is None else self._pooled(type, key)
        return value if isinstance(value, Value) else None

    def _value(self, type: Type, raw: object, depth: int = 0) -> object:
        if isinstance(raw, list):
            if type.simple and len(raw) == 1 and depth < 4:
                (field,) = type.fields.values()
                return self._pooled(field.type, raw[0]) if field.pooled else self._value(field.type, raw[0], depth + 1)
            return Value(type, raw, self)
        if isinstance(raw, PooledString):
            string = self._pools.get(self._string_pool, {}).get(raw)
            return string if isinstance(string, str) else None
        if isinstance(raw, int) and not isinstance(raw, bool) and type.bits:
            return raw & 0xFFFF if type.name == "char" else signed(raw, type.bits)
        return raw

    @property
    def _string_pool(self) -> int:
        type = self.types.by_name.get(STRING)
        return -1 if type is None else type.id
