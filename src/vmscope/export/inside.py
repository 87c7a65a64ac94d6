"""The exporter in the program that is scraped itself: one port for all processes of its service.

Whoever of them has the port serves for all; the others try every second, so that another one has it soon after that one
has ended. All of it is done on a thread of vmscope's own, with descriptors of its own, by one process at a time.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock

from vmscope import native, own_threads
from vmscope.errors import OptionError, VMScopeError
from vmscope.export.listening import MISDIRECTED, WRONG_HOST, Hosts, is_address, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from vmscope.export.host import Host

    Watched = list[tuple[int, int]]  # descriptors, and the events of poll(2) that are waited for

RETRY = 1000  # ms until the port is tried again that another process has
REQUEST = 5.0  # seconds in which a client must have asked, and taken the answer
MOST = 16  # connections; one more closes the oldest
_LONGEST = 8192  # bytes of a request's head
_NEVER = 60_000  # ms
_IN, _OUT = 1, 4  # POLLIN, POLLOUT
_END = b"\r\n\r\n"


class Connection:
    """A client: what it has sent, and what is left to be sent to it."""

    __slots__ = ("due", "head", "left", "socket")

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.due = time.monotonic() + REQUEST
        self.head = b""
        self.left = memoryview(b"")


class Inside:
    """Serves the metrics of this process's service. Called on a thread of vmscope's own, step by step."""

    def __init__(self, host: str, port: int) -> None:
        self.address = host, port
        self._hosts = Hosts(host)
        self.problem = ""  # why it does not listen, unless another process does
        self._host: Host | None = None
        self._listener: socket.socket | None = None
        self._connections: dict[int, Connection] = {}
        self._inodes: dict[socket.socket, int] = {}  # of all that is open

    def __call__(self, begins: bool) -> tuple[Watched, int]:
        """What is due now; what to wait for, and how many ms."""
        found = own_threads.without_collection(lambda: self._step(begins))
        assert isinstance(found, tuple)
        return found

    def _step(self, begins: bool) -> tuple[Watched, int]:
        try:
            if begins:
                self.forget()
            if self._listener is None and not self._listen():
                return [], RETRY
            return self._serve()
        except Exception as error:  # nothing of this is the program's affair
            self.problem = str(error)
            return [], RETRY

    def forget(self) -> None:
        """The descriptors have gone with the thread, and others may have their numbers. The twin's are still there."""
        for each, inode in self._inodes.items():
            if _inode(each.fileno()) == inode:
                each.close()
            else:
                each.detach()
        self._inodes = {}
        self._listener = self._host = None
        self._connections = {}

    def _listen(self) -> bool:
        import errno
        import socket

        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(self.address)
            made.listen(MOST)
        except OSError as error:
            made.close()
            self.problem = "" if error.errno == errno.EADDRINUSE else f"cannot listen: {error.strerror}"
            return False
        self._listener, self.problem = made, ""
        self._inodes[made] = _inode(made.fileno())
        return True

    def _serve(self) -> tuple[Watched, int]:
        import select

        assert self._listener is not None
        poll = select.poll()
        for fd, events in self._watched():
            poll.register(fd, events)
        for fd, _ in poll.poll(0):
            if fd == self._listener.fileno():
                self._accept()
            elif fd in self._connections:
                self._advance(self._connections[fd])
        now = time.monotonic()
        for connection in [each for each in self._connections.values() if each.due <= now]:
            self._close(connection)
        dues = [each.due - now for each in self._connections.values()]
        return self._watched(), int(min(dues) * 1000) + 1 if dues else _NEVER

    def _watched(self) -> Watched:
        assert self._listener is not None
        clients = [(fd, _OUT if connection.left else _IN) for fd, connection in self._connections.items()]
        return [(self._listener.fileno(), _IN), *clients]

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            connected, _ = self._listener.accept()
        except OSError:
            return
        if len(self._connections) >= MOST:
            self._close(min(self._connections.values(), key=lambda each: each.due))
        connected.setblocking(False)
        self._connections[connected.fileno()] = Connection(connected)
        self._inodes[connected] = _inode(connected.fileno())

    def _advance(self, connection: Connection) -> None:
        try:
            if not connection.left:
                received = connection.socket.recv(_LONGEST)
                connection.head += received
                if _END not in connection.head:
                    if not received or len(connection.head) > _LONGEST:
                        self._close(connection)
                    return
                connection.left = memoryview(self._answer(connection.head))
                connection.due = time.monotonic() + REQUEST
            connection.left = connection.left[connection.socket.send(connection.left) :]
        except BlockingIOError:
            return
        except OSError:
            self._close(connection)
            return
        if not connection.left:
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        import socket

        del self._connections[connection.socket.fileno()], self._inodes[connection.socket]
        try:
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        connection.socket.close()

    def _answer(self, head: bytes) -> bytes:
        """The whole response."""
        lines = head.partition(_END)[0].decode("latin-1").split("\r\n")
        method, path = (*lines[0].split(" "), "", "")[:2]
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        path = path.partition("?")[0]
        if not self._hosts.allow(headers.get("host", "")):
            return _response(MISDIRECTED, WRONG_HOST, method)
        if method not in ("GET", "HEAD"):
            return _response("405 Method Not Allowed", b"there is GET and HEAD\n", method)
        if path == "/healthz":
            return _response("200 OK", b"ok\n", method)
        if path != "/metrics":
            return _response("404 Not Found", b"there is /metrics and /healthz\n", method)
        try:
            return self._metrics(method, headers)
        except VMScopeError as error:
            return _response("500 Internal Server Error", f"{error}\n".encode(), method)

    def _metrics(self, method: str, headers: dict[str, str]) -> bytes:
        from vmscope.export import compression, text
        from vmscope.export.host import Host, Options
        from vmscope.reader.roster import Roster

        if self._host is None:
            self._host = Host(Options(of=os.getpid()), Roster(keeps_descriptors=False))
        form = text.negotiate(headers.get("accept", ""))
        body, more = self._host.render(form), {"Vary": "Accept, Accept-Encoding"}
        if compression.accepted(headers.get("accept-encoding", "")):
            body, more["Content-Encoding"] = compression.compressed(body), "gzip"
        return _response("200 OK", body, method, form.content_type, more)


