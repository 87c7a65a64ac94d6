"""The twin of beneath.c: what stands in a directory, on the same mount."""

from __future__ import annotations

from vmscope.mounts import open_beneath

__all__ = ["open_beneath"]
