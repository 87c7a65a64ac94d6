"""Clients of the attach protocol that break every rule of it, by the thousand, and the same ones again.

    python -m tests.attack.requests PID [COUNT [SEED]]

Each is fixed by the seed and its number: a request, mutated or whole, in pieces of any length, with descriptors,
credentials or urgent bytes attached, with either direction shut down at any moment, and the reply read or not. Some
stay half open. Between them an honest client asks for the version.
"""

from __future__ import annotations

import array
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from random import Random

PATIENCE = 30.0  # seconds for an honest client
HALF_OPEN = 60  # connections; 64 are served at once
HONEST = 500  # attacks between two honest clients
GLANCE = 0.002  # seconds for the reply to an attack: most are not worth a wait

OPERATIONS = (
    (b"jcmd", b"VM.version"),
    (b"jcmd", b"help GC.run"),
    (b"jcmd", b"VM.uptime", b"-date"),
    (b"jcmd", b"\xff\xfe\xed\xa0\x80", b"=", b'"'),
    (b"getversion", b"options"),
    (b"properties",),
    (b"agentProperties",),
    (b"threaddump", b"-e -l"),
    (b"printflag", b"PerfDataMemorySize"),
    (b"setflag", b"UsePerfData", b"0"),
    (b"load", b"/nonexistent/agent.so", b"true", b"x" * 1024),
    (b"dumpheap", b"none/dump", b"-live", b"99"),  # a part of that path is a file of the working directory
    (b"inspectheap", b"-none"),
    (b"nothing of the kind", b"a", b"b", b"c"),
    (b"",),
)
NUMBERS = (b"", b"0", b"-1", b"+1", b"00000001", b"99999999", b"100000000", b"18446744073709551617", b"0x10", b" 8")


def version_1(fields: tuple[bytes, ...]) -> bytes:
    return b"1\0" + b"".join(field + b"\0" for field in (*fields, *[b""] * (4 - len(fields))))


def version_2(fields: tuple[bytes, ...]) -> bytes:
    body = b"".join(field + b"\0" for field in fields)
    return b"2\0%d\0%b" % (len(body), body)


# -- what is sent ---------------------------------------------------------------------------------


def _flip(random: Random, data: bytearray) -> None:
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _insert(random: Random, data: bytearray) -> None:
    at = random.randrange(len(data) + 1)
    data[at:at] = random.choice((b"\0", b"\0\0\0\0", b"\n", b"1", b"2", b"\xff", random.randbytes(9)))


def _remove(random: Random, data: bytearray) -> None:
    at = random.randrange(len(data))
    del data[at : at + random.randint(1, 9)]


def _cut(random: Random, data: bytearray) -> None:
    del data[random.randrange(len(data) + 1) :]


def _repeat(random: Random, data: bytearray) -> None:
    data *= random.randint(2, 5)


def _swell(random: Random, data: bytearray) -> None:
    at = random.randrange(len(data) + 1)
    data[at:at] = random.choice((b"x", b"\0", b"9", b" ")) * random.choice(
        (255, 1025, 16 << 10, (16 << 10) + 1, 300_000)
    )


def _number(random: Random, data: bytearray) -> None:
    head, _, rest = bytes(data).partition(b"\0")
    data[:] = random.choice((head, b"2", b"1", b"3", b"")) + b"\0" + random.choice(NUMBERS) + b"\0" + rest


MUTATIONS: tuple[Callable[[Random, bytearray], None], ...] = (_flip, _insert, _remove, _cut, _repeat, _swell, _number)


def request(random: Random) -> bytes:
    """One in ten is as it should be."""
    data = bytearray(random.choice((version_1, version_2))(random.choice(OPERATIONS)))
    if random.random() >= 0.1:
        for _ in range(random.choice((1, 1, 2, 3))):
            if data:
                random.choice(MUTATIONS)(random, data)
    return bytes(data)


def pieces(random: Random, data: bytes) -> Iterator[bytes]:
    """All at once, byte by byte, or cut anywhere."""
    way = random.randrange(3)
    if way == 0 or len(data) > 1 << 12:
        yield data
    elif way == 1:
        for at in range(len(data)):
            yield data[at : at + 1]
    else:
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.randint(1, 4)))
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            yield data[begin:end]


# -- how ------------------------------------------------------------------------------------------


def _descriptors(random: Random, client: socket.socket, stack: ExitStack) -> tuple[int, int, bytes]:
    """Pipes, sockets with something unread, and the connection itself."""
    fds = [client.fileno()]
    for _ in range(random.choice((1, 1, 3, 250))):
        fds += [os.open("/dev/null", os.O_RDONLY)]
        stack.callback(os.close, fds[-1])
    return socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds[random.randrange(2) :]).tobytes()


def _credentials(*_: object) -> tuple[int, int, bytes]:
    return socket.SOL_SOCKET, 2, struct.pack("3i", os.getpid(), os.getuid(), os.getgid())  # SCM_CREDENTIALS


def _send(random: Random, client: socket.socket, piece: bytes, stack: ExitStack) -> None:
    way = random.random()
    if way < 0.02:
        client.sendmsg([piece], [_descriptors(random, client, stack)])
    elif way < 0.04:
        client.sendmsg([piece], [_credentials()])
    elif way < 0.06 and piece:
        client.send(piece[:1], socket.MSG_OOB)
        client.send(piece[1:])
    else:
        client.sendall(piece)


def attack(random: Random, path: str, half_open: list[socket.socket]) -> None:
    """One client. What the other side makes of it is not this side's to judge: any error will do."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE)
    client.connect(path)
    stays = random.random() < 0.05
    with ExitStack() as stack:
        if not stays:
            stack.callback(client.close)
        with suppress(BrokenPipeError, ConnectionResetError, OSError):
            if random.random() < 0.1:
                client.shutdown(random.randrange(3))
            for piece in pieces(random, request(random)):
                _send(random, client, piece, stack)
                if random.random() < 0.01:
                    client.shutdown(random.randrange(3))
            if random.random() < 0.2:
                client.shutdown(socket.SHUT_WR)
            if random.random() < 0.3 and select.select([client], [], [], GLANCE)[0]:
                client.recv(random.choice((1, 7, 1 << 16)))
    if stays:
        half_open.append(client)
        while len(half_open) > HALF_OPEN:
            half_open.pop(random.randrange(HALF_OPEN)).close()


def ask(path: str, data: bytes = version_1(OPERATIONS[0])) -> bytes:
    """An honest client's whole answer."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        client.connect(path)
        client.sendall(data)
        answer = bytearray()
        while part := client.recv(1 << 16):
            answer += part
        return bytes(answer)


def campaign(path: str, count: int, seed: int = 1) -> float:
    """So many attacks; the longest that an honest client had to wait, in seconds. AssertionError: one got none."""
    random = Random(seed)
    half_open: list[socket.socket] = []
    longest = 0.0
    try:
        for number in range(count):
            attack(random, path, half_open)
            if number % HONEST == HONEST - 1:
                begin = time.monotonic()
                answer = ask(path)
                assert answer.startswith(b"0\nCPython version 3."), answer
                longest = max(longest, time.monotonic() - begin)
    finally:
        for client in half_open:
            client.close()
    return longest


if __name__ == "__main__":
    pid, *numbers = sys.argv[1:]
    print(f"{campaign(f'/tmp/.java_pid{pid}', *map(int, numbers or ['100000'])):.3f} s")
