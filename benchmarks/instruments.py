"""What an instrument costs where it is on: the same calls, in turns with it and without."""

from __future__ import annotations

import asyncio
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flask

import vmscope
from benchmarks.measure import Figure, Sample, in_turns, process
from benchmarks.world import vmscope_command
from vmscope import instruments
from vmscope.instruments import asgi, wsgi

LOOPS = 2_000
FILES = """
import os, vmscope
vmscope.start()
vmscope.instrument({name})
for _ in range(100_000):
    os.close(os.open(os.devnull, os.O_RDONLY))
"""
NAMED = "-XX:Instrument=asyncio,executors,gunicorn,uvicorn"


def figures(rounds: int) -> Iterator[Figure]:
    vmscope.start()
    vmscope.instrument("asyncio", "executors", "warnings")
    if sys.version_info >= (3, 12):
        vmscope.instrument("exceptions")
    instruments.suspend()
    with ThreadPoolExecutor(1) as executor, warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *_: None
        cases = {
            "`asyncio`: a task": tasks,
            "`executors`: a call in a thread": loop(lambda: executor.submit(int).result()),
            "`warnings`: a warning shown": loop(lambda: warnings.warn("x", stacklevel=1)),
        }
        if sys.version_info >= (3, 12):
            cases["`exceptions`: one raised and caught"] = loop(fail)
            cases["`exceptions`: one raised through 20 frames"] = loop(lambda: fail(20))
        for label, case in cases.items():
            found = in_turns(
                {"on": switched(instruments.resume, case), "off": switched(instruments.suspend, case)}, rounds
            )
            yield Figure(f"{label}, on to off", found["on"], found["off"], None)
        instruments.suspend()
        yield from requests(rounds)
    vmscope.stop()
    yield from processes(rounds)


def processes(rounds: int) -> Iterator[Figure]:
    """What cannot be undone, and what comes with a start: whole processes."""
    audited, free = (process([sys.executable, "-c", FILES.format(name=names)]) for names in ("'audit'", ""))
    found = in_turns({"on": audited, "off": free}, rounds)
    yield Figure("`audit`: 100,000 files opened and closed, on to off", found["on"], found["off"], None)
    named = process(vmscope_command("run", NAMED, "-c", "pass"))
    found = in_turns({"named": named, "not": process(vmscope_command("run", "-c", "pass"))}, 2 * rounds)
    label = "`vmscope run -c pass` with four named that it does not use, to none named"
    yield Figure(label, found["named"], found["not"], None)


def requests(rounds: int) -> Iterator[Figure]:
    app = flask.Flask(__name__)
    app.add_url_rule("/", view_func=lambda: "hello")
    for label, wrapped, bare in (
        ("a request that does nothing (WSGI)", wsgi_calls(wsgi.Middleware(nothing)), wsgi_calls(nothing)),
        ("a request that does nothing (ASGI)", asgi_calls(asgi.Middleware(nothing_async)), asgi_calls(nothing_async)),
        ("a request to Flask that says hello", wsgi_calls(wsgi.Middleware(app)), wsgi_calls(app)),
    ):
        found = in_turns({"counted": wrapped, "bare": bare}, rounds)
        yield Figure(f"{label}, counted to bare", found["counted"], found["bare"], None)


def timed(function: Callable[[], object]) -> Sample:
    cpu, begin = time.process_time(), time.perf_counter()
    function()
    return (time.perf_counter() - begin) / LOOPS, (time.process_time() - cpu) / LOOPS


def switched(switch: Callable[[], None], case: Callable[[], None]) -> Callable[[], Sample]:
    def sample() -> Sample:
        switch()
        return timed(case)

    return sample


def loop(function: Callable[[], object]) -> Callable[[], None]:
    def case() -> None:
        for _ in range(LOOPS):
            function()

    return case


def fail(frames: int = 0) -> None:
    def deep(left: int) -> None:
        if not left:
            raise ValueError
        deep(left - 1)

    try:
        deep(frames)
    except ValueError:
        pass


def tasks() -> None:
    async def work() -> None:
        for _ in range(LOOPS):
            await asyncio.create_task(asyncio.sleep(0))

    asyncio.run(work())


# -- requests -------------------------------------------------------------------------------------

ENVIRON = {
    "REQUEST_METHOD": "GET",
    "PATH_INFO": "/",
    "SERVER_NAME": "a",
    "SERVER_PORT": "80",
    "wsgi.url_scheme": "http",
}


def nothing(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [])
    return []


async def nothing_async(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body"})


def wsgi_calls(app: Any) -> Callable[[], Sample]:
    def request() -> None:
        response = app(dict(ENVIRON), lambda *_: None)
        if hasattr(response, "close"):
            response.close()

    return lambda: timed(loop(request))


def asgi_calls(app: Any) -> Callable[[], Sample]:
    async def send(_: Any) -> None:
        pass

    async def work() -> None:
        scope = {"type": "http", "method": "GET"}
        for _ in range(LOOPS):
            await app(scope, None, send)

    return lambda: timed(lambda: asyncio.run(work()))
