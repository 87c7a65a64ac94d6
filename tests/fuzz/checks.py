"""What holds of a native part for any bytes: each function gets both, and raises where it does not."""

from __future__ import annotations

import os
from struct import pack, unpack_from
from types import SimpleNamespace
from typing import Any
from zlib import crc32

from vmscope.attach.client import Client, Reply
from vmscope.commands.arguments import Argument, parse, words
from vmscope.errors import AttachError, CommandError, FormatError
from vmscope.native.attach import listener as listener_twin
from vmscope.native.attach import protocol as frames_twin
from vmscope.native.region import walk as walk_twin

NAMES = ("a", "text", "sun.rt.javaCommand", "java.property.java.vm.name", "sun.os.hrt.ticks", "", "sun.gc.cause")


def outcome(function: Any, *arguments: object) -> object:
    """What a function gives, or how it refuses."""
    try:
        return function(*arguments)
    except FormatError as error:
        return type(error), str(error), error.offset, error.entry


def scan(part: Any, data: bytes) -> None:
    """scan, read, find and decode_text: of one mind, and as the twin, which is asked of one region in 16."""
    big = len(data) > 4 and data[4] == 0
    begin = unpack_from(">i" if big else "<i", data, 24)[0] if len(data) >= 28 else 0
    entries = outcome(part.scan, data, begin, big)
    values = outcome(part.read, data, begin, big)
    names = NAMES
    if isinstance(values, dict):
        assert isinstance(entries, tuple)
        assert list(values) == list(dict.fromkeys(entry[1] for entry in entries[0]))
        ascii_names = [name for name in values if name.isascii()]
        names += tuple(ascii_names[:: 1 + len(ascii_names) // 16])
        assert part.find(data, begin, big, names) == {name: values[name] for name in names if name in values}
    found = outcome(part.find, data, begin, big, names)
    text = part.decode_text(data)
    if crc32(data) % 16 == 0:
        assert entries == outcome(walk_twin.scan, data, begin, big)
        assert list_of(values) == list_of(outcome(walk_twin.read, data, begin, big))
        assert found == outcome(walk_twin.find, data, begin, big, names)
        assert text == walk_twin.decode_text(data)


def list_of(values: object) -> object:
    """With the order of a dict."""
    return list(values.items()) if isinstance(values, dict) else values


def frames(part: Any, data: bytes) -> None:
    """A request is what the twin says, however its bytes come in."""
    found = part.frame(data)
    assert found == frames_twin.frame(data)
    outcome, version, begin, end = found
    if outcome != frames_twin.WHOLE:
        assert (version, begin, end) == (0, 0, 0)
        return
    assert version in (1, 2)
    assert 0 < begin < end <= len(data)
    assert data[end - 1] == 0
    assert part.frame(data[:end]) == found
    for cut in {0, 1, begin - 1, begin, (begin + end) // 2, end - 1}:
        assert part.frame(data[:cut])[0] == frames_twin.INCOMPLETE


def strings(part: Any, data: bytes) -> None:
    """A request's strings are what the twin says: a whole request's, else these bytes by either version."""
    for request in (data, b"1\0%b\0\0\0\0" % data, b"2\0%d\0%b\0" % (len(data) + 1, data)):
        state, version, begin, end = frames_twin.frame(request)
        if state == frames_twin.WHOLE:
            found = part.call(request)
            twin = listener_twin.Call(None, _CLIENT, version, request[begin : end - 1].split(b"\0"))  # type: ignore[arg-type]
            for name in ("version", "operation", "options", "arguments"):
                assert getattr(found, name) == getattr(twin, name)


def operations(part: Any, data: bytes) -> None:
    """The I/O thread sees the operation that the command thread would see, and serves nobody else than that would."""
    request = data.removesuffix(b"\0") + b"\0"
    assert part.take_up(1, request) == (None, False, 0)
    call = listener_twin.Call(None, _CLIENT, 2, request[:-1].split(b"\0"))  # type: ignore[arg-type]
    replies = {"getversion": "0\n2 progress", "childstarted": "0\n"}
    line = call.arguments[0] if call.arguments else ""
    command, *options = [word for argument in call.arguments for word in argument.split(" ") if word] or [""]
    printed = call.operation == "jcmd" and line.strip(" ").split(" ")[0] == command == "Thread.print"
    plain = call.operation == "threaddump" or (printed and set(options) <= {"-l", "-e"})
    looks = printed or call.operation == "threaddump"
    assert part.take_up(0, request) == (replies.get(call.operation), looks, int(plain))


_CLIENT = SimpleNamespace(pid=0, uid=0)


class _Pieces:
    """A connection to a hostile VM: its bytes in pieces, then the end, a reset, or silence."""

    def __init__(self, data: bytes, size: int, end: int) -> None:
        self._pieces = [data[at : at + size] for at in range(0, len(data), size)]
        self._end = end

    def recv(self, most: int) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        if self._end == 1:
            raise ConnectionResetError(104, "Connection reset by peer")
        if self._end == 2:
            raise TimeoutError
        return b""


_SILENCES = (None, 60.0, -1.0)  # s; the last one: what comes in pieces takes too long


def replies(_: object, data: bytes) -> None:
    """An answer is a status and a body, every byte of which the client gets, or an error of ours."""
    if len(data) < 2:
        return
    how, size, data = data[0], 1 + data[1], data[2:]
    target: Any = SimpleNamespace(pid=1, alive=bool(how & 1), stopped=bool(how & 2))
    client = Client(target, None, _SILENCES[how // 4 % 3])  # type: ignore[arg-type]
    lines: list[bytes] = []
    limit, failure = 1 + how // 8, None
    try:
        pieces: Any = _Pieces(data, size, how // 16 % (2 if client.silence is None else 3))
        reply = Reply(client, pieces, lines.append if how & 128 else None)
        status, body = reply.status, b""
        if how & 64:
            text = str(reply.failure())
            assert text
            assert "\n" not in text
            return
        body = reply.read(limit) if how & 8 else b"".join(reply)
    except AttachError as error:
        failure = error
    if failure is not None:
        assert str(failure)
        assert failure.pid == 1
        return
    head, _newline, rest = data.removeprefix(b"".join(b"#%b\n" % line for line in lines)).partition(b"\n")
    assert int(head) == status
    assert body == rest[:limit] if how & 8 else body == rest


_TYPES = {
    "STRING": str,
    "FILE": str,
    "BOOLEAN": bool,
    "INT": int,
    "JULONG": int,
    "MEMORY SIZE": int,
    "NANOTIME": int,
    "STRING SET": tuple,
}
_TABLE = (
    *(Argument(f"-{kind[0].lower()}{number}", "", kind) for number, kind in enumerate(_TYPES)),
    Argument("first", "", "FILE", mandatory=True),
    Argument("second", "", "INT", default="7"),
    Argument("option", "", "NANOTIME", option=True, default="1s"),
)


def arguments(_: object, data: bytes) -> None:
    """The arguments of a command are values of their types, or an error that the client is shown."""
    text = data.decode("utf-8", "surrogateescape")
    refusal, values = "", {}
    try:
        found = list(words(text))
        assert sum(len(key) + len(value or "") for key, value in found) <= len(text)
        assert "" not in [key for key, _ in found]
        values = parse(text, _TABLE)
    except CommandError as error:
        refusal = str(error)
    if refusal:
        return
    assert set(values) == {argument.keyword for argument in _TABLE}
    for argument in _TABLE:
        value = values[argument.keyword]
        assert isinstance(value, (_TYPES[argument.type], type(None)))
        assert argument.type != "INT" or value is None or -(1 << 63) <= int(value) < 1 << 63  # type: ignore[arg-type]
        assert argument.type not in ("JULONG", "MEMORY SIZE", "NANOTIME") or value is None or int(value) >= 0  # type: ignore[arg-type]


_file = os.memfd_create("fuzzed") if hasattr(os, "memfd_create") else -1
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_CONTENT = bytes(range(1, 256)) * (4 * _PAGE // 255 + 1)


def mapping(part: Any, data: bytes) -> None:
    """The first bytes are the mapping's size; each six that follow are one thing that is done to it or its file."""
    if len(data) < 2:
        return
    size = 1 + int.from_bytes(data[:2], "little") % (2 * _PAGE)
    os.ftruncate(_file, 0)
    os.pwrite(_file, _CONTENT[:size], 0)
    mapped = part.Mapping(_file, size)
    there = size  # bytes of the file, which is zero up to the end of its last page
    for at in range(2, len(data) - 5, 6):
        action, number, offset, length = unpack_from("<BBHH", data, at)
        if action % 8 == 0:
            there = offset % (3 * _PAGE)
            os.ftruncate(_file, 0)
            os.pwrite(_file, _CONTENT[:there], 0)
        elif action % 8 == 1:
            mapped.close()
            assert mapped.closed
        elif action % 8 < 5:
            _read(mapped, offset - 8, length - 8, there)
        elif action % 8 == 5:
            _gather(mapped, [offset - 64 + step * (length >> 8) for step in range(number % 16)], there)
        else:
            _gather(mapped, [8 * (offset % (size // 8 + 1)) + 8 * step for step in range(number % 16)], there)
    mapped.close()


def _expected(offset: int, length: int, there: int) -> bytes | None:
    """What stands there; None where a page of it is gone."""
    pages = -(-there // _PAGE)
    # Whole words are read, and a word lies in one page.
    if length and offset + length > pages * _PAGE:
        return None
    return _CONTENT[offset : min(offset + length, there)].ljust(length, b"\0") if offset < there else bytes(length)


def _read(mapped: Any, offset: int, length: int, there: int) -> None:
    try:
        found = mapped.read(offset, length)
    except ValueError:
        assert mapped.closed or offset < 0 or length < 0 or offset + length > mapped.size
    except OSError:
        assert _expected(offset, length, there) is None
    else:
        assert found == _expected(offset, length, there)


def _gather(mapped: Any, offsets: list[int], there: int) -> None:
    """gather, and gather_all with two jobs, of which the second is the same again."""
    row = memoryview(bytearray(pack(f"={len(offsets)}q", *offsets))).cast("q")
    out = memoryview(bytearray(16 * len(offsets))).cast("q")
    right = [offset for offset in offsets if offset % 8 == 0 and 0 <= offset <= mapped.size - 8]
    wrong = len(right) < len(offsets)
    gone = any(_expected(offset, 8, there) is None for offset in right)
    try:
        mapped.gather(row, out[: len(offsets)])
        lost = mapped.gather_all([(mapped, row)] * 2, out) if offsets else []
    except ValueError:
        assert mapped.closed or wrong
    except OSError:
        assert gone
        if not wrong:
            assert mapped.gather_all([(mapped, row)] * 2, out) == [0, 1]
            assert set(out) <= {0}
    else:
        assert not wrong
        assert not gone
        assert not lost
        words = b"".join(_expected(offset, 8, there) or b"" for offset in offsets)
        assert out.tobytes() == words * (2 if offsets else 0)
