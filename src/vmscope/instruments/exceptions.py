"""Exceptions raised, by type: each once, where it is raised, and not again in every frame that it leaves."""

from __future__ import annotations

from vmscope.counters.kinds import EVENTS
from vmscope.errors import InstrumentError
from vmscope.instruments._table import tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from vmscope.instruments._table import Row, Undo

# fmt: off
# ruff: noqa: E501
ROWS: tuple[Row, ...] = (
    ("python.exceptions", "counter", EVENTS, "event", "3.12", "sys.monitoring", "Exceptions raised. One that is raised again counts no more, nor does the StopIteration that ends a loop."),
    ('python.exceptions{type="..."}', "counter", EVENTS, "event", "3.12", "sys.monitoring", "Those of one type: 64 types, and other."),
)
# fmt: on

# The tools of sys.monitoring, those without a use of their own first: 0 is for debuggers, 1 for coverage, 2 for
# profilers, 5 for optimizers.
_TOOLS = (4, 3, 5, 2, 1, 0)


def attach(sys: ModuleType) -> Undo:
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        raise InstrumentError("the instrument exceptions needs Python 3.12 or later, which has sys.monitoring")
    raised = tally("python.exceptions", "type")
    tool = free_tool(monitoring)
    monitoring.register_callback(tool, monitoring.events.RAISE, raised.raised)
    monitoring.set_events(tool, monitoring.events.RAISE)

    def undo() -> bool:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, monitoring.events.RAISE, None)
        monitoring.free_tool_id(tool)
        return True

    return undo


def free_tool(monitoring: ModuleType) -> int:
    for tool in _TOOLS:
        if monitoring.get_tool(tool) is None:
            try:
                monitoring.use_tool_id(tool, "vmscope")
            except ValueError:  # another thread has taken it
                continue
            return tool
    raise InstrumentError("the instrument exceptions needs a tool of sys.monitoring, and all of them are taken")
