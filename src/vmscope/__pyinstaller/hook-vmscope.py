"""Bundles every module of vmscope with a program that imports it."""

from __future__ import annotations

from PyInstaller.utils.hooks import collect_submodules


def is_ours(name: str) -> bool:
    """Not what PyInstaller alone needs."""
    return not name.startswith("vmscope.__")


hiddenimports = collect_submodules("vmscope", filter=is_ours)
