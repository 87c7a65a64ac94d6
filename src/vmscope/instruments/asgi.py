"""Counts the requests to an ASGI application: `app = vmscope.instruments.asgi.Middleware(app)`.

A request ends with the last part of its response; what the application does after that is not a part of it. Web sockets
and the lifespan pass through untouched.
"""

from __future__ import annotations

from vmscope.instruments._http import HttpRequest, Requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import Any

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Middleware:
    """An ASGI 3 application that counts what it passes on to another."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self._requests = Requests()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        requests = self._requests
        request = HttpRequest(requests, scope.get("method", ""))
        requests.busy.set(1)

        def end() -> None:
            if request.end():
                requests.busy.set(min(1, requests.active.value))

        async def watched(message: MutableMapping[str, Any]) -> None:
            kind = message.get("type")
            if kind == "http.response.start":
                request.status = str(message.get("status"))[:1]
            await send(message)
            if kind == "http.response.body" and not message.get("more_body"):
                end()

        try:
            await self.app(scope, receive, watched)
        except BaseException as error:
            request.fail(error)
            raise
        finally:
            end()
