"""The listener on both forms of the native part: framing, bounds, slow, silent, hostile and many clients."""

from __future__ import annotations

import gc
import os
import random
import re
import socket
import stat
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.implementations import both
from tests.support import PATIENCE
from tests.wait import wait_for
from vmscope.native.attach import protocol

SECOND = 1_000_000_000  # ns
PLACES = 64  # clients that are served at once
MAX_1, MAX_2 = 16 << 10, 256 << 10
REPLY = b"0\nhello\n"

INCOMPLETE, WHOLE, BAD_VERSION, MALFORMED = range(4)


def version_1(operation: str, *arguments: str) -> bytes:
    words = ["1", operation, *arguments, *[""] * (3 - len(arguments))]
    return b"".join(word.encode() + b"\0" for word in words)


def version_2(operation: str, *arguments: str) -> bytes:
    body = b"".join(word.encode() + b"\0" for word in (operation, *arguments))
    return b"2\0%d\0%s" % (len(body), body)


PROPER = version_1("hello")


class Serving:
    """An open listener, which answers `hello` and whatever else `serve` does; `calls` is what it was asked."""

    def __init__(self, form: Any, folder: Path, serve: Callable[[Any], object] | None = None) -> None:
        self.path = folder / "socket"
        self.calls: list[tuple[Any, ...]] = []
        self._serve = serve
        self.listener = form.Listener(self._called)
        self.listener.open(os.fsencode(self.path), os.fsencode(folder / "socket.tmp"))
        self.listener.settle()

    def _called(self, call: Any) -> None:
        self.calls.append((call.version, call.operation, call.options, call.arguments))
        if call.operation == "hello" or self._serve is None:
            call.write(REPLY)
        else:
            self._serve(call)

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE)
        client.connect(str(self.path))
        return client

    def ask(self, request: bytes = PROPER) -> bytes:
        with closing(self.connect()) as client:
            client.sendall(request)
            return read(client)

    def settle(self, connections: int = 0) -> None:
        """Until so many clients are connected."""
        wait_for(
            lambda: self.listener.connections == connections,
            lambda: f"{self.listener.connections} clients, not {connections}",
        )


def read(client: socket.socket) -> bytes:
    """All up to the end; a reset counts as one."""
    answer = bytearray()
    try:
        while part := client.recv(1 << 16):
            answer += part
    except ConnectionResetError:
        pass
    return bytes(answer)


