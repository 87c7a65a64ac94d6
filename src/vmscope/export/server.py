"""The HTTP server: /metrics and /healthz, for a few clients at a time, none of which can hold the others up."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn

from vmscope.errors import VMScopeError
from vmscope.export import text
from vmscope.export.compression import accepted, compressed
from vmscope.export.listening import MISDIRECTED, WRONG_HOST, Hosts, split
from vmscope.export.web_config import WebConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from vmscope.export.host import Host

DEFAULT = "127.0.0.1:9464"
UNIX = "unix:"
MOST = 64  # connections; one more closes the one that has been quiet for longest
MOST_THREADS = 2 * MOST  # those of connections that are cut end once their read does
REQUEST = 10.0  # seconds in which a new connection must have asked
IDLE = 150.0  # seconds that one may be quiet between two requests
GRACE = 3.0  # seconds that requests have at the end
_SMALL = 1400  # bytes that are not worth compressing
_POLL = 0.1

PAGE = b"<!doctype html><title>vmscope export</title><p>vmscope export: <a href=/metrics>/metrics</a>\n"


def address(listen: str) -> tuple[int, tuple[str, int] | str]:
    """The family and the address of `HOST:PORT`, `:PORT` (loopback), `[V6]:PORT` or `unix:PATH`."""
    if listen.startswith(UNIX) and listen != UNIX:
        return getattr(socket, "AF_UNIX", 0), listen.removeprefix(UNIX)
    host, port = split(listen)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise VMScopeError(f"there is no address {host!r}: {error.strerror}", hint="use one of this host's") from None
    return found[0], (str(found[4][0]), port)


class Server(ThreadingMixIn, TCPServer):
    """Serves a host's metrics. `url` says where. Close it after use."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = sys.platform != "win32"
    request_queue_size = 64

    def __init__(
        self, host: Host, listen: str = DEFAULT, config: WebConfig | None = None, hosts: Iterable[str] = ()
    ) -> None:
        self.host = host
        self.config = config or WebConfig()
        self.address_family, where = address(listen)
        self._unix = where if isinstance(where, str) else ""
        self.hosts = Hosts("" if isinstance(where, str) else where[0], hosts, guarded=self.config.guards)
        self._context = self.config.context()
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_THREADS)
        self._due: dict[socket.socket, float] = {}
        self._busy: set[socket.socket] = set()
        if self._unix:
            _remove_stale(self._unix)
        try:
            super().__init__(where, Handler)  # type: ignore[arg-type]  # a path too
        except OSError as error:
            raise VMScopeError(f"cannot listen at {listen}: {error.strerror}", hint="choose another address") from None
        scheme = "https" if self._context else "http"
        shown = self.server_address
        self.url = listen if self._unix else f"{scheme}://{_host(str(shown[0]))}:{shown[1]}/metrics"

    def server_bind(self) -> None:
        if self._unix:
            before = os.umask(0o177)  # this user's alone, as it may show what only root can read
            try:
                self.socket.bind(self._unix)
            finally:
                os.umask(before)
            return
        super().server_bind()

    def start(self) -> None:
        """Answers from now on, on threads of its own."""
        threading.Thread(target=self.serve_forever, args=(_POLL,), name="vmscope export", daemon=True).start()

    def close(self) -> None:
        """Takes no more connections, lets those that are being answered end, and closes all."""
        self.shutdown()
        self.server_close()
        if self._unix:
            with suppress(OSError):
                os.unlink(self._unix)
        due = time.monotonic() + GRACE
        while self._busy and time.monotonic() < due:
            time.sleep(0.01)
        with self._lock:
            for connection in self._due:
                _cut(connection)

    # -- connections

    def get_request(self) -> tuple[socket.socket, object]:
        connection, client = super().get_request()
        if not self._unix:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            if len(self._due) >= MOST:
                quiet = [each for each in self._due if each not in self._busy] or list(self._due)
                oldest = min(quiet, key=self._due.__getitem__)
                del self._due[oldest]
                _cut(oldest)
            self._due[connection] = time.monotonic() + REQUEST
        return connection, client

    def service_actions(self) -> None:
        now = time.monotonic()
        with self._lock:
            for connection, due in self._due.items():
                if now > due:
                    _cut(connection)

    def process_request(self, request: object, client_address: object) -> None:
        """On a thread of its own, where there may be one more."""
        assert isinstance(request, socket.socket)
        if self._places.acquire(blocking=False):
            try:
                super().process_request(request, client_address)
            except BaseException:
                self._places.release()
                raise
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self._places.release()

    def finish_request(self, request: object, client_address: object) -> None:
        """On the connection's thread."""
        connection = request
        assert isinstance(connection, socket.socket)
        if self._context is None:
            super().finish_request(connection, client_address)
            return
        connection.settimeout(REQUEST)
        with suppress(OSError), self._context.wrap_socket(connection, server_side=True) as wrapped:
            with self._lock:
                self._due[wrapped] = self._due.pop(connection, time.monotonic() + REQUEST)
            try:
                super().finish_request(wrapped, client_address)
            finally:
                self._forget(wrapped)

    def shutdown_request(self, request: object) -> None:
        assert isinstance(request, socket.socket)
        self._forget(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Logs nothing: a client that goes away is not an error of vmscope's."""

    def begin(self, connection: socket.socket) -> None:
        """A request has been read."""
        with self._lock:
            self._busy.add(connection)
            self._due[connection] = time.monotonic() + REQUEST

    def end(self, connection: socket.socket) -> None:
        """It has been answered."""
        with self._lock:
            self._busy.discard(connection)
            if connection in self._due:
                self._due[connection] = time.monotonic() + IDLE

    def _forget(self, connection: socket.socket) -> None:
        with self._lock:
            self._due.pop(connection, None)
            self._busy.discard(connection)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server
    timeout = IDLE
    wbufsize = 1 << 16  # the head and a small body go in one piece

    def do_GET(self) -> None:
        self.server.begin(self.connection)
        try:
            self._answer()
        except VMScopeError as error:
            self._send(500, f"{error}\n".encode())
        else:
            self.wfile.flush()
        finally:
            self.server.end(self.connection)

    do_HEAD = do_GET

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        if not self.server.hosts.allow(self.headers.get("Host", "")):
            self._send(int(MISDIRECTED.partition(" ")[0]), WRONG_HOST)
        elif not self.server.config.allows(self.headers.get("Authorization", "")):
            self._send(401, b"Unauthorized\n", [("WWW-Authenticate", 'Basic realm="vmscope"')])
        elif path == "/metrics":
            form = text.negotiate(self.headers.get("Accept", ""))
            self._send(200, self.server.host.render(form), [("Vary", "Accept, Accept-Encoding")], form.content_type)
        elif path == "/healthz":
            self._send(200, b"ok\n")
        elif path == "/":
            self._send(200, PAGE, type="text/html; charset=utf-8")
        else:
            self._send(404, b"there is /metrics and /healthz\n")

    def _send(
        self, status: int, body: bytes, headers: list[tuple[str, str]] | None = None,
        type: str = "text/plain; charset=utf-8",
    ) -> None:  # fmt: skip
        self.send_response(status)
        self.send_header("Content-Type", type)
        for name, value in headers or ():
            self.send_header(name, value)
        if len(body) > _SMALL and accepted(self.headers.get("Accept-Encoding", "")):
            body = compressed(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        if self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding"):
            self.send_header("Connection", "close")  # a body that is not read
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "vmscope"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what clients send is theirs."""


def _cut(connection: socket.socket) -> None:
    """Its thread reads the end, and closes it."""
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _remove_stale(path: str) -> None:
    """Removes a socket at which no process listens any more."""
    from stat import S_ISSOCK

    with suppress(OSError):
        if not S_ISSOCK(os.lstat(path).st_mode):
            return
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            try:
                client.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
