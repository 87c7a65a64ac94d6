"""Root's tools on what another user has made for them to read: devices in the place of regions, pids used again."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from itertools import count

import pytest

from tests import sandbox
from tests.attack.stepper import Stepper
from tests.support import Child, User, python_command

# In a /tmp of its own: `cover` mounts a device over the region's file, as every user may in a namespace of his own.
CONTAINER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "done"
def note(name, text):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
ids = os.getuid(), os.getgid()
call(libc.unshare(0x10020000))  # CLONE_NEWUSER, CLONE_NEWNS
note("setgroups", "deny")
note("uid_map", f"0 {ids[0]} 1")
note("gid_map", f"0 {ids[1]} 1")
call(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
os.mkdir("/tmp/hsperfdata_shop", 0o755)
region = b"/tmp/hsperfdata_shop/%d" % os.getpid()
with open(region, "wb") as file:
    file.write(bytes(4096))
def cover(path):
    return call(libc.mount(path.encode(), region, None, 4096, None))  # MS_BIND
def uncover():
    return call(libc.umount2(region, 2))  # MNT_DETACH
print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""
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


# The file is locked by a process that ends, and leaves the lock to another one, its name and pid to root's.
USED_AGAIN = """
import fcntl, os, signal
from vmscope import reader
def spawn(action):
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    return child
def spawn_as(pid):
    for _ in range(10_000):  # others fork too
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(pid - 1))
        child = spawn(signal.pause)
        if child == pid:
            return child
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
def lock():
    os.setresgid(1001, 1001, 1001)
    os.setresuid(1001, 1001, 1001)
    name = f"/tmp/hsperfdata_shop/{os.getpid()}"
    with open(name, "wb") as file:
        file.write(image)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        keeper = spawn(signal.pause)  # the lock is the open file's, and this process keeps it
        with open("/tmp/keeper", "w") as file:
            file.write(str(keeper))
vmscope.runtime.start()
with open(vmscope.runtime.status().path, "rb") as file:
    image = file.read()
vmscope.runtime.stop()
os.mkdir("/tmp/hsperfdata_shop", 0o755)
os.chown("/tmp/hsperfdata_shop", 1001, 1001)
pid = spawn(lock)
os.waitpid(pid, 0)
roots = spawn_as(pid)
holders = [line.split()[4] for line in open("/proc/locks") if "FLOCK" in line]
path = f"/tmp/hsperfdata_shop/{pid}"
answer(held=str(pid) in holders, states=[vm.state for vm in reader.vms(stale=True) if vm.path == path])
os.kill(roots, signal.SIGKILL)
os.kill(int(open("/tmp/keeper").read()), signal.SIGKILL)
"""


def test_a_lock_names_nobody_who_has_a_pid_again() -> None:
    """Another user's region is not shown as a process of root's, which then might be sent signals for a JVM's."""
    text = sandbox.run(USED_AGAIN, mounts="mount -t tmpfs -o mode=1777 tmpfs /tmp")
    assert text == '{"held": true, "states": ["foreign"]}\n'