@pytest.fixture(params=both())
def form(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """pytest's own may be too long for a socket: within another run of it, it is."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def start(form: Any, tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    with ExitStack() as stack:

        def start(serve: Callable[[Any], object] | None = None) -> Serving:
            serving = Serving(form, tmp_path, serve)
            stack.callback(serving.listener.close, 10 * SECOND)
            return serving

        yield start


# -- framing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", (INCOMPLETE, 0, 0, 0)),
        (b"1", (INCOMPLETE, 0, 0, 0)),
        (b"12345678", (INCOMPLETE, 0, 0, 0)),
        (b"123456789", (BAD_VERSION, 0, 0, 0)),
        (b"\0", (BAD_VERSION, 0, 0, 0)),
        (b"3\0x\0\0\0\0", (BAD_VERSION, 0, 0, 0)),
        (b"01\0x\0\0\0\0", (BAD_VERSION, 0, 0, 0)),
        (b"1\0x\0\0\0", (INCOMPLETE, 0, 0, 0)),
        (b"1\0x\0\0\0\0", (WHOLE, 1, 2, 7)),
        (b"1\0x\0a\0b\0c\0and more", (WHOLE, 1, 2, 10)),
        (b"1\0" + b"x" * (MAX_1 - 2), (MALFORMED, 0, 0, 0)),
        (b"1\0" + b"x" * (MAX_1 - 3), (INCOMPLETE, 0, 0, 0)),
        (b"1\0" + b"x" * (MAX_1 - 6) + b"\0\0\0\0", (WHOLE, 1, 2, MAX_1)),
        (b"1\0" + b"x" * (MAX_1 - 5) + b"\0\0\0\0", (MALFORMED, 0, 0, 0)),
        (b"2\0", (INCOMPLETE, 0, 0, 0)),
        (b"2\0" + b"1" * 7, (INCOMPLETE, 0, 0, 0)),
        (b"2\0" + b"0" * 8, (INCOMPLETE, 0, 0, 0)),
        (b"2\0" + b"0" * 9, (MALFORMED, 0, 0, 0)),
        (b"2\x0000000002\0x\0", (WHOLE, 2, 11, 13)),
        (b"2\0\0x\0", (MALFORMED, 0, 0, 0)),
        (b"2\0-1\0x\0", (MALFORMED, 0, 0, 0)),
        (b"2\0000\0", (MALFORMED, 0, 0, 0)),
        (b"2\0002\0x", (INCOMPLETE, 0, 0, 0)),
        (b"2\0002\0x\0", (WHOLE, 2, 4, 6)),
        (b"2\0002\0xy", (MALFORMED, 0, 0, 0)),
        (b"2\0%d\0" % MAX_2, (INCOMPLETE, 0, 0, 0)),
        (b"2\0%d\0" % (MAX_2 + 1), (MALFORMED, 0, 0, 0)),
    ],
    ids=range(27),
)
def test_frames(form: Any, data: bytes, found: tuple[int, ...]) -> None:
    assert form.frame(data) == found


PIECES = st.sampled_from([b"1", b"2", b"\0", b"7", b"0", b"9999", b"262144", b"jcmd", b" ", b"-", b"x" * 300, b"\xff"])


@given(st.lists(PIECES, max_size=12).map(b"".join) | st.binary(max_size=64))
@example(version_1("jcmd", "VM.version"))
@example(version_2("jcmd streaming=1", "VM.version"))
def test_the_forms_agree_about_every_prefix(data: bytes) -> None:
    native = pytest.importorskip("vmscope.native._native")
    states = []
    for length in range(len(data) + 1):
        assert native.frame(data[:length]) == protocol.frame(data[:length])
        states.append(protocol.frame(data[:length])[0])
    settled = [state for state in states if state != INCOMPLETE]
    assert states == [INCOMPLETE] * (len(states) - len(settled)) + settled, "no byte more makes it incomplete again"


def test_every_beginning_of_a_request_is_too_short(form: Any) -> None:
    """Wherever a stream of bytes is cut in two."""
    for request in (version_1("jcmd", "VM.version"), version_2("jcmd", "VM.version"), b"2\x0000000003\0ab\0"):
        assert [form.frame(request[:length])[0] for length in range(len(request))] == [INCOMPLETE] * len(request)
        assert form.frame(request)[0] == WHOLE


# -- requests and replies -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "call"),
    [
        (version_1("jcmd", "VM.version"), (1, "jcmd", "", ("VM.version",))),
        (version_1("inspectheap", "-live", "", "2"), (1, "inspectheap", "", ("-live", "", "2"))),
        (version_1("load", "a", "b", "c"), (1, "load", "", ("a", "b", "c"))),
        (version_1(""), (1, "", "", ())),
        (version_2("properties", "options", ""), (2, "properties", "", ("options",))),
        (version_2("jcmd streaming=1", "Thread.print -l"), (2, "jcmd", "streaming=1", ("Thread.print -l",))),
        (version_2("x", *"abcdefg"), (2, "x", "", tuple("abcdefg"))),
        (version_2("x", "ä" * 100_000), (2, "x", "", ("ä" * 100_000,))),
        (b"1\0x\0/tmp/\xff\0\0\0", (1, "x", "", ("/tmp/\udcff",))),
    ],
    ids=range(9),
)
def test_requests(start: Callable[..., Serving], request_: bytes, call: tuple[object, ...]) -> None:
    serving = start()
    assert serving.ask(request_) == REPLY
    assert serving.calls == [call]


def test_a_request_in_many_pieces(start: Callable[..., Serving]) -> None:
    serving = start()
    with closing(serving.connect()) as client:
        for byte in version_2("jcmd", "VM.version"):
            client.sendall(bytes((byte,)))
        client.shutdown(socket.SHUT_WR)
        assert read(client) == REPLY
    assert serving.calls == [(2, "jcmd", "", ("VM.version",))]


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"", b""),
        (b"1\0jcmd\0VM.ver", b""),
        (b"9\0jcmd\0\0\0\0", b"101\nprotocol versions 1 and 2 are known here\n"),
        (b"GET / HTTP/1.1\r\n\r\n", b"101\nprotocol versions 1 and 2 are known here\n"),
        (b"2\0x\0jcmd\0", b"-1\nmalformed request\n"),
        (b"2\000999999\0jcmd\0", b"-1\nmalformed request\n"),
        (b"1\0" + b"x" * MAX_1, b"-1\nmalformed request\n"),
    ],
    ids=range(7),
)
def test_what_is_no_request(start: Callable[..., Serving], data: bytes, answer: bytes) -> None:
    serving = start()
    with closing(serving.connect()) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        assert read(client) == answer
    serving.settle()
    assert serving.calls == []
    assert serving.ask() == REPLY


def test_who_asks(start: Callable[..., Serving]) -> None:
    serving = start(lambda call: call.write(f"{call.pid} {call.uid}".encode()))
    assert serving.ask(version_1("who")) == f"{os.getpid()} {os.geteuid()}".encode()


def test_a_reply_in_parts(start: Callable[..., Serving]) -> None:
    """What is flushed arrives at once, while the command goes on."""
    seen = threading.Event()

    def serve(call: Any) -> None:
        call.write(b"0\n")
        call.write(memoryview(b"first\n"))
        call.flush()
        assert seen.wait(PATIENCE)
        call.write(b"second\n")

    serving = start(serve)
    with closing(serving.connect()) as client:
        client.sendall(version_1("parts"))
        first = b""
        while not first.endswith(b"first\n"):
            first += client.recv(100)
        seen.set()
        assert first + read(client) == b"0\nfirst\nsecond\n"


def test_a_long_reply(start: Callable[..., Serving]) -> None:
    """More than is ever queued."""
    part = bytes(range(256)) * 4096
    serving = start(lambda call: [call.write(part) for _ in range(50)])
    assert serving.ask(version_1("long")) == part * 50
    serving.settle()


def test_a_call_that_raises(start: Callable[..., Serving]) -> None:
    """Its client is told, unless it has been told something already."""

    def serve(call: Any) -> None:
        if call.operation == "begun":
            call.write(b"0\nso far")
        raise ValueError("no such \ud800")

    serving = start(serve)
    assert serving.ask(version_1("begun")) == b"0\nso far"
    assert serving.ask(version_1("bad")) == b"-1\nbad failed: no such \\ud800\n"
    assert serving.ask() == REPLY


def test_a_call_is_over_when_it_is_over(start: Callable[..., Serving]) -> None:
    kept: list[Any] = []
    serving = start(kept.append)
    assert serving.ask(version_1("keep")) == b""
    for use in (lambda: kept[0].write(b"x"), kept[0].flush):
        with pytest.raises(BrokenPipeError, match=re.escape(f"(pid {os.getpid()}) has gone")):
            use()
    assert serving.ask() == REPLY


def test_arguments_of_our_own(form: Any, tmp_path: Path, start: Callable[..., Serving]) -> None:
    serving = start()
    with pytest.raises(RuntimeError, match="is open"):
        serving.listener.open(b"a", b"b")
    with pytest.raises(TypeError):
        form.frame("1")
    other = form.Listener(print)
    with pytest.raises(ValueError, match="too long"):
        other.open(b"/" + b"x" * 200, b"/tmp/x")
    with pytest.raises(TypeError):
        form.Call()


# -- clients that are slow, silent or gone --------------------------------------------------------


def test_silent_clients_hold_up_nobody(start: Callable[..., Serving]) -> None:
    """Twice as many as there are places for, before a proper one."""
    serving = start()
    with ExitStack() as stack:
        silent = [stack.enter_context(closing(serving.connect())) for _ in range(2 * PLACES)]
        silent[3].sendall(b"1\0jc")
        begin = time.monotonic()
        assert serving.ask() == REPLY
        assert time.monotonic() - begin < PATIENCE, "some made room after a second each at the most"
        assert serving.listener.connections <= PLACES
    serving.settle()


def test_a_silent_client_has_so_much_time(start: Callable[..., Serving]) -> None:
    serving = start()
    with closing(serving.connect()) as client:
        client.sendall(b"1\0")
        begin = time.monotonic()
        assert read(client) == b""
        assert 5 < time.monotonic() - begin < 2 * PATIENCE
    serving.settle()


def test_a_client_that_has_gone(start: Callable[..., Serving]) -> None:
    """The command is told, at its next write."""
    errors: list[Exception] = []

    def serve(call: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        try:
            while time.monotonic() < deadline:
                call.write(b"x" * 1000)
                call.flush()
                time.sleep(0.01)  # a command that takes its time
        except BrokenPipeError as error:
            errors.append(error)

    serving = start(serve)
    with closing(serving.connect()) as client:
        client.sendall(version_1("endless"))
        assert client.recv(10)
    assert serving.ask() == REPLY
    assert len(errors) == 1


def test_a_client_that_does_not_read(start: Callable[..., Serving]) -> None:
    """What it leaves waits for it, bounded; the others are served meanwhile."""
    written: list[int] = []

    def serve(call: Any) -> None:
        for i in range(100):
            call.write(bytes(100_000))
            written.append(i)

    serving = start(serve)
    with closing(serving.connect()) as client:
        client.sendall(version_1("much"))
        for _ in range(20):
            assert serving.ask() == REPLY
        assert len(written) == 100, "10 MB are queued"
        assert len(read(client)) == 10_000_000
    serving.settle()


def test_a_client_that_leaves_too_much_unread(start: Callable[..., Serving]) -> None:
    errors: list[Exception] = []

    def serve(call: Any) -> None:
        try:
            for _ in range(40):
                call.write(bytes(1 << 20))
        except BrokenPipeError as error:
            errors.append(error)

    serving = start(serve)
    with closing(serving.connect()) as client:
        client.sendall(version_1("too much"))
        begin = time.monotonic()
        assert serving.ask() == REPLY, "after the other one has had its 10 seconds"
        assert 5 < time.monotonic() - begin < 2 * PATIENCE
        assert len(errors) == 1
        assert len(read(client)) < 40 << 20
    serving.settle()


def test_a_client_that_resets(start: Callable[..., Serving]) -> None:
    serving = start()
    for request in (b"", b"1\0", PROPER, b"9\0"):
        for _ in range(50):
            client = serving.connect()
            client.sendall(request)
            client.close()
    assert serving.ask() == REPLY
    serving.settle()


# -- many -----------------------------------------------------------------------------------------


def test_200_clients_at_once(start: Callable[..., Serving]) -> None:
    serving = start()
    found: list[bytes] = []
    barrier = threading.Barrier(200)

    def ask() -> None:
        barrier.wait(PATIENCE)
        found.append(serving.ask())

    threads = [threading.Thread(target=ask) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == [REPLY] * 200
    serving.settle()


def resident() -> int:
    """kB that are this process's alone."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_"))


def malformed(turn: random.Random) -> bytes:
    kind = turn.randrange(6)
    if kind == 0:
        return turn.randbytes(turn.randrange(64))
    if kind == 1:
        return PROPER[: turn.randrange(len(PROPER))]
    if kind == 2:
        request = version_2("jcmd", "x" * turn.randrange(400))
        return request[: turn.randrange(len(request))]
    if kind == 3:
        return b"2\0%d\0" % turn.randrange(10**8) + turn.randbytes(20)
    if kind == 4:
        return b"1\0" + b"x" * turn.randrange(2 * MAX_1)
    data = bytearray(version_2("jcmd", "VM.version"))
    data[turn.randrange(len(data))] = turn.randrange(256)
    return bytes(data)


def test_10000_malformed_requests(start: Callable[..., Serving]) -> None:
    """Nothing grows, and the next proper client is served."""
    serving = start()
    turn = random.Random(6)

    def send(count: int) -> None:
        for _ in range(count):
            client = serving.connect()
            try:
                client.sendall(malformed(turn))
                if turn.random() < 0.5:
                    client.shutdown(socket.SHUT_WR)
                    read(client)
            except (BrokenPipeError, ConnectionResetError):
                pass
            client.close()
            serving.calls.clear()

    send(2000)
    assert serving.ask() == REPLY
    gc.collect()
    before, files = resident(), len(os.listdir("/proc/self/fd"))
    send(8000)
    assert serving.ask() == REPLY
    serving.settle()
    gc.collect()
    if "ASAN_OPTIONS" not in os.environ:  # a sanitizer keeps what was freed
        assert resident() - before < 1000, "kB"
    assert len(os.listdir("/proc/self/fd")) == files


# -- the socket's name ----------------------------------------------------------------------------


def test_the_socket(form: Any, tmp_path: Path) -> None:
    """Closed to others whatever the umask is, nothing else left, and gone at the end."""
    umask = os.umask(0)
    try:
        serving = Serving(form, tmp_path)
    finally:
        os.umask(umask)
    found = serving.path.lstat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_uid == os.geteuid()
    assert [path.name for path in tmp_path.iterdir()] == ["socket"]
    assert serving.listener.close(SECOND)
    assert list(tmp_path.iterdir()) == []
    assert serving.listener.close(SECOND), "a second time does nothing"


def test_what_stands_in_the_way(form: Any, tmp_path: Path) -> None:
    """A dead socket, a file and a link are replaced; the target of the link stays. A folder is not."""
    for i, name in enumerate(("socket", "socket.tmp")):
        with closing(socket.socket(socket.AF_UNIX)) as dead:
            dead.bind(str(tmp_path / name))
        serving = Serving(form, tmp_path)
        assert serving.ask() == REPLY, i
        assert serving.listener.close(SECOND)
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "socket").symlink_to(target)
    serving = Serving(form, tmp_path)
    assert serving.ask() == REPLY
    assert serving.listener.close(SECOND)
    assert target.read_text() == "mine"
    (tmp_path / "socket").mkdir()
    with pytest.raises(OSError, match=r"socket") as raised:
        Serving(form, tmp_path)
    assert raised.value.filename is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["socket", "target"]


