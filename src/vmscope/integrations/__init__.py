"""Drop-ins: other libraries' metrics, whose values are counters of this process's region."""

from __future__ import annotations

import re

_NOT_OF_A_LABEL = re.compile(r"[^A-Za-z0-9_]")


def label_name(name: str) -> str:
    """The name of a label for what another library calls a tag or an attribute."""
    found = _NOT_OF_A_LABEL.sub("_", name)
    return f"_{found}" if not found or found[0].isdigit() or found == "le" else found
