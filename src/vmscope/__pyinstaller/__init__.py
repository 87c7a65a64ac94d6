"""What PyInstaller asks installed packages for: where their hooks are.

A program that PyInstaller has bundled answers as any other does. Diagnostic commands, agents and instruments are
imported by name when they are asked for, so that its analysis of imports alone finds few of them.
"""

from __future__ import annotations

import os


def get_hook_dirs() -> list[str]:
    """By the entry point `hook-dirs` of the group `pyinstaller40`."""
    return [os.path.dirname(__file__)]
