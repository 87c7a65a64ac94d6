"""Text as JNI and JVM TI have it: modified UTF-8, in which NUL is two bytes and each UTF-16 surrogate three."""

from __future__ import annotations

import re

_OTHERWISE = re.compile("[\0\U00010000-\U0010ffff]")


def encode(text: str) -> bytes:
    """Without a NUL at its end; surrogates that stand alone go through."""
    if not text.isascii() or "\0" in text:
        return _OTHERWISE.sub(_pair, text).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    return text.encode("ascii")


def decode(data: bytes) -> str:
    """What is no modified UTF-8 comes as Python has undecodable file names: each such byte a surrogate."""
    if data.isascii():
        return data.decode("ascii")
    try:
        text = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _pair(found: re.Match[str]) -> str:
    """The two surrogates of a character beyond the first plane."""
    character = found[0]
    if character == "\0":
        return character
    rest = ord(character) - 0x10000
    return chr(0xD800 | rest >> 10) + chr(0xDC00 | rest & 0x3FF)
