"""Asking a VM, Python's or Java's, to do something: the client's side of the attach protocol.

    with connect(4711) as client, client.execute("jcmd", "VM.version") as reply:
        for part in reply: ...

Each operation is a connection of its own. Nothing waits longer than its time limit, and of what a server sends nothing
is kept but a line or a message of limited length: an answer is handed on as it comes.
"""

from __future__ import annotations

import _socket
import os
import sys
from errno import ELOOP, EXDEV
from stat import S_ISSOCK
from time import monotonic, sleep

from vmscope.attach.target import Target
from vmscope.errors import (
    AccessDenied,
    AttachError,
    AttachTimeout,
    InsecureSocket,
    NoSuchProcess,
    OperationFailed,
    RequestError,
)
from vmscope.mounts import THERE, open_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HANDSHAKE = 10.0  # seconds for a VM to open its socket
SILENCE = 60.0  # seconds without a byte of an answer

PROGRESS = b"progress"  # an option of vmscope's own: lines with a # in front, before the status, say how far it is
BAD_VERSION = 101  # a status: the server speaks no such version of the protocol
_ARGUMENTS = 3
_LONGEST_ARGUMENT = 1024  # bytes: what a HotSpot takes by version 1
_LONGEST_STATUS = 16
_LONGEST_LINE = 4096  # of those that say how far a command is
_PIECE = 1 << 16
_SO_PASSRIGHTS = 83
_LONGEST_MESSAGE = 1 << 16

_FIRST_NAP, _LONGEST_NAP = 0.0005, 0.02
_INCOMPLETE = "its answer, if any, is not complete"
_MAY_ATTACH = "where it has privileges that its user and group do not have, root alone may ask it"


