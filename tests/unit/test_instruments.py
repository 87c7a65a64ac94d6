"""The middlewares with applications that are odd, and the finder that waits for an import."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vmscope.counters.kinds import Counter, Gauge
from vmscope.counters.registry import REGISTRY
from vmscope.instruments import _imports, asgi, wsgi


def counts() -> dict[str, float]:
    found = {}
    for counter in REGISTRY:
        if counter.name.startswith("http.server.") and isinstance(counter, (Counter, Gauge)):
            found[counter.name.removeprefix("http.server.")] = counter.value
    return found


class Changes:
    """What has been counted since it was made."""

    def __init__(self) -> None:
        self._before = counts()

    def __call__(self) -> dict[str, float]:
        now = counts()
        return {name: now[name] - self._before.get(name, 0) for name in now if now[name] != self._before.get(name, 0)}


@pytest.fixture
def changes() -> Changes:
    return Changes()


# -- WSGI -----------------------------------------------------------------------------------------


def call(app: Any, environ: dict[str, Any] | None = None, status: str = "200 OK") -> tuple[Any, list[Any]]:
    """What the middleware gives to the server, and how the response was started."""
    started: list[Any] = []

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response(status, [("X", "y")])
        response: Iterable[bytes] = app(environ, start_response)
        return response

    middleware = wsgi.Middleware(application)
    return middleware(environ or {"REQUEST_METHOD": "GET"}, lambda *args: started.append(args)), started  # type: ignore[arg-type]


@pytest.mark.parametrize("response", [[], [b"a", b"b"], (b"a",)], ids=repr)
def test_a_list_goes_to_the_server_as_it_is(changes: Changes, response: Any) -> None:
    given, started = call(lambda *_: response)
    assert given is response
    assert started == [("200 OK", [("X", "y")])]
    assert changes() == {"requests": 1, 'requests{method="GET",status="2xx"}': 1}


def test_a_servers_file_wrapper_goes_to_it_as_it_is(changes: Changes) -> None:
    class Wrapper:
        def __iter__(self) -> Iterator[bytes]:
            return iter([b"a"])

    wrapper = Wrapper()
    given, _ = call(lambda *_: wrapper, {"REQUEST_METHOD": "GET", "wsgi.file_wrapper": Wrapper})
    assert given is wrapper
    assert changes()["requests"] == 1
    given, _ = call(lambda *_: wrapper, {"REQUEST_METHOD": "GET", "wsgi.file_wrapper": lambda file: file})
    assert given is not wrapper
    given.close()


def test_a_generator_is_closed_and_counted_once(changes: Changes) -> None:
    closed = []

    def generate(*_: object) -> Iterator[bytes]:
        try:
            yield b"a"
            yield b"b"
        finally:
            closed.append(True)

    response, _ = call(generate)
    assert next(response) == b"a"
    assert changes() == {"active": 1, "busy": 1}
    response.close()
    response.close()
    assert closed == [True]
    assert changes() == {"requests": 1, 'requests{method="GET",status="2xx"}': 1}


@pytest.mark.parametrize(("error", "errors"), [(KeyError, {"errors": 1}), (SystemExit, {})])
def test_what_an_application_raises_goes_on(
    changes: Changes, error: type[BaseException], errors: dict[str, int]
) -> None:
    """That the server ends, by SystemExit, is no error of the application's."""

    def fail(*_: object) -> Iterable[bytes]:
        raise error

    with pytest.raises(error):
        call(fail)
    assert changes() == {"requests": 1, 'requests{method="GET",status="5xx"}': 1, **errors}


def test_what_a_stream_and_its_close_raise_goes_on(changes: Changes) -> None:
    class Stream:
        def __iter__(self) -> Iterator[bytes]:
            raise KeyError("iter")

        def close(self) -> None:
            raise KeyError("close")

    with pytest.raises(KeyError, match="iter"):
        call(lambda *_: Stream())
    assert changes()["errors"] == 1

    class Late(Stream):
        def __iter__(self) -> Iterator[bytes]:
            return iter([])

    response, _ = call(lambda *_: Late())
    assert list(response) == []
    with pytest.raises(KeyError, match="close"):
        response.close()
    assert "active" not in changes()
    assert changes()["requests"] == 2


