"""The twin of gc_objects.c. Another thread may run before it has dropped the tuples that are just being filled."""

from __future__ import annotations

import gc

__all__ = ["tracked_objects"]


def tracked_objects(kind: type | None) -> list[object]:
    if kind is None:
        return [each for each in gc.get_objects() if type(each) is not tuple and type(each) is not frozenset]
    return [each for each in gc.get_objects() if type(each) is kind]