class Reply:
    """An answer: its `status`, 0 for good, and its body, which is read as it comes. Close it, or use `with`."""

    __slots__ = ("_client", "_rest", "_socket", "status")

    def __init__(self, client: Client, socket: _socket.socket, progress: Callable[[bytes], object] | None) -> None:
        self._client = client
        self._socket = socket
        self._rest = self._read_progress(progress) if progress is not None else b""
        self.status = self._read_status()

    def _read_progress(self, progress: Callable[[bytes], object]) -> bytes:
        """Hands on the lines with a # in front; what was read after them."""
        text = self._receive()
        while text.startswith(b"#"):
            line, newline, rest = self._read_line(text, _LONGEST_LINE)
            if not newline:
                raise self._nonsense(line)
            progress(line[1:])
            text = rest or self._receive()
        return text

    def _read_status(self) -> int:
        line, newline, self._rest = self._read_line(self._rest or self._receive(_MAY_ATTACH), _LONGEST_STATUS)
        digits = line[1:] if line.startswith(b"-") else line
        if digits.isdigit() and len(line) <= _LONGEST_STATUS:
            return int(line)
        if not line and not newline:
            raise self._client.ended("closed the connection without an answer", _MAY_ATTACH)
        raise self._nonsense(line)

    def _read_line(self, text: bytes, longest: int) -> tuple[bytes, bytes, bytes]:
        """Of what begins with `text` the first line, its newline, which the end may lack, and what comes behind it. It
        comes whole within the time limit, however small the pieces are; of one that is too long there is a part."""
        deadline = None if self._client.silence is None else monotonic() + self._client.silence
        part = text
        while part and b"\n" not in text and len(text) <= longest:
            if deadline is not None and monotonic() > deadline:
                raise self._client.slow()
            part = self._receive()
            text += part
        return text.partition(b"\n")

    def _nonsense(self, text: bytes) -> AttachError:
        pid = self._client.pid
        return AttachError(
            f"process {pid} does not answer by the attach protocol: {text[:40]!r}",
            pid=pid,
            hint="something else has its socket",
        )

    def _receive(self, hint: str = _INCOMPLETE) -> bytes:
        try:
            return self._socket.recv(_PIECE)
        except TimeoutError:
            raise self._client.silent() from None
        except OSError as error:
            raise self._client.ended(f"broke the connection: {error.strerror}", hint) from None

    def __iter__(self) -> Iterator[bytes]:
        """The body, piece by piece. Raises AttachTimeout after a silence, AttachError when the process goes away."""
        part, self._rest = self._rest, b""
        while True:
            if part:
                yield part
            part = self._receive()
            if not part:
                break
        if not self._client.target.alive:
            raise self._client.ended("ended")

    def read(self, limit: int = _LONGEST_MESSAGE) -> bytes:
        """The body, at most `limit` bytes of it, which come within the time limit, however small the pieces are."""
        silence = self._client.silence
        deadline = None if silence is None else monotonic() + silence
        text = bytearray()
        for part in self:
            text += part[: limit - len(text)]
            if len(text) == limit:
                break
            if deadline is not None and monotonic() > deadline:
                raise self._client.slow()
        return bytes(text)

    def failure(self) -> OperationFailed:
        """What a status that is not 0 means, in the process's own words."""
        pid = self._client.pid
        text = " ".join(self.read().decode("utf-8", "backslashreplace").split())
        if self.status == BAD_VERSION:
            text = f"process {pid} speaks another version of the attach protocol"
        return OperationFailed(
            text or f"process {pid} could not do it, and did not say why", status=self.status, pid=pid
        )

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Reply:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client:
    """A process that answers. `silence`: seconds without a byte after which its answer is given up, and in which a
    status or a message has to be whole; None for never."""

    __slots__ = ("_ready", "silence", "target")

    def __init__(self, target: Target, ready: _socket.socket, silence: float | None) -> None:
        self.target = target
        self._ready: _socket.socket | None = ready  # the connection that showed that it answers
        self.silence = silence

    @property
    def pid(self) -> int:
        return self.target.pid

    def execute(self, operation: str, *arguments: str, progress: Callable[[bytes], object] | None = None) -> Reply:
        """Asks for an operation. `progress` is called, before this returns, with each line that says how far it is,
        where the process tells that.

        Raises AttachTimeout, AttachError when the process ends or answers nonsense, InsecureSocket when its socket
        has been replaced, and RequestError for what the protocol has no room for.
        """
        fields = [field.encode("utf-8", "surrogateescape") for field in (operation, *arguments)]
        if any(b"\0" in field for field in fields):
            raise RequestError(f"process {self.pid} can be sent no text with a NUL in it", pid=self.pid)
        if progress is not None and PROGRESS in self._known():
            fields[0] += b" " + PROGRESS
            return self._ask_second(fields, progress)
        if len(arguments) <= _ARGUMENTS and max(map(len, fields)) <= _LONGEST_ARGUMENT:
            return self._ask(b"1\0" + b"\0".join([*fields, *[b""] * (_ARGUMENTS - len(arguments))]) + b"\0")
        if self._known()[0] != b"2":
            raise RequestError(
                f"process {self.pid} takes {_ARGUMENTS} arguments of {_LONGEST_ARGUMENT} bytes at most", pid=self.pid
            )
        return self._ask_second(fields)

    def _ask_second(self, fields: list[bytes], progress: Callable[[bytes], object] | None = None) -> Reply:
        """By version 2 of the protocol, JDK 25's, which takes any number of arguments of any length."""
        body = b"\0".join(fields) + b"\0"
        return self._ask(b"2\0%d\0%b" % (len(body), body), progress)

    def _known(self) -> list[bytes]:
        """The version of the protocol that the process speaks, and with which options."""
        with self._ask(b"1\0getversion\0options\0\0\0") as reply:
            words = reply.read().replace(b",", b" ").split()
            return words if words and reply.status == 0 else [b"1"]

    def _ask(self, data: bytes, progress: Callable[[bytes], object] | None = None) -> Reply:
        socket, self._ready = self._ready, None
        if socket is None:
            socket = open_socket(self.target)
        if socket is None:
            raise self.ended("no longer answers")
        try:
            socket.settimeout(self.silence)
            try:
                socket.sendall(data)
            except TimeoutError:
                raise self.silent() from None
            except OSError:
                pass  # it may have answered before it read all
            return Reply(self, socket, progress)
        except BaseException:
            socket.close()
            raise

    def silent(self) -> AttachError:
        """The process has said nothing for the time limit."""
        pid = self.pid
        if not self.target.alive:
            return self.ended("")
        if self.target.stopped:
            return AttachTimeout(f"process {pid} is stopped, and cannot answer", pid=pid, hint=f"kill -CONT {pid}")
        return AttachTimeout(
            f"process {pid} has been asked and has said nothing for {self.silence:g} s; it may still be at it",
            pid=pid,
            hint="--timeout=SECONDS waits longer; vmscope stat shows what it is doing",
        )

    def slow(self) -> AttachTimeout:
        """What should have come at once has come byte by byte."""
        return AttachTimeout(
            f"process {self.pid} has not answered within {self.silence:g} s, though it has begun to",
            pid=self.pid,
            hint="--timeout=SECONDS waits longer",
        )

    def ended(self, what: str, hint: str = _INCOMPLETE) -> AttachError:
        """The process did `what` before its answer was whole."""
        if not self.target.alive:
            what = "ended while it was asked"
        return AttachError(f"process {self.pid} {what}", pid=self.pid, hint=hint)

    def close(self) -> None:
        if self._ready is not None:
            self._ready.close()
            self._ready = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(pid: int, *, timeout: float = HANDSHAKE, silence: float | None = SILENCE) -> Client:
    """Finds the socket of a VM; has it opened first where the VM opens it only when asked.

    Raises NoSuchProcess, AccessDenied, NotAttachable (no signal was sent), AttachTimeout, InsecureSocket.
    """
    target = Target(pid)
    socket = open_socket(target)
    if socket is None:
        target.check()
        socket = _wake(target, timeout)
    return Client(target, socket, silence)


