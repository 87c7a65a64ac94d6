"""The two forms of the native part, so that one suite runs on both."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

import pytest

from vmscope.native.attach import protocol
from vmscope.native.counters import histogram, slots, tally
from vmscope.native.events import dispatch, suspend_gate
from vmscope.native.export import answer
from vmscope.native.heap import class_histogram, dump, gc_objects
from vmscope.native.locks import deferring_lock, locks
from vmscope.native.region import entries, mirror, walk
from vmscope.native.sampling import gc_probe, os_threads
from vmscope.native.stacks import stack_snapshot, thread_states
from vmscope.native.threads import delayed_call, thread

_PARTS: tuple[types.ModuleType, ...] = (
    *(slots, histogram, thread, delayed_call, entries, mirror, gc_probe, dispatch),
    *(
        suspend_gate,
        locks,
        thread_states,
        stack_snapshot,
        deferring_lock,
        tally,
        os_threads,
        gc_objects,
        class_histogram,
        dump,
        walk,
    ),
    protocol,
    answer,
)
if sys.platform != "win32":
    from vmscope.native.attach import listener
    from vmscope.native.files import beneath, descriptor

    _PARTS += (beneath, descriptor, listener)
_TWIN = types.SimpleNamespace(
    IMPLEMENTATION="python",
    **{name: getattr(module, name) for module in _PARTS for name in module.__all__},
)


ALONE = "VMSCOPE_TESTS_TWIN_ALONE"


def both() -> list[Any]:
    """pytest parameters: the extension and the twin."""
    try:
        from vmscope.native import _native  # type: ignore[attr-defined]
    except ImportError:
        extension = pytest.param(None, id="c", marks=pytest.mark.skip(reason="the extension is not built"))
    else:
        extension = pytest.param(_native, id="c")
    return [extension, pytest.param(_TWIN, id="python")]


def apart() -> list[Any]:
    """The same for what walks every object. That takes the twin twenty times as long in a worker that has collected
    thousands of tests: tests/integration/test_class_histogram_twin.py runs it in a process of its own."""
    extension, twin = both()
    return [twin if os.environ.get(ALONE) else extension]
