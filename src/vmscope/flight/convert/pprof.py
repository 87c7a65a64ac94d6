"""pprof's format: a message of protocol buffers, `perftools.profiles.Profile`, compressed."""

from __future__ import annotations

import gzip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from vmscope.flight.convert.profile import Profile

# Numbers of fields in profile.proto
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING_TABLE, _TIME, _DURATION = 1, 2, 4, 5, 6, 9, 10
_TYPE, _UNIT = 1, 2  # of ValueType
_LOCATION_ID, _VALUE, _LABEL = 1, 2, 3  # of Sample
_KEY, _STR = 1, 2  # of Label
_ID, _LINE = 1, 4  # of Location
_FUNCTION_ID = 1  # of Line
_NAME, _SYSTEM_NAME = 2, 3  # of Function

_KINDS = {"bytes": "alloc_space", "nanoseconds": "time", "exceptions": "exceptions", "samples": "samples"}
_UNITS = {"samples": "count", "exceptions": "count"}


def pprof(profile: Profile) -> bytes:
    """The file's bytes, the same for the same profile."""
    strings = _Strings()
    sample_type = _number(_TYPE, strings[_KINDS[profile.unit]])
    sample_type += _number(_UNIT, strings[_UNITS.get(profile.unit, profile.unit)])
    parts = [_bytes(_SAMPLE_TYPE, sample_type)]
    for (thread, stack), weight in profile.stacks.items():
        label = _number(_KEY, strings["thread"]) + _number(_STR, strings[thread])
        locations = _packed(_LOCATION_ID, (frame + 1 for frame in reversed(stack)))
        parts.append(_bytes(_SAMPLE, locations + _packed(_VALUE, [weight]) + _bytes(_LABEL, label)))
    for number, (name, _) in enumerate(profile.frames, 1):
        line = _bytes(_LINE, _number(_FUNCTION_ID, number))
        parts.append(_bytes(_LOCATION, _number(_ID, number) + line))
        text = strings[name]
        function = _number(_ID, number) + _number(_NAME, text) + _number(_SYSTEM_NAME, text)
        parts.append(_bytes(_FUNCTION, function))
    parts += [_bytes(_STRING_TABLE, text.encode("utf-8", "backslashreplace")) for text in strings.numbers]
    parts += [_number(_TIME, profile.begin), _number(_DURATION, profile.end - profile.begin)]
    return gzip.compress(b"".join(parts), mtime=0)


class _Strings:
    """The table of strings, the first of which is empty."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers = {"": 0}

    def __getitem__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, values)))
