"""HotSpot's serviceability for CPython."""

from __future__ import annotations

__version__ = "0.1.0"
