"""`vmscope export --listen`: real HTTP clients, hostile ones among them, TLS and passwords, rights and ends."""

from __future__ import annotations

import base64
import gzip
import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

import pytest

from tests.conftest import StartVMScope
from tests.support import User
from tests.wait import wait_for as eventually

numbers = count()  # a service of its own for each test: what one has counted outlives it
COMMAND = [sys.executable, "-m", "vmscope", "export"]
ROOT = os.geteuid() == 0


Answer = tuple[http.client.HTTPResponse, bytes]


class Exporter:
    """A running exporter: its address, and requests to it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.url = process.stdout.readline().strip()
        self.port = int(self.url.rpartition(":")[2].removesuffix("/metrics")) if "://" in self.url else 0

    def get(
        self, path: str = "/metrics", method: str = "GET", **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()


Start = Callable[..., Exporter]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def run(*options: str, listen: str = "127.0.0.1:0") -> Exporter:
            command = [*COMMAND, f"--listen={listen}", *options]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            return Exporter(process)

        yield run


OPENMETRICS = "application/openmetrics-text"


@pytest.mark.parametrize(
    ("accept", "type", "line"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8", 'web_hits_total{service="%s",user='),
        (
            "text/plain;version=1.0.0",
            "text/plain; version=1.0.0; charset=utf-8; escaping=underscores",
            "web_hits_total{",
        ),
        (
            "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,*/*;q=0.1",
            "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
            '{"web.hits_total",service="%s",user=',
        ),
        (OPENMETRICS, f"{OPENMETRICS}; version=0.0.1; charset=utf-8", 'web_hits_total{service="%s",user='),
        (
            f"{OPENMETRICS};version=1.0.0;escaping=allow-utf-8;q=0.6,{OPENMETRICS};version=0.0.1;q=0.4",
            f"{OPENMETRICS}; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
            '{"web.hits_total",service="%s",user=',
        ),
    ],
)
def test_the_format_that_is_asked_for(
    start: Start, start_vmscope: StartVMScope, accept: str, type: str, line: str
) -> None:
    service = f"web{os.getpid()}-{next(numbers)}"
    start_vmscope(f"-Dvmscope.service={service}", code="vmscope.counter('web.hits').add(7)")
    exporter = start(f"--vms={service}")
    text = ""

    def shows_it() -> bool:
        nonlocal text
        response, body = exporter.get(Accept=accept)
        assert (response.status, response.headers["Content-Type"]) == (200, type)
        text = body.decode()
        (found,) = (each for each in text.splitlines() if each.startswith(line.replace("%s", service)))
        return found.endswith(" 7")

    eventually(shows_it, "the counter's value")
    if OPENMETRICS in type:
        assert text.endswith("# EOF\n")
        assert "_created{" in text or '_created"' in text
        assert "# UNIT process_cpu_seconds seconds" in text
    else:
        assert "# EOF" not in text


def test_gzip_head_health_and_what_is_not_there(start: Start, start_vmscope: StartVMScope) -> None:
    start_vmscope()
    exporter = start()
    packed, body = exporter.get(Accept_Encoding="gzip, deflate")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert b"# TYPE python_info gauge" in gzip.decompress(body)
    plain, body = exporter.get(Accept_Encoding="gzip;q=0")
    assert plain.headers["Content-Encoding"] is None
    assert b"# TYPE python_info gauge" in body
    head, nothing = exporter.get(method="HEAD")
    assert head.status == 200
    assert int(head.headers["Content-Length"]) > 1000
    assert nothing == b""
    assert exporter.get("/healthz")[1] == b"ok\n"
    assert exporter.get("/etc/passwd")[0].status == 404
    assert exporter.get(method="POST")[0].status == 501


def test_one_connection_serves_many_scrapes(start: Start, start_vmscope: StartVMScope) -> None:
    service = f"kept{os.getpid()}-{next(numbers)}"
    child = start_vmscope(f"-Dvmscope.service={service}", code="c = vmscope.counter('a.b')")
    exporter = start(f"--vms={service}")
    connection = http.client.HTTPConnection("127.0.0.1", exporter.port, timeout=30)

    def value() -> int:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        return next(int(line.split()[-1]) for line in lines if line.startswith("a_b_total{"))

    assert value() == 0
    child.ask("c.inc()")
    eventually(lambda: value() == 1, "the scrape shows the increment")
    child.ask("vmscope.counter('late.comer').inc()")
    eventually(lambda: b"late_comer_total{" in exporter.get()[1], "a counter that is added later")
    connection.close()


def test_vms_come_and_go(start: Start, start_vmscope: StartVMScope) -> None:
    service = f"fleeting{os.getpid()}-{next(numbers)}"
    exporter = start(f"--vms={service}")
    assert b"vmscope_vms{" not in exporter.get()[1]
    first = start_vmscope(f"-Dvmscope.service={service}")
    second = start_vmscope(f"-Dvmscope.service={service}")
    eventually(lambda: b'kind="CPython"} 2\n' in exporter.get()[1], "both are there")
    os.kill(first.pid, signal.SIGKILL)  # its file stays
    eventually(lambda: b'kind="CPython"} 1\n' in exporter.get()[1], "the one that was killed has gone")
    second.kill()
    eventually(lambda: b"vmscope_vms{" not in exporter.get()[1], "both have gone")


def test_a_signal_ends_it_in_order(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    exporter = start(listen=f"unix:{path}")
    assert path.stat().st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        exporter.process.send_signal(signal.SIGTERM)
        assert exporter.process.wait(30) == 0
        assert client.recv(4096) == b""


def test_a_socket_that_was_left_is_replaced_and_one_in_use_is_not(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    start(listen=f"unix:{path}")
    ended = subprocess.run([*COMMAND, f"--listen=unix:{path}"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"vmscope: cannot listen at unix:{path}: Address already in use")


# -- hostile clients ------------------------------------------------------------------------------


def test_slow_clients_hold_nobody_up(start: Start) -> None:
    """Three hundred connections that never ask, and some that ask byte by byte."""
    exporter = start()
    with ExitStack() as stack:
        for number in range(300):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", exporter.port), timeout=30))
            with suppress(OSError):
                client.sendall(b"GET /metrics HTTP/1.1\r\nX: " if number % 2 else b"")
        assert exporter.get()[0].status == 200
        tasks = f"/proc/{exporter.process.pid}/task"
        eventually(lambda: len(os.listdir(tasks)) < 70, "the threads of those that were cut off end")


@pytest.mark.parametrize(
    "request_",
    [
        b"\0\xff\n\n",
        b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /metrics\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nAccept: " + b",;q=x,\xe4;=;" * 500 + b"\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nAccept-Encoding: ;q=,\xff;q=\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /",
    ],
    ids=lambda request: repr(request[:24]),
)
def test_malformed_requests(start: Start, request_: bytes) -> None:
    exporter = start()
    with socket.create_connection(("127.0.0.1", exporter.port), timeout=30) as client:
        client.sendall(request_)
        client.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while client.recv(1 << 16):
                pass
    assert exporter.get()[0].status == 200


def test_a_hostile_vm_neither_breaks_lines_nor_fills_the_answer(start: Start, start_vmscope: StartVMScope) -> None:
    service = f"evil{os.getpid()}-{next(numbers)}"
    code = r"""
