"""statsd's metrics in the region; integrations/statsd has all of it."""

from __future__ import annotations

from vmscope.counters.kinds import EVENTS
from vmscope.integrations.statsd import replacements
from vmscope.patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from vmscope.instruments._table import Row, Undo

# fmt: off
# ruff: noqa: E501
ROWS: tuple[Row, ...] = (
    ("statsd.dropped", "counter", EVENTS, "event", "", "clients of statsd and datadog", "Values that are not kept: sets, series beyond the first 10,000, and names that another kind of counter has."),
)
# fmt: on


def attach(module: ModuleType) -> Undo:
    patches = Patches()
    for owner, name, replacement in replacements(module):
        patches.replace(owner, name, replacement)
    return patches.undo_all
