"""The parts that must be fast or must not hold the GIL: the extension, or its Python twins.

`VMSCOPE_NATIVE=0` picks the twins; so does an installation that found no compiler.
`IMPLEMENTATION` says which ones are in use, and `TWIN_REASON` why the twins are where the extension could be: ""
where it is, or where there is none for the system. The types stand in `__init__.pyi`.
"""

from __future__ import annotations

import sys

from vmscope import environ

SWITCHED_OFF = "VMSCOPE_NATIVE=0"

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
    from vmscope.native.gate import *  # noqa: F403
    from vmscope.native.locks import *  # noqa: F403
    from vmscope.native.quiet import *  # noqa: F403
    from vmscope.native.states import *  # noqa: F403
if "count_objects" not in globals():
    from vmscope.native.census import *  # noqa: F403
    from vmscope.native.dump import *  # noqa: F403
if "Picture" not in globals():
    from vmscope.native.picture import *  # noqa: F403
if "read_tasks" not in globals():
    from vmscope.native.tasks import *  # noqa: F403
if "trace_allocations" not in globals():  # nor has one before 3.13
    from vmscope.native.allocations import *  # noqa: F403
if not _wanted:
    from vmscope.native.collector import *  # noqa: F403
    from vmscope.native.dispatch import *  # noqa: F403
    from vmscope.native.entries import *  # noqa: F403
    from vmscope.native.fatal import *  # noqa: F403
    from vmscope.native.frames import *  # noqa: F403
    from vmscope.native.handlers import *  # noqa: F403
    from vmscope.native.histogram import *  # noqa: F403
    from vmscope.native.imports import *  # noqa: F403
    from vmscope.native.later import *  # noqa: F403
    from vmscope.native.mapping import *  # noqa: F403
    from vmscope.native.mirror import *  # noqa: F403
    from vmscope.native.sampler import *  # noqa: F403
    from vmscope.native.slots import *  # noqa: F403
    from vmscope.native.tally import *  # noqa: F403
    from vmscope.native.thread import *  # noqa: F403
    from vmscope.native.tracked import *  # noqa: F403
    from vmscope.native.walk import *  # noqa: F403

    if sys.platform != "win32":  # which has no such signals, sockets and locks
        from vmscope.native.beneath import *  # noqa: F403
        from vmscope.native.descriptor import *  # noqa: F403
        from vmscope.native.ends import *  # noqa: F403
        from vmscope.native.listener import *  # noqa: F403
        from vmscope.native.lockmap import *  # noqa: F403

    IMPLEMENTATION = "python"