for i in range(2000):
    vmscope.gauge("e.v").labels(x="\n" + chr(0x202e) + "\x1b]0;" + str(i) + "y" * 5000).set(i)
vmscope.gauge("e.w").labels(__name__="up", le="0.1", service="bank").set(1)
"""
    start_vmscope(f"-Dvmscope.service={service}", "-XX:PerfDataMemorySize=16m", code=code)
    _, body = start(f"--vms={service}", "--limit=500").get()
    lines = body.decode().splitlines()
    ours = [line for line in lines if not line.startswith("#")]
    assert [line for line in ours if not (line.isprintable() and len(line) < 600)] == []
    assert sum(line.startswith("e_v{") for line in ours) <= 500
    assert len(body) < 500_000
    assert not [line for line in ours if 'service="bank"' in line.replace("exported_service", "")]
    assert not [line for line in ours if ",__name__=" in line]


def test_who_uses_another_users_service_name_is_not_added_to_it(
    start: Start, start_vmscope: StartVMScope, private_user: User
) -> None:
    service = f"bank{os.getpid()}-{next(numbers)}"
    start_vmscope(f"-Dvmscope.service={service}", code="vmscope.counter('b.c').add(1)")
    start_vmscope(f"-Dvmscope.service={service}", code="vmscope.counter('b.c').add(1000)", user=private_user)
    exporter = start(f"--vms={service}")

    def found() -> dict[str, str]:
        lines = exporter.get()[1].decode().splitlines()
        return {line.rpartition(" ")[0]: line.split()[-1] for line in lines if line.startswith("b_c_total{")}

    eventually(lambda: sorted(found().values()) == ["1", "1000"], "both users' counters")
    assert [value for name, value in found().items() if f'user="{private_user.name}"' in name] == ["1000"]


def test_a_vm_that_gets_new_counters_all_the_time_holds_nobody_up(start: Start, start_vmscope: StartVMScope) -> None:
    code = """
import itertools, threading
def add():
    for number in itertools.count():
        vmscope.counter(f"n.{number}").inc()
