"""What other tools of this process have taken of which there are few: the tool ids of sys.monitoring, the one tracer of
objects. A capability that one environment at a time can hold, and that needs one, must find one free.
"""

from __future__ import annotations

import sys

from vmscope.tool.sources import allocations
from vmscope.tool.spec.available_capabilities import MONITORING, SERVED_BY, TRACER
from vmscope.tool.spec.capabilities import mask

IDS = range(6)
NEED, TRACED = (
    mask(*(bit for bit, (_, need, _) in SERVED_BY.items() if need == feature)) for feature in (MONITORING, TRACER)
)


def holders() -> dict[int, str]:
    """Sets of capabilities, as ints, and who has what they need. Asked for anew each time."""
    holders = {NEED: holders_of_ids(), TRACED: allocations.holder()}
    return {need: names for need, names in holders.items() if names}


def holders_of_ids() -> str:
    """The names of those who hold all tool ids; "" where one is free, or vmscope's."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        return ""
    names = [monitoring.get_tool(number) for number in IDS]
    if None in names or "vmscope" in names:
        return ""
    return ", ".join(f"{name} (tool id {number})" for number, name in enumerate(names))
