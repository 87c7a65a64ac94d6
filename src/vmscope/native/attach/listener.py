"""The twin of listener.c, io_thread.c and socket.c: one thread, with the GIL, that talks with clients and serves them.

Differences show. Its descriptors are open in the whole process. While a command runs or a client is slow to read, the
others wait. SIGQUIT is left alone, as a handler in Python would be seen, and waits for the main thread.
"""

from __future__ import annotations

import errno
import os
from select import POLLERR, POLLHUP, POLLIN, POLLOUT, poll
from time import monotonic_ns

from vmscope.native.attach import protocol, socket
from vmscope.native.attach.credentials import all_may_attach, describe_limit, exceeds_main, may_attach
from vmscope.native.attach.socket import remove_left_socket
from vmscope.native.signals import crash_handler
from vmscope.native.threads.thread import Thread, resume

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from typing_extensions import Buffer

__all__ = ["Call", "Listener", "leave_attach_signal", "remove_left_socket", "take_attach_signal"]

_PLACES = 64
_BACKLOG = 512
_MAX_QUEUED = 16 << 20  # bytes of replies that have yet to go
_ENOUGH = 16384  # bytes that are sent without waiting for more
_PIECE = 65536
_SECOND = 1_000_000_000  # ns
_ARRIVAL_TIMEOUT = 10 * _SECOND  # for a request to arrive,
_ARRIVAL_LEAST = _SECOND  # of which it gets this many while others wait for its place
_STALE_CHECK_DELAY = 250_000_000  # ns from the start until sockets are looked for that others left
_READING_TIMEOUT = 10 * _SECOND  # without a byte read by the client; then it loses what others need
_DEAF = 50_000_000  # ns at most that the thread waits for where it cannot be woken
_BREATH = _SECOND  # after the program has closed the socket, as it may be in the middle of closing all that there is
_LOOK = _SECOND  # the program may have closed what wakes the thread, and have its own under that number at once
_RETRY = 10 * _SECOND  # after the socket could not be opened
_DENIED = b"-1\nPermission denied: the process has changed its user, or its privileges, since the client connected\n"
_OUTSIDE = (
    b"-1\nPermission denied: threads of vmscope have rights that the main thread of the process does not have: "
    b"the program has to call vmscope.stop() and start() once it has changed its rights\n"
)
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_REFUSALS = {
    protocol.BAD_VERSION: b"101\nprotocol versions 1 and 2 are known here\n",
    protocol.MALFORMED: b"-1\nmalformed request\n",
}


_parents: list[object] = []  # in a forked child: commands under way, whose cleaning up is the parent's


class _Connection:
    """A client: its request as it arrives, then what is left to send of the reply."""

    def __init__(self, socket: socket.Socket, client: tuple[int, int, int]) -> None:
        self.socket = socket
        self.pid, self.uid, self.gid = client
        self.since = monotonic_ns()  # when the client has last done what was its turn
        self.request = b""
        self.reply = bytearray()
        self.served = False  # the reply is complete
        self.outside = False  # this thread had more rights than the main thread when the request came
        self.gone = False
        self.call: Call | None = None
        self.steps: Iterator[object] | None = None  # of a command that is under way

    def transmit(self) -> None:
        """Sends what goes."""
        self.gone |= not self.socket.is_there()
        while self.reply and not self.gone:
            try:
                sent = self.socket.send(self.reply[:_PIECE])
            except BlockingIOError:
                return
            except InterruptedError:
                continue
            except OSError:
                self.gone = True
                return
            del self.reply[:sent]
            self.since = monotonic_ns()

    def close(self) -> None:
        self.gone = True
        self.socket.finish()


