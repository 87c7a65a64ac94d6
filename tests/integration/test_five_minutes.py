"""docs/five-minutes.md, followed to the letter: each command is run, and what it says looks as it does on the page."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import vmscope
from tests.support import JDK, PATIENCE, Child
from tests.wait import wait_for

pytest.importorskip("flask", reason="flask is in the dev group")
pytest.importorskip("gunicorn", reason="gunicorn is in the dev group")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "five-minutes.md").read_text(encoding="utf-8")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each command of the page, with what it said there."""
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *said = command.splitlines()
            yield first, said


SAID = dict(commands())
SET_UP = ["make setup", "source .venv/bin/activate"]
SERVER, CUSTOMERS, PS = (
    next(command for command in SAID if command.startswith(start)) for start in ("vmscope run", "while", "vmscope ps")
)
WATCH = next(command for command in SAID if "--watch" in command)
WRONG = [command for command in SAID if SAID[command][0:1] and SAID[command][0].startswith("vmscope: ")]
PIDS = [int(line.split()[0]) for line in SAID[PS][1:]]  # the master's and its workers'


def names(lines: list[str]) -> list[str]:
    """The first column."""
    return [line.split()[0] for line in lines]


class Terminal:
    """Where the page is followed: the repository's folder, with this Python's tools before others."""

    def __init__(self, jdk: JDK, home: Path) -> None:
        self._home = home
        self.log = home / "access"
        self.env = {
            **os.environ,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(jdk.bin), os.environ["PATH"]]),
            "HOME": str(home),
            "GUNICORN_CMD_ARGS": f"--access-logfile {self.log}",
            "VMSCOPE_TOOL_OPTIONS": "",
        }
        self.port = 0
        self.pids: list[int] = []

    def typed(self, command: str) -> str:
        """The command with this run's port and PIDs."""
        for shown, pid in zip(PIDS, self.pids, strict=bool(self.pids)):
            command = re.sub(rf"\b{shown}\b", str(pid), command)
        return command.replace(":8000", f":{self.port}")

    def start(self, command: str, output: Path | None = None) -> subprocess.Popen[bytes]:
        with open(os.devnull if output is None else output, "wb") as file:
            return subprocess.Popen(
                ["bash", "-c", f"exec {command}" if output else command],
                cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            )  # fmt: skip

    def run(self, command: str) -> list[str]:
        run = subprocess.run(
            ["bash", "-c", self.typed(command)],
            cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        return run.stdout.splitlines()


def counts(pids: list[int]) -> dict[str, int]:
    """The workers' numbers, added up."""
    found: dict[str, int] = {}
    for pid in pids:
        with vmscope.vm(pid) as vm:
            for name, value in vm.values().items():
                if isinstance(value, int):
                    found[name] = found.get(name, 0) + value
    return found


def children(pid: int) -> list[int]:
    return sorted(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def published(pids: list[int]) -> bool:
    try:
        return "http.server.busy" in counts(pids)
    except vmscope.VMScopeError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.fixture
def terminal(jdk: JDK, tmp_path: Path) -> Terminal:
    for tool in ("bash", "curl"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool}")
    if not (Path(sys.executable).parent / "vmscope").exists():
        pytest.skip("no vmscope beside this Python: it is not installed, only on the path")
    return Terminal(jdk, tmp_path)


def test_the_page(terminal: Terminal, tmp_path: Path) -> None:
    todo = [command for command in SAID if command not in [*SET_UP, SERVER, CUSTOMERS, PS, WATCH, *WRONG]]
    assert len(todo) >= 6
    terminal.port = free_port()
    log = tmp_path / "server"
    server = terminal.start(terminal.typed(SERVER), log)
    customers: subprocess.Popen[bytes] | None = None
    try:
        wait_for(lambda: len(children(server.pid)) == 4, "four workers")
        terminal.pids = [server.pid, *children(server.pid)]
        workers = terminal.pids[1:]
        wait_for(lambda: all(published([pid]) for pid in workers), "they are published")
        customers = terminal.start(terminal.typed(CUSTOMERS))
        known = names(SAID[WATCH])[1:-1]
        wait_for(lambda: set(known) <= set(counts([workers[0]])), "the first worker had both kinds of orders")
        wait_for(lambda: 'http.server.requests{method="GET",status="4xx"}' in counts([workers[0]]), "and an error")

        listed = {line.split()[0]: line.split() for line in terminal.run(PS)}
        titles = SAID[PS][0].split()
        assert listed["PID"][: len(titles)] == titles  # then REASON, where another VM of this host has one
        shown = [" ".join(listed[str(pid)][8:]) for pid in terminal.pids]
        assert shown == ["gunicorn", *["gunicorn: worker"] * 4]
        for command in todo:
            follow(terminal, command)
        watch(terminal)
        customers.terminate()
        customers.wait(PATIENCE)
        agree(terminal, workers)
    finally:
        for process, number in ((customers, signal.SIGTERM), (server, signal.SIGINT)):
            if process is not None:
                process.send_signal(number)
                process.wait(PATIENCE)
    assert server.returncode == 0, log.read_text()
    assert [pid for pid in terminal.pids if any(Path("/tmp").glob(f"hsperfdata_*/{pid}"))] == []


def follow(terminal: Terminal, command: str) -> None:
    lines, said = terminal.run(command), SAID[command]
    if command.startswith(("vmscope stat", "jstat")):
        assert lines[0].split() == said[0].split()
        assert len(lines) == len(said)
        assert [len(line.split()) for line in lines] == [len(line.split()) for line in said]
    elif command.startswith("vmscope counters"):
        assert names(lines) == names(said)
    elif command.startswith("jcmd"):
        assert [line.partition("=")[0] for line in lines] == [line.partition("=")[0] for line in said]
    else:
        assert command.startswith("python -c")
        assert int(lines[0]) > 0


def watch(terminal: Terminal) -> None:
    """The second look, which has the change; then Ctrl-C, of which it says nothing."""
    with Child(["bash", "-c", f"exec {terminal.typed(WATCH)}"], env=terminal.env, merge_stderr=True) as child:
        child.read_until(b"\n\n")
        frame = child.read_until(b"\n\n").decode().splitlines()[:-1]
        assert names(frame) == names(SAID[WATCH])[:-1]
        assert frame[0].split() == SAID[WATCH][0].split()
        child.process.send_signal(signal.SIGINT)
        status = child.process.wait(PATIENCE)
        assert child.process.stdout is not None
        assert status == 0, child.process.stdout.read().decode()


def agree(terminal: Terminal, workers: list[int]) -> None:
    """The counters with the server's own log, a line a request, as soon as all of them have come to the regions."""

    def logged(status: str = "") -> int:
        return len(re.findall(rf'HTTP/1.1" {status}', terminal.log.read_text()))

    def compared() -> list[tuple[int, int]]:
        found = counts(workers)
        orders = sum(found.get(f'shop.orders{{size="{size}"}}', 0) for size in ("large", "small"))
        prices = sum(count for name, count in found.items() if name.startswith("shop.pricing.bucket"))
        times = sum(count for name, count in found.items() if name.startswith("http.server.time.bucket"))
        return [
            (found["http.server.requests"], logged()),
            (times, logged()),
            (found['http.server.requests{method="GET",status="2xx"}'], logged("200")),
            (found['http.server.requests{method="GET",status="4xx"}'], logged("404")),
            (orders, logged("200")),
            (prices, logged("200")),
            (found["http.server.active"], 0),
            (found["http.server.busy"], 0),
        ]

    wait_for(lambda: all(one == other for one, other in compared()), lambda: f"{compared()}")
    found = compared()
    assert [one for one, _ in found] == [other for _, other in found]  # the last customer may still come now
    assert min(logged("200"), logged("404")) > 0
    assert counts(workers)["http.server.time.sum"] > counts(workers)["shop.pricing.sum"]


def test_what_the_page_shows_as_wrong(terminal: Terminal) -> None:
    assert len(WRONG) == 2
    for command in WRONG:
        assert terminal.run(command) == SAID[command]


def test_the_pages_that_lead_there() -> None:
    assert "docs/five-minutes.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "five-minutes.md" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_the_program_on_the_page_is_the_example() -> None:
    source = (ROOT / "examples" / "flask_service.py").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    assert [block for block in blocks if block not in source] == []
