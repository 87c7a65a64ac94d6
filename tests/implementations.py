"""The two forms of the native part, so that one suite runs on both."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from vmscope.native import (
    census,
    collector,
    dispatch,
    dump,
    entries,
    frames,
    gate,
    histogram,
    later,
    locks,
    mirror,
    picture,
    quiet,
    slots,
    states,
    tally,
    tasks,
    thread,
    tracked,
    walk,
)

_PARTS: tuple[types.ModuleType, ...] = (
    *(slots, histogram, thread, later, entries, mirror, collector, dispatch),
    *(gate, locks, states, picture, quiet, tally, tasks, tracked, census, dump, walk),
    frames,
)
if sys.platform != "win32":
    from vmscope.native import beneath, descriptor, listener

    _PARTS += (beneath, descriptor, listener)
_TWIN = types.SimpleNamespace(
    IMPLEMENTATION="python",
    **{name: getattr(module, name) for module in _PARTS for name in module.__all__},
)


def both() -> list[Any]:
    """pytest parameters: the extension and the twin."""
    try:
        from vmscope.native import _native  # type: ignore[attr-defined]
    except ImportError:
        extension = pytest.param(None, id="c", marks=pytest.mark.skip(reason="the extension is not built"))
    else:
        extension = pytest.param(_native, id="c")
    return [extension, pytest.param(_TWIN, id="python")]
