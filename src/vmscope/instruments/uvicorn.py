"""Requests to the application that uvicorn serves; asgi.py counts them."""

from __future__ import annotations

from functools import wraps

from vmscope.instruments._http import ROWS as ROWS
from vmscope.instruments.asgi import Middleware

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def attach(config: ModuleType) -> None:
    load = config.Config.load

    @wraps(load)
    def watched(self: Any) -> None:
        load(self)
        self.loaded_app = Middleware(self.loaded_app)  # an ASGI 3 application, whatever interface it came with

    config.Config.load = watched
