"""gzip, as fast as it gets: what is compressed is sent once."""

from __future__ import annotations

import zlib


def compressed(body: bytes) -> bytes:
    maker = zlib.compressobj(1, wbits=31)
    return maker.compress(body) + maker.flush()


def accepted(header: str) -> bool:
    """Whether a client that sends this Accept-Encoding takes gzip."""
    for part in header[:1024].split(","):
        coding, _, quality = part.replace(" ", "").lower().partition(";q=")
        if coding in ("gzip", "*"):
            return not quality or quality.strip("0.") != ""
    return False
