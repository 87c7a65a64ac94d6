"""A request to a VM as it goes over the socket, so that a thousand of them take no JVM each."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import closing
from pathlib import Path

from tests.support import PATIENCE
from tests.wait import wait_for


def ask(pid: int, operation: str, *arguments: str) -> tuple[str, str]:
    """The status and the rest of what the VM answers, which catches SIGQUIT if it has no socket yet."""
    path = Path(f"/tmp/.java_pid{pid}")
    deadline = time.monotonic() + PATIENCE
    if not path.exists():
        asking = Path(f"/tmp/.attach_pid{pid}")
        asking.touch()
        try:
            os.kill(pid, signal.SIGQUIT)
            wait_for(path.exists, f"pid {pid} opens no socket")
        finally:
            asking.unlink(missing_ok=True)
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(PATIENCE)
        while True:
            try:
                client.connect(str(path))
                break
            except ConnectionRefusedError:  # bound, and not listening yet
                assert time.monotonic() < deadline, f"pid {pid} does not listen"
                time.sleep(0.02)  # a socket tells nobody when it listens
        words = ["1", operation, *arguments, *[""] * (3 - len(arguments))]
        client.sendall(b"".join(word.encode() + b"\0" for word in words))
        answer = b""
        while part := client.recv(65536):
            answer += part
    status, _, body = answer.decode().partition("\n")
    return status, body