def open_socket(target: Target) -> _socket.socket | None:
    """A connection to the target's socket; None where no process listens.

    Raises InsecureSocket, AccessDenied, AttachTimeout, NoSuchProcess.
    """
    path = target.socket_path
    folder = target.open_tmp()
    try:
        fd = open_beneath(folder, os.path.basename(path), THERE)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == EXDEV:
            raise InsecureSocket(
                f"process {target.pid} is not asked: {path} is taken: a file system is mounted there",
                pid=target.pid,
                path=path,
                hint=f"umount -l {path}, as root",
            ) from None
        if error.errno == ELOOP:
            raise _insecure(target.pid, path, "is not a socket") from None
        raise _refused(target, path) from None
    finally:
        os.close(folder)
    try:  # what is connected to is what is looked at, whatever its name stands for by then
        found = os.fstat(fd)
        if not S_ISSOCK(found.st_mode):
            raise _insecure(target.pid, path, "is not a socket")
        socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        try:
            try:  # no server can hand us descriptors, of which the last close may wait longer than we do
                socket.setsockopt(_socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)
            except OSError:  # before Linux 6.16
                pass
            if _connected(socket, target, path, fd):
                _check_server(target, path, socket, found)
                return socket
        except BaseException:
            socket.close()
            raise
        socket.close()
        return None
    finally:
        os.close(fd)


def _connected(socket: _socket.socket, target: Target, path: str, fd: int) -> bool:
    """Connects, and waits where too many clients do; False where no process listens, as after it was killed."""
    socket.settimeout(HANDSHAKE)
    deadline = monotonic() + HANDSHAKE
    while True:
        try:
            socket.connect(f"/proc/self/fd/{fd}")
            return True
        except ConnectionRefusedError:
            return False
        except PermissionError:
            raise _refused(target, path) from None
        except BlockingIOError:
            if monotonic() > deadline:
                raise AttachTimeout(
                    f"process {target.pid} takes no more clients: those that wait fill its queue",
                    pid=target.pid,
                    path=path,
                    hint="see what it is doing: vmscope stat",
                ) from None
            sleep(_LONGEST_NAP)


def _check_server(target: Target, path: str, socket: _socket.socket, found: os.stat_result) -> None:
    """Whose the socket is, who may use it, and who listens: all must be the process that was asked for."""
    if found.st_uid not in (0, target.uid):
        raise _insecure(target.pid, path, f"belongs to user {found.st_uid}, the process to user {target.uid}")
    if found.st_mode & 0o077:
        raise _insecure(target.pid, path, f"is open to others (mode {found.st_mode & 0o777:03o})")
    credentials = socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    pid = int.from_bytes(credentials[:4], sys.byteorder)
    if pid != target.pid:
        raise _insecure(target.pid, path, f"is answered by process {pid}" if pid else "is answered by another process")


def _wake(target: Target, timeout: float) -> _socket.socket:
    """The lazy handshake: leave a note, send SIGQUIT, wait for the socket; once more half-way."""
    from vmscope.attach.interruption import Interruption
    from vmscope.attach.note import Note

    begin = monotonic()
    with Interruption() as interruption, Note(target):
        target.wake()
        again, nap = True, _FIRST_NAP
        while (passed := monotonic() - begin) < timeout:
            interruption.nap(min(nap, timeout - passed), target.pid)
            nap = min(nap * 1.5, _LONGEST_NAP)
            socket = open_socket(target)
            if socket is not None:
                return socket
            if not target.alive:
                raise NoSuchProcess(f"process {target.pid} ended while it was asked", pid=target.pid)
            if again and passed > timeout / 2:
                target.wake()
                again = False
    if target.stopped:
        raise AttachTimeout(
            f"process {target.pid} is stopped, and cannot answer", pid=target.pid, hint=f"kill -CONT {target.pid}"
        )
    raise AttachTimeout(
        f"process {target.pid} did not open {target.socket_path} within {timeout:g} s",
        pid=target.pid,
        path=target.socket_path,
        hint="it may be busy or blocked: try again",
    )


def _insecure(pid: int, path: str, what: str) -> InsecureSocket:
    return InsecureSocket(
        f"process {pid} is not asked: {path} {what}", pid=pid, path=path, hint="remove the file if no VM uses it"
    )


def _refused(target: Target, path: str) -> AccessDenied:
    whose = path if target.uid == os.geteuid() else f"process {target.pid}"
    return AccessDenied(
        f"Permission denied: {whose} belongs to another user",
        pid=target.pid,
        path=path,
        hint="run this as its user or as root",
    )
