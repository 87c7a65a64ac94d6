"""Audit events by family: `open` is one, `socket` that of `socket.connect` and its like."""

from __future__ import annotations

from vmscope.counters.kinds import EVENTS
from vmscope.instruments._table import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from vmscope.instruments._table import Row

# fmt: off
# ruff: noqa: E501
ROWS: tuple[Row, ...] = (
    ("python.audit.events", "counter", EVENTS, "event", "", "sys.addaudithook", "Audit events since the instrument was switched on."),
    ('python.audit.events{family="..."}', "counter", EVENTS, "event", "", "sys.addaudithook", "Those of one family, up to the first dot of their names: 64 families, and other."),
)
# fmt: on


def attach(sys: ModuleType) -> None:
    events = Tally("python.audit.events", "family")

    def hook(event: str, _: tuple[object, ...]) -> None:
        events.count(event.partition(".")[0])

    sys.addaudithook(hook)