class Call:
    """One request, and the reply to it."""

    snapshot = None  # threads cannot be looked at before this one has the GIL

    def __init__(self, listener: Listener, connection: _Connection, version: int, strings: list[bytes]) -> None:
        self._listener = listener
        self._connection = connection
        self.version = version
        self.pid = connection.pid
        self.uid = connection.uid
        name, *arguments = (string.decode("utf-8", "surrogateescape") for string in strings)
        self.operation, _, self.options = name.partition(" ")
        while arguments and not arguments[-1]:
            arguments.pop()
        self.arguments = tuple(arguments)
        self.begun = False  # the reply is

    def write(self, data: Buffer, /) -> None:
        """Queues bytes of the reply. BrokenPipeError where the client has gone, or leaves too much unread for 10 s."""
        self._check()
        self._connection.reply += data
        self.begun = True
        if len(self._connection.reply) >= _ENOUGH:
            self._connection.transmit()
        while len(self._connection.reply) > _MAX_QUEUED and not self._connection.gone:
            self._listener.wait_for(self._connection)
        self._check()

    def flush(self) -> None:
        """Sends what is queued. BrokenPipeError where the client has gone."""
        self._connection.transmit()
        self._check()

    def _check(self) -> None:
        if self._connection.gone or self._connection.served or self._listener.closed:
            raise BrokenPipeError(f"the client of the command (pid {self.pid}) has gone")


