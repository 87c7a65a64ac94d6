"""prometheus_client's metrics in the region; integrations/prometheus has all of it."""

from __future__ import annotations

from vmscope.integrations.prometheus.metrics import replacements
from vmscope.patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from vmscope.instruments._table import Row, Undo

ROWS: tuple[Row, ...] = ()  # the counters are the program's own


def attach(module: ModuleType) -> Undo:
    patches = Patches()
    for owner, name, replacement in replacements(module):
        patches.replace(owner, name, replacement)
    return patches.undo_all
