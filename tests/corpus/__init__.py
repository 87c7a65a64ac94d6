"""Regions written by real HotSpots, and some made by hand: test data for every reader.

README.md says what they are, ORIGIN.md where each comes from.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

DIRECTORY = Path(__file__).parent / "regions"
SUFFIX = ".hsperf.gz"


@cache
def names() -> tuple[str, ...]:
    """Every region's name, sorted; those made by hand begin with `made-`."""
    return tuple(sorted(path.name.removesuffix(SUFFIX) for path in DIRECTORY.glob("*" + SUFFIX)))


@cache
def load(name: str) -> bytes:
    """A region's bytes as its writer left them."""
    return gzip.decompress((DIRECTORY / (name + SUFFIX)).read_bytes())


def regions() -> dict[str, bytes]:
    return {name: load(name) for name in names()}


def write(directory: Path) -> dict[str, Path]:
    """The regions as plain files, for tools that want a path."""
    paths = {name: directory / name for name in names()}
    for name, path in paths.items():
        path.write_bytes(load(name))
    return paths
