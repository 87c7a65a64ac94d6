"""gunicorn and uvicorn with their applications counted: real requests, read back from each worker's region."""

from __future__ import annotations

import http.client
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import vmscope
from tests import programs
from tests.support import PATIENCE, Child
from tests.wait import wait_for

WSGI = programs.source("web_servers/wsgi")

ASGI = programs.source("web_servers/asgi")


Values = dict[str, int | str]


class Server:
    """A server at work in `folder`, on a port of its own choice."""

    def __init__(self, folder: Path, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "vmscope", "run", "-XX:Instrument=gunicorn,uvicorn", "-m", module, *arguments]
        self.child = Child(command, cwd=folder, merge_stderr=True)
        self.folder = folder
        self.port = 0

    def let_go(self) -> None:
        """Ends what streams and what is slow."""
        (self.folder / "go").touch()

    def listen(self, pattern: str) -> None:
        while not self.port:
            if found := re.search(pattern, self.child.readline()):
                self.port = int(found[1])

    def workers(self, count: int) -> dict[int, Values]:
        """The counters of each worker, once all of them have loaded their application."""
        pids: list[int] = []

        def there() -> bool:
            children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text().split()
            pids[:] = map(int, children)
            return len(pids) == count and all("http.server.busy" in self.values(pid) for pid in pids)

        wait_for(there)
        return {pid: self.values(pid) for pid in pids}

    def values(self, pid: int) -> Values:
        try:
            with vmscope.vm(pid) as vm:
                return vm.values()
        except vmscope.VMScopeError:
            return {}

    def get(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def total(workers: dict[int, Values], name: str) -> int:
    return sum(number(values, name) for values in workers.values())


def settled(read: Callable[[], dict[int, Values]], count: int) -> dict[int, Values]:
    """The counters after `count` requests, and a whole visit of each mirror: a set of values is no transaction."""

    def moved(before: dict[int, Values]) -> bool:
        now = read()
        return all(now[pid]["sun.os.hrt.ticks"] != before[pid]["sun.os.hrt.ticks"] for pid in before)

    wait_for(lambda: total(read(), "http.server.requests") == count and total(read(), "http.server.busy") == 0)
    for _ in range(2):  # the clock moves once a visit: from one move to the next everything was copied
        wait_for(partial(moved, read()))
    return read()


@pytest.fixture(params=["sync", "gthread"])
def gunicorn(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "shop.py").write_text(WSGI)
    kind = ["-k", "gthread", "--threads", "4"] if request.param == "gthread" else ["-k", "sync"]
    server = Server(tmp_path, "gunicorn", "-b", "127.0.0.1:0", "-w", "2", *kind, "--no-control-socket", "shop:app")
    with server.child:
        server.listen(r"Listening at: http://127\.0\.0\.1:(\d+)")
        yield server
        server.let_go()
        server.child.process.terminate()
        assert server.child.process.wait(PATIENCE) == 0


@pytest.fixture
def uvicorn(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "shop.py").write_text(ASGI)
    server = Server(tmp_path, "uvicorn", "--port", "0", "shop:app")
    with server.child:
        server.listen(r"running on http://127\.0\.0\.1:(\d+)")
        yield server
        server.let_go()
        server.child.process.terminate()
        assert server.child.process.wait(PATIENCE) in (0, -15)
        assert (tmp_path / "lifespan").read_text() == "lifespan.startup\nlifespan.shutdown\n"


def requests(values: Values) -> Values:
    """The counts by method and status, shortened: `GET 2xx`."""
    found = {}
    for name, value in values.items():
        if parts := re.fullmatch(r'http\.server\.requests\{method="(\w+)",status="(\w+)"\}', name):
            found[f"{parts[1]} {parts[2]}"] = value
    return found


def number(values: Values, name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value


class Getting(threading.Thread):
    """One request, under way until joined."""

    def __init__(self, server: Server, path: str) -> None:
        super().__init__()
        self.server, self.path = server, path
        self.start()

    def run(self) -> None:
        self.server.get(self.path)


def test_gunicorns_workers_count_their_own_requests(gunicorn: Server) -> None:
    before = gunicorn.workers(2)
    assert total(before, "http.server.requests") == 0
    answered = dict.fromkeys(before, 0)
    for _ in range(20):
        _, body = gunicorn.get("/")
        answered[int(body)] += 1
    assert gunicorn.get("/missing")[0] == 404
    assert gunicorn.get("/wrong", "POST")[0] == 500
    assert gunicorn.get("/", "HEAD")[0] == 200
    assert gunicorn.get("/", "BREW")[0] == 200
    assert gunicorn.get("/file")[1].startswith(b"\nimport os")
    assert gunicorn.get("/raise")[0] == 500
    workers = settled(lambda: gunicorn.workers(2), 26)
    counts: dict[str, int] = {}
    for values in workers.values():
        for name, value in requests(values).items():
            counts[name] = counts.get(name, 0) + int(value)
        assert sum(map(int, requests(values).values())) == values["http.server.requests"]
    assert counts == {"GET 2xx": 21, "GET 4xx": 1, "POST 5xx": 1, "HEAD 2xx": 1, "OTHER 2xx": 1, "GET 5xx": 1}
    assert total(workers, "http.server.errors") == 1
    for pid, values in workers.items():
        assert int(values["http.server.requests"]) >= answered[pid]
        assert sum(int(value) for name, value in values.items() if "server.time.bucket" in name) == int(
            values["http.server.requests"]
        )
        assert (values["http.server.active"], values["http.server.busy"]) == (0, 0)
    assert "http.server.active" not in gunicorn.values(gunicorn.child.pid), "the master serves nothing"


def test_a_stream_of_gunicorns_is_in_flight_until_its_end(gunicorn: Server) -> None:
    gunicorn.workers(2)
    getting = Getting(gunicorn, "/stream")
    for name in ("http.server.busy", "http.server.active"):
        wait_for(lambda name=name: total(gunicorn.workers(2), name) == 1)  # type: ignore[misc]
    assert total(gunicorn.workers(2), "http.server.requests") == 0
    time.sleep(0.5)  # the duration that is measured
    gunicorn.let_go()
    getting.join()
    workers = settled(lambda: gunicorn.workers(2), 1)
    assert 0.5e9 < total(workers, "http.server.time.sum") < 10e9
    assert (total(workers, "http.server.active"), total(workers, "http.server.errors")) == (0, 0)
    with pytest.raises(http.client.HTTPException):
        gunicorn.get("/broken")
    workers = settled(lambda: gunicorn.workers(2), 2)
    assert (total(workers, "http.server.active"), total(workers, "http.server.errors")) == (0, 1)
    assert (gunicorn.folder / "closed").read_text() == "/stream\n/broken\n"


def test_gunicorns_busy_threads_are_seen(gunicorn: Server) -> None:
    threads = "gthread" in Path(f"/proc/{gunicorn.child.pid}/cmdline").read_text()
    gunicorn.workers(2)
    getting = [Getting(gunicorn, "/slow") for _ in range(3 if threads else 1)]
    wait_for(lambda: total(gunicorn.workers(2), "http.server.busy") == len(getting))
    gunicorn.let_go()
    for thread in getting:
        thread.join()
    wait_for(lambda: total(gunicorn.workers(2), "http.server.busy") == 0)


def test_uvicorn(uvicorn: Server) -> None:
    pid = uvicorn.child.pid
    wait_for(lambda: "http.server.active" in uvicorn.values(pid))
    for _ in range(10):
        assert uvicorn.get("/") == (200, str(pid).encode())
    assert uvicorn.get("/missing", "DELETE")[0] == 404
    assert uvicorn.get("/wrong")[0] == 500
    assert uvicorn.get("/raise")[0] == 500
    assert uvicorn.get("/silent")[0] == 500
    assert uvicorn.get("/after")[0] == 200, "what comes after the response is no part of it"
    values = settled(lambda: {pid: uvicorn.values(pid)}, 15)[pid]
    assert requests(values) == {"GET 2xx": 11, "DELETE 4xx": 1, "GET 5xx": 3}
    assert (values["http.server.errors"], values["http.server.active"], values["http.server.busy"]) == (1, 0, 0)


def test_streams_of_uvicorns(uvicorn: Server) -> None:
    pid = uvicorn.child.pid
    wait_for(lambda: "http.server.active" in uvicorn.values(pid))
    getting = [Getting(uvicorn, "/stream") for _ in range(3)]
    wait_for(lambda: uvicorn.values(pid)["http.server.active"] == 3)
    assert uvicorn.values(pid)["http.server.busy"] == 1
    time.sleep(0.5)  # the duration that is measured
    uvicorn.let_go()
    for thread in getting:
        thread.join()
    with pytest.raises(http.client.HTTPException):
        uvicorn.get("/broken")
    values = settled(lambda: {pid: uvicorn.values(pid)}, 4)[pid]
    assert requests(values) == {"GET 2xx": 4}
    assert (values["http.server.errors"], values["http.server.active"], values["http.server.busy"]) == (1, 0, 0)
    assert 3 * 0.5e9 < number(values, "http.server.time.sum") < 40e9


def test_a_client_that_goes_away(uvicorn: Server) -> None:
    pid = uvicorn.child.pid
    wait_for(lambda: "http.server.active" in uvicorn.values(pid))
    connection = http.client.HTTPConnection("127.0.0.1", uvicorn.port, timeout=PATIENCE)
    connection.request("GET", "/stream")
    wait_for(lambda: uvicorn.values(pid)["http.server.active"] == 1)
    connection.close()
    uvicorn.let_go()
    values = settled(lambda: {pid: uvicorn.values(pid)}, 1)[pid]
    assert (requests(values), values["http.server.active"]) == ({"GET 2xx": 1}, 0)
