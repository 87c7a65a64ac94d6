"""Root's tools on what another user has made for them to read: devices in the place of regions, pids used again."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from itertools import count

import pytest

from tests import programs, sandbox
from tests.attack.stepper import Stepper
from tests.support import Child, User, python_command

CONTAINER = programs.source("attack_readers/container")
READER = """
import sys
from vmscope import reader
from vmscope.errors import VMScopeError
print("ready", flush=True)
sys.stdin.readline()
try:
    reader.vm(PID)
except VMScopeError:
    pass
for vm in reader.vms(stale=True):
    vm.close()
"""


class Terminal:
    """Its own end tells whether the other one, which is a device file, has ever been opened."""

    def __init__(self) -> None:
        self.fd = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(self.fd, 0x40045431, struct.pack("i", 0))  # TIOCSPTLCK
        (number,) = struct.unpack("i", fcntl.ioctl(self.fd, 0x80045430, bytes(4)))  # TIOCGPTN
        self.path = f"/dev/pts/{number}"

    @property
    def opened(self) -> bool:
        try:
            os.read(self.fd, 1)
        except BlockingIOError:
            return False
        except OSError:  # EIO: it has been closed again
            pass
        return True


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    os.close(terminal.fd)


def test_no_device_is_opened(private_user: User, terminal: Terminal) -> None:
    """To open a watchdog may boot the machine, to open a tape winds it back: what a file is must be known before.

    It becomes a device before each step in turn.
    """
    with Child(python_command(CONTAINER, user=private_user, preload=["ctypes"])) as container:
        container.read_until(b"ready\n")
        for step in count():
            with Child(python_command(READER.replace("PID", str(container.pid)))) as root:
                root.read_until(b"ready\n")
                stepper = Stepper(root.pid)
                root.send("")
                steps = 0
                for call in stepper:
                    if call.path.rpartition("/")[2] == str(container.pid):
                        if steps == step:
                            assert container.ask(f"cover({terminal.path!r})") == "done"
                        steps += 1
                assert root.process.wait() == 0
            assert not terminal.opened
            if steps <= step:
                break
            assert container.ask("uncover()") == "done"
        assert step > 2


USED_AGAIN = programs.source("attack_readers/used_again")


def test_a_lock_names_nobody_who_has_a_pid_again() -> None:
    """Another user's region is not shown as a process of root's, which then might be sent signals for a JVM's."""
    text = sandbox.run(USED_AGAIN, mounts="mount -t tmpfs -o mode=1777 tmpfs /tmp")
    assert text == '{"held": true, "states": ["foreign"]}\n'
