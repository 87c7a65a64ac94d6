"""OTLP: a table as an ExportMetricsServiceRequest.

All that changes from one request to the next has 8 bytes: so a layout's request is made once, with gaps where a time or
a value stands, and then only filled in.
"""

from __future__ import annotations

import struct

from vmscope.export import protobuf
from vmscope.export.model import COUNTER, HISTOGRAM, SUMMARY, Family

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vmscope.export.table import Line, Number, Table

CUMULATIVE, DELTA = "cumulative", "delta"
_TEMPORALITY = {DELTA: 1, CUMULATIVE: 2}
_NOW, _START = -2, -3  # instead of a value's place; a start is that less its time
_GAP = bytes(8)
_ALL = (1 << 64) - 1
_HALF = 1 << 63

# Fields of the messages of opentelemetry/proto/metrics/v1, by their numbers.
_RESOURCE_METRICS = 1
_RESOURCE, _SCOPE_METRICS = 1, 2
_SCOPE, _METRICS = 1, 2
_NAME, _DESCRIPTION, _UNIT, _GAUGE, _SUM, _HISTOGRAM = 1, 2, 3, 5, 7, 9
_POINTS, _AGGREGATION, _MONOTONIC = 1, 2, 3
_P_START, _P_TIME, _P_DOUBLE, _P_INT, _P_ATTRIBUTES = 2, 3, 4, 6, 7
_H_COUNT, _H_SUM, _H_BUCKETS, _H_BOUNDS, _H_ATTRIBUTES = 4, 5, 6, 7, 9


class Piece:
    """Bytes with gaps: `size` of them in all; `parts` are the bytes between, `gaps` what stands in each gap."""

    __slots__ = ("gaps", "parts", "size")

    def __init__(self, data: bytes = b"") -> None:
        self.parts = [data]
        self.gaps: list[tuple[int, str]] = []
        self.size = len(data)

    def add(self, data: bytes) -> Piece:
        self.parts[-1] += data
        self.size += len(data)
        return self

    def gap(self, place: int, form: str) -> Piece:
        """A gap: `form` is `q`, `d` or `h`, a bucket, which is the value less that of the bucket before."""
        self.parts.append(b"")
        self.gaps.append((place, form))
        self.size += 8
        return self

    def extend(self, other: Piece) -> Piece:
        self.parts[-1] += other.parts[0]
        self.parts += other.parts[1:]
        self.gaps += other.gaps
        self.size += other.size
        return self


def _wrapped(field: int, pieces: Sequence[Piece]) -> Piece:
    """A message of these."""
    whole = Piece(protobuf.head(field, sum(piece.size for piece in pieces)))
    for piece in pieces:
        whole.extend(piece)
    return whole