def test_a_socket_that_somebody_answers_on(form: Any, tmp_path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as other:
        other.bind(str(tmp_path / "socket"))
        other.listen()
        with pytest.raises(OSError, match="Address already in use"):
            Serving(form, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["socket"]


def test_a_name_that_another_has_taken_stays(form: Any, tmp_path: Path) -> None:
    serving = Serving(form, tmp_path)
    serving.path.unlink()
    serving.path.write_text("another's")
    assert serving.listener.close(SECOND)
    assert serving.path.read_text() == "another's"


def test_it_opens_again(form: Any, tmp_path: Path) -> None:
    for _ in range(3):
        serving = Serving(form, tmp_path)
        assert serving.ask() == REPLY
        assert serving.listener.close(SECOND)
    serving.listener.open(os.fsencode(serving.path), os.fsencode(tmp_path / "socket.tmp"))
    serving.listener.settle()
    assert serving.ask() == REPLY
    assert serving.listener.close(SECOND)


def test_closing_while_the_socket_is_made_anew(form: Any, tmp_path: Path) -> None:
    """It has its name before the listener knows of it."""
    for _ in range(200):
        serving = Serving(form, tmp_path)
        serving.path.unlink()
        serving.listener.check()
        assert serving.listener.close(10 * SECOND)
        assert list(tmp_path.iterdir()) == []


def test_closing_while_a_command_runs(form: Any, tmp_path: Path) -> None:
    """It is waited for as long as one says; its client hears no more."""
    begun, over = threading.Event(), threading.Event()

    def serve(call: Any) -> None:
        begun.set()
        over.wait(PATIENCE)

    serving = Serving(form, tmp_path, serve)
    with closing(serving.connect()) as client:
        client.sendall(version_1("long"))
        assert begun.wait(PATIENCE)
        assert not serving.listener.close(SECOND // 20)
        assert not serving.path.exists()
        over.set()
        assert read(client) == b""


def test_the_credentials_are_the_kernels() -> None:
    """What SO_PEERCRED gives is what the twin unpacks."""
    one, other = socket.socketpair(socket.AF_UNIX)
    with closing(one), closing(other):
        found = struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    assert found == (os.getpid(), os.geteuid(), os.getegid())
