"""What clients do again and again: 10,000 requests of a kind leave a program's memory, log and standard error bounded.

What is measured are allocated blocks, descriptors, threads and lines, each after a collection: no times.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import programs
from tests.c_agents import build
from tests.conftest import StartPython
from tests.support import Child

COUNT = 10_000
BEFORE = 1_100  # what is kept of the last so many is there then

HOST = programs.source("repeats/host")

AGENTS = {
    "raising": "def agent_on_attach(vm, options): raise ValueError(options)",
    "refusing": "def agent_on_attach(vm, options): vm.get_env(); return 7",
    "failing_end": "def agent_on_attach(vm, options): vm.at_unload(lambda: 1 / 0); return 7",
    "without_entry": "",
    "failing_import": "raise RuntimeError('no')",
    "endless": "def agent_on_attach(vm, options): return agent_on_attach(vm, options)",
    "good": "def agent_on_attach(vm, options): pass",
    "brief": "def agent_on_attach(vm, options): vm.get_env().dispose_environment()",
    "with_command": """
from vmscope import commands
def fail(out): raise ValueError("no")
def agent_on_attach(vm, options): commands.register(commands.Command("Shop.fail", "Fails.", fail))
""",
}

NATIVE = """
static int begin(char *options) {
    if (options[0] == 'd') {
        (*ti)->DisposeEnvironment(ti);
        return 0;
    }
    return 7;
}
"""


class Host:
    """A program that logs all, and its clients."""

    def __init__(self, start_python: StartPython, folder: Path) -> None:
        self.folder = folder
        for name, code in AGENTS.items():
            (folder / f"{name}.py").write_text(code)
        self.child: Child = start_python(HOST, str(folder))

    def ask(self, *fields: str) -> bytes:
        words = [field.encode() for field in fields] + [b""] * (4 - len(fields))
        return self.send(b"1\0" + b"\0".join(words) + b"\0")

    def send(self, data: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"/tmp/.java_pid{self.child.pid}")
            client.sendall(data)
            answer = b""
            while part := client.recv(65536):
                answer += part
            return answer

    def hang_up(self) -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"/tmp/.java_pid{self.child.pid}")
            client.send(b"1\0jc")

    def look(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self.child.ask("look"))
        return found

    def lines(self, file: str) -> list[str]:
        return (self.folder / file).read_text().splitlines()


@pytest.fixture
def host(start_python: StartPython, tmp_path: Path) -> Host:
    return Host(start_python, tmp_path)


Request = Callable[[Host, int], object]

REQUESTS: dict[str, Request] = {
    "an operation that is not known": lambda host, i: host.ask(f"operation{i}"),
    "a command that is not known": lambda host, i: host.ask("jcmd", f"Command{i} {'x' * (i % 5000)}"),
    "a command that raises": lambda host, i: host.ask("jcmd", "Shop.fail"),
    "what is no request": lambda host, i: host.send(b"%d\0\xff\n" % i),
    "half a request": lambda host, i: host.hang_up(),
    "a module that is not there": lambda host, i: host.ask("load", f"agent{i}", "false", ""),
    "a module within one": lambda host, i: host.ask("load", f"json.agent{i}" + ".a" * 20, "false", ""),
    "a library that is not there": lambda host, i: host.ask("load", f"/nonexistent{i}/libx.so", "true", ""),
    "a module that raises": lambda host, i: host.ask("load", "raising", "false", f"\x1b[2J\n{i}"),
    "a module that refuses": lambda host, i: host.ask("load", "refusing", "false", str(i)),
    "a module whose end raises": lambda host, i: host.ask("load", "failing_end", "false", str(i)),
    "a module without an entry": lambda host, i: host.ask("load", "without_entry", "false", str(i)),
    "a module whose import raises": lambda host, i: host.ask("load", "failing_import", "false", str(i)),
    "a module without an end": lambda host, i: host.ask("load", "endless", "false", str(i)),
    "a module that loads": lambda host, i: host.ask("load", "good", "false", str(i)),
    "a module that disposes of what it made": lambda host, i: host.ask("load", "brief", "false", str(i)),
    "a logger that is not there": lambda host, i: host.ask("jcmd", f"VM.log what=a{i}.b.c=debug"),
    "an output for the log": lambda host, i: host.ask("jcmd", f"VM.log output={host.folder}/out{i % 2000}"),
    "a dump over a file": lambda host, i: host.ask("dumpheap", f"{host.folder}/log", "-all"),
    "a dump in no folder": lambda host, i: host.ask("jcmd", f"GC.heap_dump {host.folder}/no{i}/dump"),
    "a flag that is not there": lambda host, i: host.ask("setflag", f"Flag{i}", "1"),
    "a flag's value": lambda host, i: host.ask("setflag", "PerfDataSaveFile", f"/tmp/file{i}"),
    "an instrument on and off": lambda host, i: host.ask("setflag", "Instrument", ["warnings", ""][i % 2]),
}


def check(host: Host, request: Request, count: int = COUNT) -> None:
    for number in range(BEFORE):
        request(host, number)
    before = host.look()
    for number in range(BEFORE, BEFORE + count):
        request(host, number)
    after = host.look()
    assert after["blocks"] - before["blocks"] < 500
    for name in before.keys() - {"blocks", "region"}:
        assert after[name] <= before[name] + 1, name
    assert after["region"] < 16384
    assert len(host.lines("stderr")) < 30
    records = [
        line for line in host.lines("log") if not line.startswith((" ", "Traceback", "ValueError", "ZeroDivision"))
    ]
    assert len(records) < 30, "ten, and one a minute"
    assert len(host.lines("log")) < 500


@pytest.mark.parametrize("name", REQUESTS)
def test_ten_thousand_requests(host: Host, name: str) -> None:
    if name == "a command that raises":
        host.ask("load", "with_command", "false", "")
    check(host, REQUESTS[name], COUNT if name != "a module without an end" else 1000)  # each is a thousand calls


@pytest.mark.parametrize("options", ["", "d"], ids=["refuses", "disposes"])
def test_a_library_that_is_loaded_ten_thousand_times(host: Host, tmp_path: Path, options: str) -> None:
    """By ever other names, as far as a path may have those."""
    library = build(NATIVE, tmp_path).library
    names = [str(library.parent) + "/." * number + f"/{library.name}" for number in range(100)]
    check(host, lambda host, i: host.ask("load", names[i % 100], "true", options))


def test_a_failed_load_is_warned_of_once(host: Host) -> None:
    for _ in range(3):
        assert host.ask("load", "raising", "false", "x").startswith(b"-1\n")
        assert host.ask("load", "nosuch", "false", "x").startswith(b"-1\n")
    (line,) = host.lines("stderr")
    assert line.startswith("WARNING: vmscope: a client loads the agent raising ")


def test_a_client_s_text_makes_no_line_of_a_log(host: Host) -> None:
    """An agent's options come with the client's request, and into the agent's errors."""
    code = """
from vmscope import tool
def agent_on_attach(vm, options):
    env = vm.get_env()
    def dump(env): raise ValueError(options)
    env.set_event_callbacks({tool.Event.DATA_DUMP_REQUEST: dump})
    env.set_event_notification_mode(True, tool.Event.DATA_DUMP_REQUEST)
"""
    (host.folder / "telling.py").write_text(code)
    forged = "x\nERROR:root:the disk is full\x1b[2J\r"
    assert host.ask("load", "telling", "false", forged) == b"0\nreturn code: 0\n"
    host.ask("datadump")
    text = (host.folder / "log").read_text()
    assert "the disk is full" in text
    assert [line for line in text.splitlines() if line.startswith("ERROR:root")] == []
    assert "\x1b" not in text
    assert "\r" not in text
