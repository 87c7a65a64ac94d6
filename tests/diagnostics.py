"""Diagnostic commands of this process, as `jcmd` runs them."""

from __future__ import annotations

import io

import pytest

from vmscope import commands
from vmscope.errors import CommandError


def run(line: str) -> str:
    """What the command prints."""
    out = io.StringIO()
    commands.execute(line, out)
    return out.getvalue()


def refused(line: str) -> str:
    """What it says as it refuses."""
    with pytest.raises(CommandError) as refusal:
        run(line)
    return str(refusal.value)