def _response(
    status: str, body: bytes, method: str, kind: str = "text/plain; charset=utf-8", more: dict[str, str] | None = None
) -> bytes:
    headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close", **(more or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + (b"" if method == "HEAD" else body)


_served: Inside | None = None
_stuck: list[Inside] = []  # whose call took too long: no thread of the program may close their descriptors
_lock = RLock()  # two threads of the program may start and stop at once
_hooked = False


def start(address: str | int) -> Inside:
    """Serves /metrics of this process's service from now on, in forked children too: at a port of the loopback, or at
    `HOST:PORT`, where HOST is an address.

    OptionError for an address that is not valid. Nothing else is raised: `problem` of what is returned says why it does
    not listen.
    """
    global _served, _hooked
    host, port = split(address if isinstance(address, str) else f":{address}")
    host = "127.0.0.1" if host == "localhost" else host
    if not is_address(host):
        raise OptionError(f"cannot listen at {address!r}: {host} is not an IP address", hint="write HOST:PORT")
    if sys.platform != "linux":
        raise OptionError("-XX:Export and vmscope.export.start() need Linux", hint="run vmscope export")
    with _lock:
        stop()
        served = _served = Inside(host, port)
        if not _hooked:
            own_threads.at_exit(stop, early=True)
            own_threads.in_child(_after_fork)
            _hooked = True
        _begin()
    return served


def stop() -> None:
    """This process listens no longer; another one of the service may."""
    global _served
    with _lock:
        served, _served = _served, None
        ended = native.stop_serving()
        if served is not None and ended:
            served.forget()
        elif served is not None:
            _stuck.append(served)


def _begin() -> None:
    served = _served
    if served is not None:
        try:
            native.serve(served)
        except (OSError, RuntimeError) as error:
            served.problem = f"no thread can be started: {error}"


def _after_fork() -> None:
    """In a forked child: its parent has the port, or another process; it tries in its turn."""
    global _lock
    _lock = RLock()
    if _served is not None:
        _served.forget()
        _begin()


def _inode(fd: int) -> int:
    try:
        return os.fstat(fd).st_ino
    except OSError:
        return -1
