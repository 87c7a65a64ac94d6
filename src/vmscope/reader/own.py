"""This process's own region where it has no file: its memory."""

from __future__ import annotations

import sys

from vmscope import native
from vmscope.native.region import mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class OwnMemory(mapping.Mapping):
    """The image, as a file's mapping is read; each read brings it up to date."""

    __slots__ = ("_mirror",)
    closed = False

    def __init__(self, mirror: native.Mirror) -> None:
        self._mirror = mirror
        self.size = len(mirror.image)

    def grow(self, size: int) -> bool:
        self.size = len(self._mirror.image)
        return size <= self.size

    def read(self, offset: int, length: int) -> bytes:
        self._check(offset, length)
        self._mirror.refresh()
        return bytes(self._mirror.image[offset : offset + length])

    def close(self) -> None:
        """Nothing: it is this process's for good."""


def own_memory() -> native.Mapping | None:
    """None where this process has no region."""
    runtime = sys.modules.get("vmscope.runtime")
    region = None if runtime is None else runtime.VM.region
    return None if region is None else OwnMemory(region.mirror)  # type: ignore[return-value]  # is used as one


def gather_all(mappings: Iterable[native.Mapping]) -> Callable[..., list[int]]:
    """What samples all of these at once."""
    kind: Any = OwnMemory if any(isinstance(each, OwnMemory) for each in mappings) else native.Mapping
    gather: Callable[..., list[int]] = kind.gather_all
    return gather
