"""What is counted of a request, for WSGI and ASGI alike."""

from __future__ import annotations

import os
from time import monotonic_ns

from vmscope.counters.kinds import EVENTS, NONE, TICKS
from vmscope.errors import VMScopeError
from vmscope.instruments._table import InstrumentCounters
from vmscope.native import CounterSlot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.instruments._table import Row

# fmt: off
# ruff: noqa: E501
ROWS: tuple[Row, ...] = (
    ("http.server.requests", "counter", EVENTS, "event", "", "the application's calls", "Requests answered, or given up."),
    ('http.server.requests{method="...",status="..."}', "counter", EVENTS, "event", "", "the application's calls", "Those of one method (OTHER for what HTTP does not define) and class of status: 1xx to 5xx. An application that fails before it has answered is a 5xx."),
    ("http.server.errors", "counter", EVENTS, "event", "", "the application's calls", "Exceptions that the application let out."),
    ("http.server.time", "histogram", TICKS, "event", "", "CLOCK_MONOTONIC", "Time from a request to the end of its response."),
    ("http.server.active", "gauge", NONE, "event", "", "the application's calls", "Requests in flight."),
    ("http.server.busy", "gauge", NONE, "event", "", "the application's calls", "Workers that serve one now: threads for WSGI, for ASGI the process."),
)
# fmt: on

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)  # seconds
_METHODS = frozenset("GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH QUERY".split())

_CLASSES = frozenset("12345")

_forks = 0  # a request that another process began is not this one's to count


def _after_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


class Requests:
    """The counters of the requests of this process."""

    def __init__(self) -> None:
        table = InstrumentCounters(ROWS)
        self.total = table.counter("http.server.requests")
        self.errors = table.counter("http.server.errors")
        self.time = table.histogram("http.server.time", _BOUNDS)
        self.active = table.gauge("http.server.active")
        self.busy = table.gauge("http.server.busy")
        self._answered: dict[tuple[str, str], CounterSlot] = {}

    def answered(self, method: str, status: str) -> CounterSlot:
        """`status` is its first digit."""
        key = method if method in _METHODS else "OTHER", status if status in _CLASSES else "5"
        counter = self._answered.get(key)
        if counter is None:
            try:
                counter = self.total.labels(method=key[0], status=f"{key[1]}xx")
            except VMScopeError:  # the program has another of this name
                counter = CounterSlot()
            self._answered[key] = counter
        return counter


class HttpRequest:
    """One request, from its making to `end()`. `status` is the first digit of the response's."""

    __slots__ = ("_begun", "_ended", "_forks", "_method", "_requests", "status")

    def __init__(self, requests: Requests, method: str) -> None:
        self.status = "5"
        self._requests = requests
        self._method = method
        self._ended = False
        self._forks = _forks
        self._begun = monotonic_ns()
        requests.active.inc()

    def fail(self, error: BaseException) -> None:
        """The application let this out. It is none of its errors that the server stops it, or its client has gone."""
        if isinstance(error, Exception):
            self._requests.errors.inc()

    def end(self) -> bool:
        """Whether it counts: this was the first time that it ended, in the process where it began."""
        if self._ended or self._forks != _forks:
            return False
        self._ended = True
        requests = self._requests
        requests.time.observe((monotonic_ns() - self._begun) / 1e9)
        requests.answered(self._method, self.status).inc()
        requests.total.inc()
        requests.active.dec()
        return True