threading.Thread(target=add, daemon=True).start()
"""
    start_vmscope("-XX:PerfDataMemorySize=64m", code=code)
    steady = f"steady{os.getpid()}"
    start_vmscope(f"-Dvmscope.service={steady}")
    exporter = start("--limit=100")
    for _ in range(5):
        response, body = exporter.get()
        assert response.status == 200
        assert f'vmscope_vms{{service="{steady}"'.encode() in body


# -- rights ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not ROOT, reason="needs root")
def test_root_keeps_the_right_to_read_alone(start: Start, start_vmscope: StartVMScope, private_user: User) -> None:
    service = f"theirs{os.getpid()}-{next(numbers)}"
    start_vmscope(f"-Dvmscope.service={service}", user=private_user)
    exporter = start(f"--vms={service}")
    status = Path(f"/proc/{exporter.process.pid}/status").read_text()
    facts = {name: text.split() for name, _, text in (line.partition(":") for line in status.splitlines())}
    assert set(facts["Uid"]) == set(facts["Gid"]) == {"65534"}
    assert facts["Groups"] == []
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(facts[name][0], 16) & ~(1 << 2 | 1 << 19) == 0
    assert facts["NoNewPrivs"] == ["1"]
    assert f'user="{private_user.name}"'.encode() in exporter.get()[1]


# -- TLS and passwords ----------------------------------------------------------------------------

SECRET = "$2b$05$......................35w9tBXOiWEqF4YNx8Fn9rPUbxS7RTu"  # of "secret"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


OWN = socket.gethostname()


@pytest.mark.parametrize(
    ("listen", "options", "answered", "refused"),
    [
        # a name that leads to the loopback may be anybody's: DNS rebinding
        ("127.0.0.1:0", [], ["127.0.0.1:9464", "[::1]:9464", "localhost", "LocalHost.:1", "a.localhost", OWN],
         ["evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example", "0x7f.1"]),
        ("127.0.0.1:0", ["--allowed-hosts=shop.example,b"], ["shop.example:80", "B", "10.0.0.1"], ["evil.example"]),
        ("127.0.0.1:0", ["--allowed-hosts=*"], ["evil.example"], []),
        ("0.0.0.0:0", [], ["shop.example"], []),
        ("0.0.0.0:0", ["--allowed-hosts=shop.example"], ["shop.example", "127.0.0.1"], ["evil.example"]),
    ],
)  # fmt: skip
def test_the_names_under_which_it_answers(
    start: Start, listen: str, options: list[str], answered: list[str], refused: list[str]
) -> None:
    exporter = start("--vms=nothing", *options, listen=listen)
    for host in answered:
        assert exporter.get(Host=host)[0].status == 200, host
    for host in refused:
        for path in ("/metrics", "/healthz", "/"):
            response, body = exporter.get(path, Host=host)
            assert (response.status, response.reason) == (421, "Misdirected Request"), host
            assert b"--allowed-hosts" in body
    with socket.create_connection(("127.0.0.1", exporter.port), timeout=30) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert client.makefile("rb").readline().split()[1] == b"200"


def test_passwords(start: Start, tmp_path: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text(f"# who may ask\nbasic_auth_users:\n  alice: '{SECRET}'\n")
    exporter = start(f"--web-config={config}")
    assert exporter.get()[0].status == 401
    for wrong in (basic("alice", "Secret"), basic("bob", "secret"), "Basic ====", "Bearer x", basic("alice", "\0")):
        response, _ = exporter.get(Authorization=wrong)
        assert response.status == 401, wrong
        assert response.headers["WWW-Authenticate"]
    for _ in range(2):
        assert exporter.get(Authorization=basic("alice", "secret"))[0].status == 200


def test_tls(start: Start, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *subject]
    try:
        subprocess.run([*made, "-keyout", key, "-out", certificate, "-days", "2"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl")
    config = tmp_path / "web.yml"
    config.write_text("tls_server_config:\n  cert_file: certificate.pem\n  key_file: key.pem\n  min_version: TLS13\n")
    exporter = start(f"--web-config={config}")
    assert exporter.url.startswith("https://")
    trusted = ssl.create_default_context(cafile=str(certificate))
    with socket.create_connection(("127.0.0.1", exporter.port)):  # one that says nothing holds nobody up
        connection = http.client.HTTPSConnection("localhost", exporter.port, context=trusted, timeout=30)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"
        connection.close()
    with pytest.raises((OSError, http.client.HTTPException)):
        exporter.get()


@pytest.mark.parametrize(
    "text",
    [
        "basic_auth_users:\n  alice: secret\n",
        "http_server_config:\n  http2: true\n",
        "tls_server_config:\n  cert_file: nowhere.pem\n  key_file: nowhere.pem\n",
        "tls_server_config:\n  key_file: x\n",
        "tls_server_config: &anchor\n  key_file: x\n",
        "\tkey: value\n",
    ],
)
def test_a_web_config_that_is_not_understood_is_an_error(tmp_path: Path, text: str) -> None:
    config = tmp_path / "web.yml"
    config.write_text(text)
    command = [*COMMAND, "--listen=127.0.0.1:0", f"--web-config={config}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1), ended


# -- files ----------------------------------------------------------------------------------------


def test_a_textfile_is_replaced_whole(tmp_path: Path, start_vmscope: StartVMScope) -> None:
    start_vmscope()
    path = tmp_path / "vmscope.prom"
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path.symlink_to(victim)
    command = [*COMMAND, f"--textfile={path}", "--interval=50ms"]
    with subprocess.Popen(command) as process:
        try:
            eventually(lambda: not path.is_symlink(), "the file is there")
            inodes = set()

            def is_whole() -> bool:
                text = path.read_text()
                assert text.startswith("# HELP ")
                assert text.endswith("\n")
                assert "vmscope_export_reads_total" in text
                inodes.add(path.stat().st_ino)
                return len(inodes) > 3

            eventually(is_whole, "it is replaced, again and again")
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert victim.read_text() == "mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["victim", "vmscope.prom"]
