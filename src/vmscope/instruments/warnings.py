"""Warnings shown, by category."""

from __future__ import annotations

from vmscope.counters.kinds import EVENTS
from vmscope.instruments._table import tally
from vmscope.patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from warnings import WarningMessage

    from vmscope.instruments._table import Row, Undo

# fmt: off
# ruff: noqa: E501
ROWS: tuple[Row, ...] = (
    ("python.warnings.shown", "counter", EVENTS, "event", "", "warnings", "Warnings that passed the filters: shown, logged or recorded. One that a filter makes an error is none."),
    ('python.warnings.shown{category="..."}', "counter", EVENTS, "event", "", "warnings", "Those of one category: 64 categories, and other."),
)
# fmt: on


def attach(_: ModuleType) -> Undo:
    import warnings  # not waited for: until it is imported, the interpreter shows warnings by itself

    shown = tally("python.warnings.shown", "category")
    show = warnings._showwarnmsg  # type: ignore[attr-defined]

    # Here and not in showwarning: that one is the program's to replace, and whoever replaces it loses what tracemalloc
    # knows of a ResourceWarning.
    def _showwarnmsg(message: WarningMessage) -> None:
        shown.count(message.category.__name__)
        show(message)

    patches = Patches()
    patches.replace(warnings, "_showwarnmsg", _showwarnmsg)
    return patches.undo_all
