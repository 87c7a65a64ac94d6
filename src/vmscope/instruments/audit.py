"""Audit events by family: `open` is one, `socket` that of `socket.connect` and similar."""

from __future__ import annotations

from vmscope.counters.kinds import EVENTS
from vmscope.instruments._table import tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from vmscope.instruments._table import Row, Undo
    from vmscope.native import Tally

# fmt: off
# ruff: noqa: E501
ROWS: tuple[Row, ...] = (
    ("python.audit.events", "counter", EVENTS, "event", "", "sys.addaudithook", "Audit events since the instrument was switched on."),
    ('python.audit.events{family="..."}', "counter", EVENTS, "event", "", "sys.addaudithook", "Those of one family, up to the first dot of their names: 64 families, and other."),
)
# fmt: on


_events: Tally | None = None  # CPython cannot remove an audit hook; this one is switched off


def attach(sys: ModuleType) -> Undo:
    global _events
    if _events is None:
        _events = tally("python.audit.events", "family")
        sys.addaudithook(_events.audited)
    events = _events
    events.on = True

    def undo() -> bool:
        events.on = False
        return True

    return undo