class Encoder:
    """Encodes one table, again and again. `resources`: the attributes of each row."""

    def __init__(
        self, table: Table, resources: Sequence[Mapping[str, str | int]], *, temporality: str = CUMULATIVE,
        version: str = "", before: Encoder | None = None,
    ) -> None:  # fmt: skip
        self._delta = temporality == DELTA
        self._aggregation = _TEMPORALITY[temporality]
        self._positions: set[int] = set()  # of the values that a delta is taken of
        self.points = 0
        by_row: list[list[Piece]] = [[] for _ in table.rows]
        for family, lines in table.families:
            if family.otel is None:
                continue
            found: dict[int, list[Piece]] = {}
            for line in lines:
                found.setdefault(line.row, []).append(self._point(family, line))
            for row, points in found.items():
                by_row[row].append(self._metric(family, points))
                self.points += len(points)
        scope = protobuf.message(_SCOPE, protobuf.text(1, "vmscope"), protobuf.text(2, version))
        whole = Piece()
        for attributes, metrics in zip(resources, by_row, strict=True):
            resource = protobuf.message(_RESOURCE, _attributes(1, attributes))
            scoped = _wrapped(_SCOPE_METRICS, [Piece(scope), *metrics])
            whole.extend(_wrapped(_RESOURCE_METRICS, [Piece(resource), scoped]))
        self._lay_out(whole)
        self._before: list[Number] | None = None
        self._last = 0
        self._keys = (
            {
                (table.rows[line.row], family.name, line.labels, line.bounds): (line.position, _size(family, line))
                for family, lines in table.families
                for line in lines
            }
            if self._delta
            else {}
        )
        if before is not None and before._before is not None:
            self._continue(table.lines, before, before._before)

    def _continue(self, lines: int, old: Encoder, values: list[Number]) -> None:
        """Goes on where the encoder of the table before has ended: what was sent is not sent again."""
        self._last = old._last
        self._before = [0] * lines
        for key, (position, size) in self._keys.items():
            if key in old._keys:
                at, _ = old._keys[key]
                self._before[position : position + size] = values[at : at + size]

    def encode(self, values: list[Number], taken: int) -> bytes:
        """The request for these values, which were taken at this time, in ns since the epoch."""
        start, shown = self._last, values
        if self._delta:
            if self._before is not None:
                before = self._before
                shown = [
                    value - before[at] if at in self._positions and value >= before[at] else value
                    for at, value in enumerate(values)
                ]
            self._before = values
            self._last = taken
        out = self._out
        integers = [_signed(int(shown[place])) for place in self._integers]
        self._fill(self._integer_parts, struct.pack(f"<{len(integers)}q", *integers))
        self._fill(self._double_parts, struct.pack(f"<{len(self._doubles)}d", *(shown[at] for at in self._doubles)))
        buckets = [int(shown[place] - (shown[place - 1] if has else 0)) for place, has in self._buckets]
        self._fill(self._bucket_parts, struct.pack(f"<{len(buckets)}Q", *(max(0, count) & _ALL for count in buckets)))
        now = struct.pack("<q", taken)
        for at in self._now_parts:
            out[at] = now
        if self._delta and start:
            begin = struct.pack("<q", start)
            for at in self._start_parts:
                out[at] = begin
        return b"".join(out)

    def _fill(self, places: list[int], packed: bytes) -> None:
        out = self._out
        for at, begin in zip(places, range(0, len(packed), 8), strict=True):
            out[at] = packed[begin : begin + 8]

    def _lay_out(self, whole: Piece) -> None:
        """Parts and gaps in turn, in one list."""
        self._out: list[bytes] = [whole.parts[0]]
        self._integers: list[int] = []
        self._doubles: list[int] = []
        self._buckets: list[tuple[int, bool]] = []
        self._integer_parts: list[int] = []
        self._double_parts: list[int] = []
        self._bucket_parts: list[int] = []
        self._now_parts: list[int] = []
        self._start_parts: list[int] = []
        for (place, form), part in zip(whole.gaps, whole.parts[1:], strict=True):
            at = len(self._out)
            self._out += [_GAP, part]
            if place == _NOW:
                self._now_parts.append(at)
            elif place <= _START:
                self._start_parts.append(at)
                self._out[at] = struct.pack("<q", _START - place)
            elif form == "d":
                self._doubles.append(place)
                self._double_parts.append(at)
            elif form == "q":
                self._integers.append(place)
                self._integer_parts.append(at)
            else:
                self._buckets.append((place, form == "h"))
                self._bucket_parts.append(at)

    def _metric(self, family: Family, points: list[Piece]) -> Piece:
        assert family.otel is not None
        about = protobuf.text(_NAME, family.otel.name) + protobuf.text(_DESCRIPTION, family.help)
        about += protobuf.text(_UNIT, family.otel.unit)
        wrapped = [_wrapped(_POINTS, [point]) for point in points]
        aggregation = protobuf.number(_AGGREGATION, self._aggregation)
        if family.type in (HISTOGRAM, SUMMARY):
            data = _wrapped(_HISTOGRAM, [*wrapped, Piece(aggregation)])
        elif family.type == COUNTER:
            data = _wrapped(_SUM, [*wrapped, Piece(aggregation + protobuf.boolean(_MONOTONIC, True))])
        else:
            data = _wrapped(_GAUGE, wrapped)
        return _wrapped(_METRICS, [Piece(about), data])

    def _point(self, family: Family, line: Line) -> Piece:
        assert family.otel is not None
        names = family.otel.attributes
        attributes = {names.get(name, name): value for name, value in line.labels}
        start = _START - int(line.created * 1e9)  # which only a delta replaces
        piece = Piece(protobuf.fixed(_P_START)).gap(start, "q").add(protobuf.fixed(_P_TIME)).gap(_NOW, "q")
        at = line.position
        if family.type in (HISTOGRAM, SUMMARY):
            count = at + len(line.bounds)
            self._positions.update(range(at, count + 2))
            piece.add(protobuf.fixed(_H_COUNT)).gap(count, "b").add(protobuf.fixed(_H_SUM)).gap(count + 1, "d")
            piece.add(protobuf.head(_H_BUCKETS, 8 * (len(line.bounds) or 1)))
            for number in range(len(line.bounds) or 1):
                piece.gap(at + number, "h" if number else "b")
            bounds = protobuf.doubles(_H_BOUNDS, (float(bound) for bound in line.bounds[:-1]))
            return piece.add(bounds + _attributes(_H_ATTRIBUTES, attributes))
        if family.type == COUNTER:
            self._positions.add(at)
        piece.add(protobuf.fixed(_P_DOUBLE if line.double else _P_INT)).gap(at, "d" if line.double else "q")
        return piece.add(_attributes(_P_ATTRIBUTES, attributes))


def _size(family: Family, line: Line) -> int:
    """How many values a point has."""
    return len(line.bounds) + 2 if family.type in (HISTOGRAM, SUMMARY) else 1


def _attributes(field: int, found: Mapping[str, str | int]) -> bytes:
    return b"".join(
        protobuf.message(field, protobuf.text(1, name), protobuf.message(2, _value(value)))
        for name, value in found.items()
    )


def _value(value: str | int) -> bytes:
    return protobuf.text(1, value) if isinstance(value, str) else protobuf.number(3, value)


def _signed(value: int) -> int:
    """As 64 bits have it: what hostile VMs add up to may be more."""
    return value if -_HALF <= value < _HALF else (value + _HALF & _ALL) - _HALF
