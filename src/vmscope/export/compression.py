"""gzip, as fast as it gets: what is compressed is sent once."""

from __future__ import annotations

import zlib


def compressed(body: bytes) -> bytes:
    maker = zlib.compressobj(1, wbits=31)
    return maker.compress(body) + maker.flush()