class Listener(Thread):
    """Answers the attach protocol: calls `serve(call)` for each request. Where that returns an iterator, each `next`
    is a step of the command: others, forks and the end of the process come between two of them.

    The first time that a client is denied because threads differ in their rights, `denied(limit)` is called.
    """

    _kind = "listener"
    _fork_tries = 10

    def __init__(self, serve: Callable[[Call], object], denied: Callable[[str], object] | None = None) -> None:
        super().__init__()
        self._serve = serve
        self._denied = denied
        self._limited = False  # a client was denied by the rights of threads
        self._path = self._temporary = b""
        self._inode = (0, 0)
        self._owner = 0
        self._stale_check_at = 0
        self._socket: socket.Socket | None = None
        self._open_after = 0  # monotonic ns, where there is none
        self._open_error = 0  # errno of the last time
        self._accept_after = 0  # the same, where the system has no descriptor left
        self._asked = False  # to see to it that the socket is there, under its name
        self._connections: list[_Connection] = []
        self._wakes: tuple[socket.Socket, socket.Socket] | None = None
        self.closed = True

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    def open(self, path: bytes, temporary: bytes, /) -> None:
        """Makes the socket and starts to serve it. OSError where that cannot be."""
        if not self.closed:
            raise RuntimeError("the listener is open")
        self._path, self._temporary = path, temporary
        self._limited = False
        self._open_socket()
        self._stale_check_at = monotonic_ns() + _STALE_CHECK_DELAY
        self._wakes = socket.pair()
        self.closed = False
        crash_handler.unlink_socket = self._unlink
        try:
            self._activate()
        except BaseException:
            self._discard()
            self._unlink()
            raise

    def _open_socket(self) -> None:
        self._socket, self._inode = socket.bind(self._path, self._temporary, _BACKLOG)
        self._owner = os.getpid()

    def settle(self) -> None:
        """Nothing: it is open."""

    def check(self) -> int:
        """0, or the errno for which no client can connect now; what can be done about it is done at once."""
        error = self.error or self._open_error
        if self.error:
            resume()
        if not error and not (self._socket and self._socket.is_there() and socket.is_named(self._path, self._inode)):
            error = errno.ENOENT
        if error:
            self._asked = True
            self._kick()
        return error

    def watch_children(self, directory: bytes, /) -> None:
        """Nothing: what they leave that are killed is removed by the next start, or the end of this process."""

    def limit(self) -> str:
        """Who cannot attach because threads of the process differ in their rights, for people; "": all can."""
        return describe_limit(self._task.removeprefix("/proc/"))

    def _note_limit(self) -> None:
        if not self._limited and (limit := self.limit()):
            self._limited = True
            if self._denied is not None:
                self._denied(limit)

    def close(self, timeout: int, last: bool = False, unlink: bool = True, /) -> bool:
        """Takes the socket away; False where a command has not ended in this many ns."""
        if self.closed:
            return True
        self.closed = True
        if unlink:
            self._unlink()
        ended = self._deactivate(timeout)
        if unlink:
            self._unlink()  # the thread was making it anew
        return ended

    def _unlink(self) -> None:
        if self._owner == os.getpid() and socket.is_named(self._path, self._inode):
            socket.remove(self._path)

    def _discard(self) -> None:
        for connection in self._connections:
            _abandon(connection)
            connection.close()
        for each in (self._socket, *(self._wakes or ())):
            if each is not None:
                each.close()
        self._connections, self._socket, self._wakes = [], None, None

    def _forked(self) -> None:
        """In a forked child: what it has of all this goes, without a word to clients, for the parent has it too."""
        self.closed = True
        for connection in self._connections:
            connection.gone = True
            connection.socket.close()
            if connection.steps is not None:
                _parents.append(connection.steps)
        self._connections = []
        self._discard()

    # -- the thread

    def _kick(self) -> None:
        super()._kick()
        wakes = self._wakes  # the thread that ends discards them
        if wakes is not None and wakes[1].is_there():
            try:
                wakes[1].send(b"\0")
            except OSError:  # it is full of these, or the program has closed the other one
                pass

    def _run(self) -> None:
        self.error = 0
        while not self._stopping:
            self._turn()
            self._account()
        if self.closed:
            self._discard()

    def _find_closed(self, now: int) -> None:
        """What the program has closed, which may have something else there, is forgotten."""
        if self._socket is not None and not self._socket.is_there():
            self._lose_socket(now + _BREATH)
        if self._wakes is not None and not all(wake.is_there() for wake in self._wakes):
            for wake in self._wakes:
                wake.close()
            self._wakes, self._open_after = None, max(self._open_after, now + _BREATH)
        for connection in [each for each in self._connections if not each.socket.is_there()]:
            self._drop(connection)

    def _keep_open(self, now: int) -> None:
        """Where there is no socket, or not under its name; and what wakes the thread."""
        asked, self._asked = self._asked, False
        if asked and not socket.is_named(self._path, self._inode):
            self._lose_socket(0)
        if not asked and now < self._open_after:
            return
        try:
            if self._wakes is None:
                self._wakes = socket.pair()
            if self._socket is None:
                self._open_socket()
            self._open_error = 0
        except OSError as error:
            self._open_error, self._open_after = error.errno or errno.EIO, now + _RETRY

    def _turn(self) -> None:
        now = monotonic_ns()
        self._find_closed(now)
        self._keep_open(now)
        for connection in [each for each in self._connections if _is_late(each, now)]:
            self._drop(connection)
        place_in = max(self._find_place(now), self._accept_after - now)
        arriving = [each for each in self._connections if not each.served and each.steps is None]
        waits = [_ARRIVAL_TIMEOUT - (now - each.since) for each in arriving]
        if self._stale_check_at and now >= self._stale_check_at:
            self._stale_check_at = 0
            socket.remove_stale_sockets(os.path.dirname(self._path), lambda: self._stopping)
        elif self._stale_check_at:
            waits.append(self._stale_check_at - now)
        polled = poll()
        if self._wakes is not None:
            polled.register(self._wakes[0], POLLIN)
            waits.append(_LOOK)
        else:
            waits.append(_DEAF)
        if self._socket is None:
            waits.append(self._open_after - now)
        elif place_in <= 0:
            polled.register(self._socket.fileno(), POLLIN)
        else:
            waits.append(place_in)
        for connection in self._connections:
            if connection.steps is None:
                polled.register(connection.socket.fileno(), POLLOUT if connection.served else POLLIN)
            else:
                waits.append(-1_000_000)  # its next step is due
        try:
            events = dict(polled.poll(max(0, min(waits) // 1_000_000 + 1)))
        except OSError:  # no memory, or more descriptors than the program's limit has become
            self._wait(_BREATH)
            return
        self._find_closed(monotonic_ns())
        if self._wakes is not None and self._wakes[0].fileno() in events:
            self._wakes[0].recv(_PIECE)
        for connection in tuple(self._connections):
            event = events.get(connection.socket.fileno(), 0)
            if connection.steps is not None and not self._stopping:
                self._step(connection)
            elif event and not self._stopping:
                if connection.served:
                    self._send(connection, bool(event & (POLLERR | POLLHUP)))
                else:
                    self._receive(connection)
        event = 0 if self._socket is None else events.get(self._socket.fileno(), 0)
        if event and (self._accept_all() or event & ~POLLIN):  # no client can connect any more
            self._lose_socket(0)

    def _lose_socket(self, open_after: int) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._open_after = None, open_after

    def _find_place(self, now: int) -> int:
        """The ns until there is one for another client; 0: now."""
        if len(self._connections) < _PLACES:
            return 0
        return max(0, min(_grace(each) - (now - each.since) for each in self._connections))

    def _accept_all(self) -> bool:
        """As many as there are places for, and no more in a turn, whoever they are; True: none can come any more."""
        for _ in range(_PLACES):
            now = monotonic_ns()
            if self._stopping or self._find_place(now):
                break
            try:
                fd, _ = self._socket._accept()  # type: ignore[union-attr]
            except BlockingIOError:
                break
            except OSError as error:
                self._accept_after = now + _DEAF
                return error.errno not in _SHORTAGES
            accepted = socket.Socket(fd)
            client = socket.peer(accepted)
            allowed = may_attach(*client[1:])
            if not (allowed and all_may_attach(*client[1:])):
                accepted.close()  # without a word
                if allowed:
                    self._note_limit()
                continue
            if len(self._connections) >= _PLACES:
                self._drop(min(self._connections, key=lambda each: _grace(each) - (now - each.since)))
            self._connections.append(_Connection(accepted, client))
            self._receive(self._connections[-1])
        return False

    def _receive(self, connection: _Connection) -> None:
        while True:
            try:
                piece = connection.socket.recv(_PIECE)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            if not piece:
                self._drop(connection)
                return
            connection.request += piece
            state, version, begin, end = protocol.frame(connection.request)
            if state == protocol.INCOMPLETE:
                continue
            if state == protocol.WHOLE:
                call = Call(self, connection, version, connection.request[begin : end - 1].split(b"\0"))
                connection.since = monotonic_ns()
                connection.outside = exceeds_main(unknown=True)
                connection.call, connection.steps = call, self._begin(call)
                self._step(connection)
            else:
                connection.reply += _REFUSALS[state]
                self._finish(connection)
            return

    def _begin(self, call: Call) -> Iterator[object]:
        steps: Any = self._serve(call)
        if hasattr(steps, "__next__"):
            yield from steps

    def _step(self, connection: _Connection) -> None:
        """The whole of most commands."""
        call, steps = connection.call, connection.steps
        assert call is not None
        assert steps is not None
        try:
            outside = connection.outside or exceeds_main(unknown=False)
            if outside or not may_attach(connection.uid, connection.gid):  # it could when it connected
                connection.reply += b"" if call.begun else _OUTSIDE if outside else _DENIED
                _abandon(connection)
                if outside:
                    self._note_limit()
            elif next(steps, steps) is not steps:
                return
        except Exception as error:  # a host is never troubled
            if not call.begun:
                connection.reply += f"-1\n{call.operation} failed: {error}\n".encode(errors="backslashreplace")
        connection.call = connection.steps = None
        self._late = False
        self._finish(connection)

    def _finish(self, connection: _Connection) -> None:
        connection.served = True
        self._send(connection, False)

    def _send(self, connection: _Connection, hung_up: bool) -> None:
        if not hung_up:
            connection.transmit()
        if hung_up or connection.gone or not connection.reply:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            _abandon(connection)
            connection.close()

    def wait_for(self, connection: _Connection) -> None:
        """Until the client reads on, or has taken too long."""
        left = connection.since + _READING_TIMEOUT - monotonic_ns()
        polled = poll()
        polled.register(connection.socket.fileno(), POLLOUT)
        if left <= 0 or not polled.poll(left // 1_000_000 + 1):
            connection.gone = True
        connection.transmit()


def _abandon(connection: _Connection) -> None:
    steps, connection.steps = connection.steps, None
    try:
        getattr(steps, "close", int)()
    except Exception:  # a host is never troubled
        pass


def _grace(connection: _Connection) -> int:
    """How long the client may do nothing where others wait for its place."""
    if connection.steps is not None:
        return 1 << 62  # it is our turn
    return _READING_TIMEOUT if connection.served else _ARRIVAL_LEAST


def _is_late(connection: _Connection, now: int) -> bool:
    arriving = not connection.served and connection.steps is None
    return connection.gone or (arriving and now - connection.since >= _ARRIVAL_TIMEOUT)


def take_attach_signal() -> bool:
    """False: the twin takes no signal."""
    return False


def leave_attach_signal() -> None:
    """Nothing was taken."""
