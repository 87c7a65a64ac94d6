"""The functions that change classes: redefine and retransform."""

from __future__ import annotations

import weakref
from types import CodeType

_obsolete: dict[int, weakref.ref[CodeType]] = {}  # by id; code objects compare by their contents


def is_obsolete(code: CodeType) -> bool:
    """Whether this very code object was replaced."""
    found = _obsolete.get(id(code))
    return found is not None and found() is code
