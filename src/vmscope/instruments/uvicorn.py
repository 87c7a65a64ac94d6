"""Requests to the application that uvicorn serves; asgi.py counts them."""

from __future__ import annotations

from functools import wraps

from vmscope.instruments._http import ROWS as ROWS
from vmscope.instruments.asgi import Middleware
from vmscope.patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from vmscope.instruments._table import Undo


def attach(config: ModuleType) -> Undo:
    load = config.Config.load

    @wraps(load)
    def watched(self: Any) -> None:
        load(self)
        self.loaded_app = Middleware(self.loaded_app)  # an ASGI 3 application, whatever interface it came with

    patches = Patches()
    patches.replace(config.Config, "load", watched)
    return patches.undo_all
