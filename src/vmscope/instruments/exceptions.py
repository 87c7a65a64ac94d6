"""Exceptions raised, by type: each once, where it is raised, and not again in every frame that it leaves."""

from __future__ import annotations

from vmscope.counters.kinds import EVENTS
from vmscope.errors import InstrumentError
from vmscope.instruments._table import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType

    from vmscope.instruments._table import Row

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


def attach(sys: ModuleType) -> None:
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        raise InstrumentError("the instrument exceptions needs Python 3.12 or later, which has sys.monitoring")
    raised = Tally("python.exceptions", "type")
    tool = _free_tool(monitoring)

    def count(_: CodeType, __: int, error: BaseException) -> None:
        trace = error.__traceback__
        if trace is None or trace.tb_next is None:  # the event comes once for each frame
            raised.count(type(error).__name__)

    monitoring.register_callback(tool, monitoring.events.RAISE, count)
    monitoring.set_events(tool, monitoring.events.RAISE)


def _free_tool(monitoring: ModuleType) -> int:
    for tool in _TOOLS:
        if monitoring.get_tool(tool) is None:
            try:
                monitoring.use_tool_id(tool, "vmscope")
            except ValueError:  # another thread has taken it
                continue
            return tool
    raise InstrumentError("the instrument exceptions needs a tool of sys.monitoring, and all of them are taken")
