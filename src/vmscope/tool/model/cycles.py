"""Who waits for each other in a cycle."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from typing import TypeVar

    T = TypeVar("T", bound=Hashable)


def cycles(waits: Mapping[T, T]) -> list[list[T]]:
    """Each cycle once, of those who wait for one each."""
    found = []
    visited: set[T] = set()
    for begin in waits:
        path: list[T] = []
        at = begin
        while at in waits and at not in visited:
            visited.add(at)
            path.append(at)
            at = waits[at]
        if at in path:
            found.append(path[path.index(at) :])
    return found
