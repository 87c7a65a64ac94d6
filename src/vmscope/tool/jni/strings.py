"""JNI's functions about strings."""

from __future__ import annotations

from vmscope.tool.jni import text
from vmscope.tool.jni.base import Group

UNIT = 2  # bytes


class Strings(Group):
    def new_string(self, units: int, size: int) -> str | None:
        if size < 0:
            raise ValueError(f"a string has no length of {size}")
        if not units:
            return "" if not size else None
        return text.from_utf_16(self.jni.read(units, size * UNIT))

    def new_string_utf(self, chars: int) -> str | None:
        return text.decode(self.jni.text(chars)) if chars else None

    def get_string_length(self, string: str) -> int:
        return text.length(string)

    def get_string_utf_length(self, string: str) -> int:
        return len(text.encode(string))

    def get_string_chars(self, string: str, is_copy: int) -> int:
        return self.lend(text.utf_16(string) + b"\0\0", string, is_copy)

    def get_string_utf_chars(self, string: str, is_copy: int) -> int:
        return self.lend(text.encode(string) + b"\0", string, is_copy)

    def release_string(self, string: str, address: int) -> None:
        self.lent(address)
        self.take_back(address)

    def get_string_region(self, string: str, start: int, size: int, to: int) -> None:
        self.jni.write(to, region(string, start, size))

    def get_string_utf_region(self, string: str, start: int, size: int, to: int) -> None:
        self.jni.write(to, text.encode(text.from_utf_16(region(string, start, size))) + b"\0")


def region(string: str, start: int, size: int) -> bytes:
    """In UTF-16. IndexError, as StringIndexOutOfBoundsException."""
    raw = text.utf_16(string)
    if start < 0 or size < 0 or start + size > len(raw) // UNIT:
        raise IndexError(f"{size} characters from {start} on, of a string of {len(raw) // UNIT}")
    return raw[start * UNIT : (start + size) * UNIT]
