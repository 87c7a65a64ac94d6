"""Requests to the WSGI application of each gunicorn worker, whatever its class; wsgi.py counts them."""

from __future__ import annotations

from functools import wraps

from vmscope.instruments._http import ROWS as ROWS
from vmscope.instruments.wsgi import Middleware
from vmscope.patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from vmscope.instruments._table import Undo


def attach(base: ModuleType) -> Undo:
    load_wsgi = base.Worker.load_wsgi

    @wraps(load_wsgi)
    def watched(self: Any) -> None:
        load_wsgi(self)
        if hasattr(self, "handle_request"):  # a worker without is an ASGI server's, with an ASGI application
            self.wsgi = Middleware(self.wsgi)

    patches = Patches()
    patches.replace(base.Worker, "load_wsgi", watched)
    return patches.undo_all
