"""The parts that must be fast or must not hold the GIL: the extension, or its Python twins.

`VMSCOPE_NATIVE=0` picks the twins; so does an installation that found no compiler.
`IMPLEMENTATION` says which ones are in use, and `TWIN_REASON` why the twins are where the extension could be: ""
where it is, or where there is none for the system. The types stand in `__init__.pyi`.
"""

from __future__ import annotations

import sys

from vmscope import environ

SWITCHED_OFF = "VMSCOPE_NATIVE=0"

# Marks in the names of entries. They stand here as a start imports no wire/.
FLOAT = "#f64"  # ends the name of an entry whose number is the bits of a double
TIME = "#time"  # behind #mostrecent: the number says when the gauge without it was set, in ns since the epoch

_wanted = environ.get("VMSCOPE_NATIVE") != "0"
TWIN_REASON = "" if _wanted else SWITCHED_OFF
if _wanted:
    try:
        from vmscope.native._native import *  # noqa: F403
    except ImportError as _error:
        _wanted = False
        if sys.platform == "win32":  # for which there is none
            pass
        elif isinstance(_error, ModuleNotFoundError):
            TWIN_REASON = f"the extension is not built for {sys.implementation.cache_tag}"
        else:
            TWIN_REASON = f"the extension cannot be loaded: {_error}"
if "thread_states" not in globals():  # nor has an extension without the GIL
    from vmscope.native.events.suspend_gate import *  # noqa: F403
    from vmscope.native.locks.deferring_lock import *  # noqa: F403
    from vmscope.native.locks.locks import *  # noqa: F403
    from vmscope.native.stacks.thread_states import *  # noqa: F403
if "count_objects" not in globals():
    from vmscope.native.heap.class_histogram import *  # noqa: F403
    from vmscope.native.heap.dump import *  # noqa: F403
if "StackSnapshot" not in globals():
    from vmscope.native.stacks.stack_snapshot import *  # noqa: F403
if "read_os_threads" not in globals():
    from vmscope.native.sampling.os_threads import *  # noqa: F403
if "trace_allocations" not in globals():  # nor has one before 3.13
    from vmscope.native.events.allocations import *  # noqa: F403
if not _wanted:
    from vmscope.native.attach.protocol import *  # noqa: F403
    from vmscope.native.counters.cells import *  # noqa: F403
    from vmscope.native.counters.histogram import *  # noqa: F403
    from vmscope.native.counters.slots import *  # noqa: F403
    from vmscope.native.counters.tally import *  # noqa: F403
    from vmscope.native.events.dispatch import *  # noqa: F403
    from vmscope.native.export.answer import *  # noqa: F403
    from vmscope.native.heap.gc_objects import *  # noqa: F403
    from vmscope.native.region.entries import *  # noqa: F403
    from vmscope.native.region.mapping import *  # noqa: F403
    from vmscope.native.region.mirror import *  # noqa: F403
    from vmscope.native.region.walk import *  # noqa: F403
    from vmscope.native.sampling.gc_probe import *  # noqa: F403
    from vmscope.native.sampling.import_timer import *  # noqa: F403
    from vmscope.native.sampling.sampler import *  # noqa: F403
    from vmscope.native.signals.crash_handler import *  # noqa: F403
    from vmscope.native.stacks.exception_handlers import *  # noqa: F403
    from vmscope.native.threads.delayed_call import *  # noqa: F403
    from vmscope.native.threads.serving import *  # noqa: F403
    from vmscope.native.threads.thread import *  # noqa: F403

    if sys.platform != "win32":  # which has no such signals, sockets and locks
        from vmscope.native.attach.listener import *  # noqa: F403
        from vmscope.native.files.beneath import *  # noqa: F403
        from vmscope.native.files.descriptor import *  # noqa: F403
        from vmscope.native.region.file_lock import *  # noqa: F403
        from vmscope.native.signals.termination_signals import *  # noqa: F403

    IMPLEMENTATION = "python"
