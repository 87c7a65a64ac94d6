"""Attributes of the program's modules and classes that vmscope replaces for a while.

An attribute that the program or another tool has replaced since stays as it is. That replacement may still call ours,
so ours does nothing but call the original once it is not wanted.

A start imports nothing of this: the import takes 0.06 ms. `termination.py` and `counters/standard.py`, which a start
needs, keep the same rule for their four functions, `own_threads.py` for the one that it replaces during a fork.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Patches:
    """Replacements that are undone together."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: list[tuple[Any, str, Any, Any]] = []  # owner, name, original (None: inherited), replacement

    def __bool__(self) -> bool:
        return bool(self._made)

    def replace(self, owner: Any, name: str, replacement: object) -> None:
        """Puts it in place. A class gets it past its metaclass."""
        self._made.append((owner, name, vars(owner).get(name), replacement))
        _set(owner, name, replacement)

    def undo(self) -> None:
        """Puts back the original of each that is still there, the last one first."""
        while self._made:
            owner, name, original, replacement = self._made.pop()
            if vars(owner).get(name) is replacement:
                _set(owner, name, original)

    def undo_all(self) -> bool:
        """Puts all originals back where all replacements are still there; else False, and nothing changes."""
        if any(vars(owner).get(name) is not replacement for owner, name, _, replacement in self._made):
            return False
        self.undo()
        return True


def _set(owner: Any, name: str, value: object) -> None:
    is_class = issubclass(type(owner), type)
    if value is not None:
        (type.__setattr__ if is_class else setattr)(owner, name, value)
    else:
        (type.__delattr__ if is_class else delattr)(owner, name)