@pytest.mark.parametrize(
    ("method", "status", "wanted"),
    [
        ("GET", "304 Not Modified", 'method="GET",status="3xx"'),
        ("get", "200 OK", 'method="OTHER",status="2xx"'),
        ("€ \x00", "200 OK", 'method="OTHER",status="2xx"'),
        ("PATCH", "", 'method="PATCH",status="5xx"'),
        ("PATCH", "999 Odd", 'method="PATCH",status="5xx"'),
        ("PATCH", "x", 'method="PATCH",status="5xx"'),
    ],
)
def test_odd_methods_and_statuses(changes: Changes, method: str, status: str, wanted: str) -> None:
    call(lambda *_: [b"x"], {"REQUEST_METHOD": method}, status)
    assert changes() == {"requests": 1, f"requests{{{wanted}}}": 1}


def test_start_response_twice_and_its_write(changes: Changes) -> None:
    started: list[Any] = []

    def application(_: Any, start_response: Any) -> Iterable[bytes]:
        write = start_response("200 OK", [])
        write(b"written")
        start_response("503 Busy", [], (ValueError, ValueError(), None))
        return []

    def start_response(*args: Any) -> Any:
        started.append(args)
        return started.append

    wsgi.Middleware(application)({"REQUEST_METHOD": "GET"}, start_response)
    assert [args[0] for args in started if isinstance(args, tuple)] == ["200 OK", "503 Busy"]
    assert b"written" in started
    assert changes()['requests{method="GET",status="5xx"}'] == 1


# -- ASGI -----------------------------------------------------------------------------------------


def serve(app: Any, scope: dict[str, Any]) -> list[Any]:
    """The messages that the application sent."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    asyncio.run(asgi.Middleware(app)(scope, receive, send))
    return sent


@pytest.mark.parametrize("kind", ["websocket", "lifespan", "a new one"])
def test_what_is_no_request_passes_through_untouched(changes: Changes, kind: str) -> None:
    scope = {"type": kind}
    seen: list[Any] = []

    async def app(*args: Any) -> None:
        seen.extend(args)
        await args[2]({"type": "websocket.accept"})

    assert serve(app, scope) == [{"type": "websocket.accept"}]
    assert seen[0] is scope
    assert seen[2].__name__ == "send"
    assert changes() == {}


def test_a_cancelled_request_is_no_error(changes: Changes) -> None:
    async def app(*_: Any) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        serve(app, {"type": "http", "method": "GET"})
    assert changes() == {"requests": 1, 'requests{method="GET",status="5xx"}': 1}


def test_an_error_after_the_response_counts_as_one(changes: Changes) -> None:
    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})
        raise ValueError

    with pytest.raises(ValueError):
        serve(app, {"type": "http", "method": "GET"})
    assert changes() == {"requests": 1, "errors": 1, 'requests{method="GET",status="2xx"}': 1}


# -- imports --------------------------------------------------------------------------------------


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _imports.Watch:
    """A finder of the test's own, and modules that may be imported."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    for name, code in {"instrumented": "VALUE = 1", "broken": "1/0", "quiet": ""}.items():
        (tmp_path / f"vmscope_test_{name}.py").write_text(code)
        monkeypatch.delitem(sys.modules, f"vmscope_test_{name}", raising=False)
    return _imports.Watch()


def test_an_action_comes_after_the_module_has_run_and_once(watch: _imports.Watch) -> None:
    seen: list[ModuleType] = []
    watch.add("vmscope_test_instrumented", seen.append)
    module = importlib.import_module("vmscope_test_instrumented")
    assert seen == [module]
    assert module.VALUE == 1
    importlib.reload(module)
    assert seen == [module]
    watch.add("vmscope_test_instrumented", seen.append)
    assert seen == [module, module], "it is there already"
    del sys.modules["vmscope_test_instrumented"]


def test_a_module_that_fails_or_is_not_there(watch: _imports.Watch, tmp_path: Path) -> None:
    seen: list[ModuleType] = []
    watch.add("vmscope_test_broken", seen.append)
    watch.add("vmscope_test_absent", seen.append)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("vmscope_test_broken")
    with pytest.raises(ModuleNotFoundError, match="vmscope_test_absent"):
        importlib.import_module("vmscope_test_absent")
    assert seen == []
    (tmp_path / "vmscope_test_broken.py").write_text("VALUE = 12345")
    importlib.invalidate_caches()
    module = importlib.import_module("vmscope_test_broken")
    assert seen == [module]
    del sys.modules["vmscope_test_broken"]


def test_looking_for_a_spec_is_no_import(watch: _imports.Watch) -> None:
    seen: list[ModuleType] = []
    watch.add("vmscope_test_quiet", seen.append)
    for _ in range(2):
        assert importlib.util.find_spec("vmscope_test_quiet") is not None
    assert seen == []
    module = importlib.import_module("vmscope_test_quiet")
    assert seen == [module]
    del sys.modules["vmscope_test_quiet"]
