"""The exporter within the program: one port for all workers, and nothing of it is the program's."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from tests.debugger import free_port
from tests.integration.test_export import COMMAND, one, samples
from tests.wait import wait_for
from vmscope import native

PROGRAM = """\
import json, os, signal, sys, threading, time
import vmscope

sold = vmscope.counter("app.sold")

def seen():
    links = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{fd}").partition(":")[0])
        except OSError:
            pass  # that of the listing
    return sorted(link for link in links if link in ("socket", "anon_inode", "pipe")), threading.active_count()

for line in sys.stdin:
    word, number = line.split()
    if word == "start":
        pid = os.fork()
        if pid == 0:
            sold.add(int(number))
            signal.pause()
        print(pid, flush=True)
    elif word == "reap":
        os.waitpid(int(number), 0)
        print(number, flush=True)
    else:
        print(json.dumps([seen(), len(sys._current_frames())]), flush=True)
"""


numbers = count()


class Program:
    def __init__(self, folder: Path, *options: str) -> None:
        (folder / "program.py").write_text(PROGRAM)
        self.service = f"inside{os.getpid()}-{next(numbers)}"
        command = [*COMMAND, "run", f"-Dvmscope.service={self.service}", *options, str(folder / "program.py")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=folder
        )

    def ask(self, word: str, number: int = 0) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word} {number}\n")
        return self.process.stdout.readline()

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0

    def sold(self, port: int) -> float | None:
        name = rf'app_sold_total{{service="{self.service}",user="\w+"}}'
        return next((value for key, value in (scraped(port) or {}).items() if re.fullmatch(name, key)), None)


def scraped(port: int) -> dict[str, float]:
    """Nothing where nobody listens just now."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            return samples(answer.read().decode())
    except urllib.error.URLError:
        return {}


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def program(tmp_path: Path, port: int) -> Iterator[Program]:
    made = Program(tmp_path, f"-XX:Export=:{port}")
    with made.process as process:
        try:
            yield made
        finally:
            process.kill()
            for totals in Path("/tmp").glob(f"hsperfdata_*/services/inside{os.getpid()}-*"):
                totals.unlink()


@pytest.mark.flaky(reason="on a busy machine the count is wrong or missing for 60 s now and then; not explained")
def test_one_port_for_all_workers(program: Program, port: int) -> None:
    """Whoever has it serves for all, and another one has it after that one has ended, by SIGKILL too."""
    pids = [int(program.ask("start", number)) for number in (1, 20, 300)]
    wait_for(lambda: program.sold(port) == 321, "all are counted", 60)
    assert one(scraped(port), r"vmscope_vms{.*}") == 4
    for pid, by in zip(pids, (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM), strict=True):
        os.kill(pid, by)
        program.ask("reap", pid)
        wait_for(
            lambda: program.sold(port) == 321,
            lambda: f"another one serves, and nothing is lost: {program.sold(port)}, {scraped(port)}",
            60,
        )
    assert one(scraped(port), r"vmscope_vms{.*}") == 1
    program.end()
    assert scraped(port) == {}


@pytest.mark.skipif(native.IMPLEMENTATION == "python", reason="the twin's descriptors and threads are the program's")
def test_nothing_of_it_is_the_program_s(tmp_path: Path, program: Program, port: int) -> None:
    wait_for(lambda: program.sold(port) == 0, "it serves", 60)
    plain = Program(tmp_path)
    with plain.process:
        expected = json.loads(plain.ask("seen"))
        plain.end()
    assert json.loads(program.ask("seen")) == expected
    assert one(scraped(port), r"python_threads_live{.*}") == 1
    assert one(scraped(port), r"python_threads_started_total{.*}") == 1


def test_a_port_that_somebody_has_is_no_error(tmp_path: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        made = Program(tmp_path, f"-XX:Export=127.0.0.1:{port}")
        with made.process:
            assert json.loads(made.ask("seen"))
            made.end()


@pytest.mark.parametrize("address", ["", "9464", "nowhere:9464", ":99999", "unix:/tmp/x", "127.0.0.1"])
def test_what_is_no_address(address: str) -> None:
    code = f"""
import vmscope, vmscope.export
try:
    vmscope.export.start({address!r})
except vmscope.VMScopeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("cannot listen at"), done


def test_a_wrong_option_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import vmscope; print(vmscope.status().problems)")
    command = [*COMMAND, "run", "-XX:Export=nowhere:1", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "nowhere is not an IP address" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def asked(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(request)
        found = b""
        with suppress(ConnectionResetError):  # it was closed before all of it was read
            while part := client.recv(65536):
                found += part
        return found


def test_requests(program: Program, port: int) -> None:
    wait_for(lambda: program.sold(port) == 0, "it serves", 60)
    assert asked(port, b"GET /healthz HTTP/1.1\r\n\r\n").endswith(b"\r\n\r\nok\n")
    assert asked(port, b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 404 ")
    assert asked(port, b"POST /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 405 ")
    assert asked(port, b"\r\n\r\n").startswith(b"HTTP/1.1 405 ")
    head, _, body = asked(port, b"HEAD /metrics HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
    assert (body, int(re.findall(rb"Content-Length: (\d+)", head)[0]) > 1000) == (b"", True)
    openmetrics = asked(port, b"GET /metrics?x HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n")
    assert b"Content-Type: application/openmetrics-text" in openmetrics
    assert openmetrics.endswith(b"# EOF\n")
    packed = asked(port, b"GET /metrics HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n").partition(b"\r\n\r\n")[2]
    assert packed[:2] == b"\x1f\x8b"


def test_the_names_under_which_it_answers(program: Program, port: int) -> None:
    def status(host: str) -> int:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            return int(client.makefile("rb").readline().split()[1])

    wait_for(lambda: bool(scraped(port)), "it listens")
    assert program.process.poll() is None
    for host in ("127.0.0.1", f"localhost:{port}", socket.gethostname()):
        assert status(host) == 200, host
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example"):
        assert status(host) == 421, host


def test_silent_clients_hold_nobody_up(program: Program, port: int) -> None:
    wait_for(lambda: program.sold(port) == 0, "it serves", 60)
    silent = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(40)]
    try:
        silent[-1].sendall(b"GET /metrics")
        assert program.sold(port) == 0
        assert silent[0].recv(1) == b"", "the oldest made room"
        assert asked(port, bytes(9000)) == b"", "no head is that long"
    finally:
        for each in silent:
            each.close()


def test_the_end_of_the_program_does_not_wait(program: Program, port: int) -> None:
    wait_for(lambda: program.sold(port) == 0, "it serves", 60)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n")
        program.end()
