"""What other tools of this process have taken of which there is one, or a few: tool ids of sys.monitoring, the slot of
CPython's tracer of objects. What a capability that one environment at a time can hold needs, it must find free.
"""

from __future__ import annotations

import sys

from vmscope.tool.capabilities import mask
from vmscope.tool.cpython import MECHANISMS, MONITORING, TRACER, features

IDS = range(6)


def taken() -> dict[int, str]:
    """Sets of capabilities, as ints, and who has what they need. Asked for anew each time."""
    holders = {MONITORING: holders_of_ids(), TRACER: holder_of_tracer()}
    return {
        mask(*(bit for bit, (_, need, _) in MECHANISMS.items() if need == feature)): holder
        for feature, holder in holders.items()
        if holder
    }


def holders_of_ids() -> str:
    """The names of those who hold all tool ids; "" where one is free, or vmscope's."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        return ""
    names = [monitoring.get_tool(number) for number in IDS]
    if None in names or "vmscope" in names:
        return ""
    return ", ".join(f"{name} (tool id {number})" for number, name in enumerate(names))


def holder_of_tracer() -> str:
    """Who has the slot of PyRefTracer; "" where it is free, or where there is none."""
    if TRACER not in features():
        return ""
    import _tracemalloc  # the slot itself does not tell: to 3.13.0 it is not emptied when tracemalloc stops

    return "tracemalloc" if _tracemalloc.is_tracing() else ""
