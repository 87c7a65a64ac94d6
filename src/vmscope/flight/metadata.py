"""The metadata event of a chunk: a tree of elements as bytes."""

from __future__ import annotations

import binascii
import time
from collections.abc import Iterable
from typing import NamedTuple


class Element(NamedTuple):
    name: str
    attributes: dict[str, str]
    children: list[Element]


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; of nine bytes the last has eight."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F and len(out) < 8:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


class _Strings(dict[str, int]):
    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]

    def encode(self) -> bytes:
        out = [varint(len(self))]
        for text in self:
            data = text.encode("utf-8", "replace")
            out.append(b"\x03" + varint(len(data)) + data)
        return b"".join(out)


def _encode(element: Element, strings: _Strings, out: list[bytes]) -> None:
    out.append(varint(strings[element.name]) + varint(len(element.attributes)))
    out += [varint(strings[text]) for pair in element.attributes.items() for text in pair]
    out.append(varint(len(element.children)))
    for child in element.children:
        _encode(child, strings, out)


def _region() -> Element:
    now = time.localtime()
    saved = 3_600 if now.tm_isdst > 0 else 0
    offset = now.tm_gmtoff - saved
    return Element("region", {"locale": "en", "gmtOffset": f"{offset}000", "dst": f"{saved}000"}, [])


def encode(classes: Iterable[Element]) -> bytes:
    """The whole event, its size first. Its id is made of the content: readers take equal ids for equal types."""
    strings, tree = _Strings(), list[bytes]()
    _encode(Element("root", {}, [Element("metadata", {}, list(classes)), _region()]), strings, tree)
    content = strings.encode() + b"".join(tree)
    identity = binascii.crc32(content) << 31 | binascii.crc32(content[::-1]) >> 1
    body = varint(0) + varint(0) + varint(0) + varint(identity) + content
    size = len(body) + 4
    return bytes(size >> shift & 0x7F | 0x80 for shift in (0, 7, 14)) + bytes([size >> 21]) + body
