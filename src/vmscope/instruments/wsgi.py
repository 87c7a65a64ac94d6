"""Counts the requests to a WSGI application: `app = vmscope.instruments.wsgi.Middleware(app)`.

A request ends when the server closes the response. A response that is a list, a tuple or the server's own file wrapper
goes to the server as it is, as the server may treat it specially. Then the request ends when the application returns.
"""

from __future__ import annotations

from vmscope.instruments._http import HttpRequest, Requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


class Middleware:
    """A WSGI application that counts what it passes on to another."""

    def __init__(self, app: WSGIApplication) -> None:
        self.app = app
        self._requests = Requests()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = ThreadRequest(self._requests, environ.get("REQUEST_METHOD", ""))

        def start(status: str, *rest: Any) -> Any:
            request.status = str(status)[:1]
            return start_response(status, *rest)

        try:
            response = self.app(environ, start)
            if not isinstance(response, (list, tuple, _class(environ.get("wsgi.file_wrapper")))):
                return Response(response, request)
        except BaseException as error:
            request.status = "5"
            request.fail(error)
            request.end()
            raise
        request.end()
        return response


def _class(wrapper: object) -> type | tuple[()]:
    return wrapper if isinstance(wrapper, type) else ()


class ThreadRequest(HttpRequest):
    """Keeps a thread busy."""

    __slots__ = ()

    def __init__(self, requests: Requests, method: str) -> None:
        super().__init__(requests, method)
        requests.busy.inc()

    def end(self) -> bool:
        first = super().end()
        if first:
            self._requests.busy.dec()
        return first


class Response:
    """A response on its way; the server calls `close()` at its end, whatever comes of it."""

    __slots__ = ("_iterator", "_request", "_response")

    def __init__(self, response: Iterable[bytes], request: HttpRequest) -> None:
        self._response = response
        self._request = request
        self._iterator = iter(response)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._iterator)
        except StopIteration:
            raise
        except BaseException as error:
            self._request.fail(error)
            raise

    def close(self) -> None:
        try:
            close = getattr(self._response, "close", None)
            if close is not None:
                close()
        finally:
            self._request.end()
