"""Modified UTF-8, and UTF-16 as it lies in memory: the two ways in which JNI hands text over.

Modified UTF-8 is UTF-8 of UTF-16's units: a character above U+FFFF is two of them and six bytes. NUL is C0 80.
"""

from __future__ import annotations

NUL, LONG_NUL = b"\0", b"\xc0\x80"
FOUR_BYTES = 0xF0  # begins a sequence of UTF-8 that modified UTF-8 does not have


def encode(text: str) -> bytes:
    """Modified UTF-8, without a NUL at its end. Surrogates that stand alone are taken as they are."""
    if text.isascii():
        raw = text.encode("ascii")
    elif max(text) <= "\uffff":
        raw = text.encode("utf-8", "surrogatepass")
    else:
        raw = "".join(map(chr, units(text))).encode("utf-8", "surrogatepass")
    return raw.replace(NUL, LONG_NUL)


def decode(raw: bytes) -> str:
    """What a JVM makes of it: a byte that is not modified UTF-8 stands for itself, and there are as many units as bytes
    that begin one, so that what follows malformed bytes may be cut off."""
    if raw.isascii():
        return raw.decode("ascii")
    if max(raw) < FOUR_BYTES:
        try:
            return joined(raw.replace(LONG_NUL, NUL).decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            pass  # as below
    return joined("".join(_leniently(raw)))


def _leniently(raw: bytes) -> list[str]:
    found, place = [], 0
    padded = raw + b"\0\0"
    while place < len(raw):
        first, second, third = padded[place : place + 3]
        length = 1
        if second & 0xC0 == 0x80:
            if first & 0xE0 == 0xC0:
                length = 2
            elif first & 0xF0 == 0xE0 and third & 0xC0 == 0x80:
                length = 3
        unit = (
            first
            if length == 1
            else (first & 0x1F) << 6 | second & 0x3F
            if length == 2
            else (first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F
        )
        found.append(chr(unit))
        place += length
    return found[: sum(byte & 0xC0 != 0x80 for byte in raw)]


def joined(text: str) -> str:
    """With each pair of surrogates the character that it stands for."""
    if not text or max(text) < "\ud800":
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def units(text: str) -> memoryview[int]:
    """UTF-16's, as numbers."""
    return memoryview(utf_16(text)).cast("H")


def utf_16(text: str) -> bytes:
    """As a `jchar` array has it."""
    return text.encode("utf-16-le", "surrogatepass")


def from_utf_16(raw: bytes) -> str:
    return raw.decode("utf-16-le", "surrogatepass")


def length(text: str) -> int:
    """How many units of UTF-16 it has."""
    return len(text) if not text or max(text) <= "\uffff" else len(utf_16(text)) // 2
