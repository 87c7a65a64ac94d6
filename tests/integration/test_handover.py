"""The listener's sockets past forks: nobody else reaches them, none is lost, and what is lost comes again."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests import programs, sandbox
from tests.attack.stepper import Stepper
from tests.conftest import StartPython, StartVMScope
from tests.integration.test_listener import C_ONLY, PRELOAD, VERSION, ask, path_of
from tests.support import BECOME, PATIENCE, Child, User, python_command
from tests.wait import wait_for

PLACES = 64
LOOP = "print('ready', flush=True)\nfor line in sys.stdin:\n    print(eval(line), flush=True)\n"
FORK = programs.source("handover/fork")


def connect(pid: int) -> socket.socket:
    """As the JDK's clients do, which wait where others fill the queue."""
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(str(path_of(pid)))
    except BaseException:
        client.close()
        raise
    client.settimeout(PATIENCE)
    return client


def answer(client: socket.socket) -> str:
    found = b""
    while part := client.recv(1 << 16):
        found += part
    return found.decode()


# -- another user ---------------------------------------------------------------------------------

# Sends what it is told to every name that comes up in the network namespace of a process, as that user's own program.
ATTACKER = """
import array, ctypes, os, socket, sys
pid, count, begin = int(sys.argv[1]), int(sys.argv[2]), "01"
with open(f"/proc/{{pid}}/ns/net") as space:
    assert ctypes.CDLL(None).setns(space.fileno(), 0) == 0
{become}
own = socket.socket(socket.AF_UNIX)
own.bind("\\0attacker")
own.listen()
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [own.fileno()] * count))] if count else []
seen = set()
print("ready", flush=True)
os.set_blocking(0, False)
while True:
    try:
        os.read(0, 1)
        break
    except BlockingIOError:
        pass
    with open("/proc/net/unix") as table:
        names = [line.split()[-1] for line in table if "@" in line]
    for name in names:
        if name != "@attacker":
            seen.add(name)
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                for _ in range(1 if count else 1000):
                    try:
                        sender.sendmsg([b"x"], rights, 0, "\\0" + name[1:])
                    except OSError:
                        break
print(sorted(seen), flush=True)
"""


@pytest.fixture
def alone() -> list[str]:
    """What a command begins with that has a network namespace of its own, and with it all names of sockets."""
    command = ["unshare", "--net"]
    if os.geteuid() != 0:
        pytest.skip("needs root")
    return command


@C_ONLY
@pytest.mark.parametrize("descriptors", [0, 1, 66])
def test_another_user_reaches_nothing(descriptors: int, alone: list[str], private_user: User) -> None:
    """While a process of root's forks, and a client of root's waits; there is no name to send to at all."""
    code = f"import vmscope\nvmscope.start()\n{FORK}{LOOP}"
    with ExitStack() as stack:
        child = stack.enter_context(Child([*alone, *python_command(code, options=["-W", "error"])]))
        child.read_until(b"ready\n")
        become = BECOME.format(uid=private_user.uid, gid=private_user.gid, name=private_user.name)
        arguments = [str(child.pid), str(descriptors)]
        attacker = stack.enter_context(Child(python_command(ATTACKER.format(become=become), *arguments)))
        attacker.read_until(b"ready\n")
        for _ in range(40):
            with closing(connect(child.pid)) as client:
                client.sendall(b"1\0jcmd\0VM.ver")
                assert child.ask("forks(10)") == "10"
                client.sendall(b"sion\0\0\0")
                assert VERSION.match(answer(client))
        assert attacker.ask("") == "[]"
        assert child.ask("attachable()") == "True"
        assert VERSION.match(ask(child.pid))
        assert child.stop() == 0


def test_another_users_connections_hold_no_place(
    private_user: User, start_vmscope: StartVMScope, start_python: StartPython, implementation: str
) -> None:
    """Even where the socket's mode lets him connect, as often as he can."""
    child = start_vmscope()
    flood = programs.source("handover/flood")
    flooder = start_python(flood, str(child.pid), user=private_user, preload=["socket"], ready=False)
    assert flooder.readline() == "refused"
    path_of(child.pid).chmod(0o777)
    assert flooder.ask("") == "ready"
    for _ in range(20):
        with closing(connect(child.pid)) as client:
            client.sendall(b"1\0jcmd\0VM.version\0\0\0")
            assert VERSION.match(answer(client))


# -- clients --------------------------------------------------------------------------------------


def test_clients_that_wait_go_through_forks(start_vmscope: StartVMScope, implementation: str) -> None:
    """As many as there are places, their requests half sent, and more that wait to be accepted."""
    child = start_vmscope(code=FORK)
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(connect(child.pid))) for _ in range(PLACES)]
        for client in clients:
            client.sendall(b"1\0jcmd\0VM.ver")
        more = [stack.enter_context(closing(connect(child.pid))) for _ in range(10)]
        assert child.ask("forks(5)") == "5"
        for client in clients:
            client.sendall(b"sion\0\0\0")
        for client in more:
            client.sendall(b"1\0jcmd\0VM.version\0\0\0")
        for client in (*clients, *more):
            assert VERSION.match(answer(client))
    assert child.stop() == 0


def test_a_child_holds_no_client(start_vmscope: StartVMScope, implementation: str) -> None:
    """A client of the parent's hears of the parent's end, though a child that came meanwhile goes on."""
    code = FORK + "def fork():\n    pid = os.fork()\n    return pid or time.sleep(60)\n"
    child = start_vmscope(code=code)
    with closing(connect(child.pid)) as client:
        client.sendall(b"1\0")
        assert VERSION.match(ask(child.pid))
        pid = int(child.ask("fork()"))
        child.kill()
        assert client.recv(1) == b""
        with pytest.raises((ConnectionRefusedError, FileNotFoundError)):  # another VM may have removed it
            connect(child.pid)
    os.kill(pid, 9)
    path_of(child.pid).unlink()
    path_of(pid).unlink(missing_ok=True)


@C_ONLY
def test_a_child_that_nobody_told_us_of_has_no_way_in(start_vmscope: StartVMScope) -> None:
    """One forked by C code, which may run as another user: what has it could take the sockets at the next fork."""
    code = programs.source("handover/bare_fork")
    child = start_vmscope(code=code)
    assert child.ask("len(sockets())") == "1"
    assert child.ask("fork()") == "0"
    assert VERSION.match(ask(child.pid))


@C_ONLY
def test_an_end_waits_for_a_socket_that_is_being_made(start_vmscope: StartVMScope) -> None:
    """Else its file, or the one that becomes it, would be left."""
    code = """
import atexit, os, vmscope
def end():
    atexit.register(os.write, 1, b"ending\\n")
"""
    child = start_vmscope(code=code)
    tasks = Path(f"/proc/{child.pid}/task")
    (talker,) = (int(each.name) for each in tasks.iterdir() if (each / "comm").read_text().startswith("vmscope listen"))
    path_of(child.pid).unlink()
    stepper = Stepper(talker)
    child.send("vmscope.status() and end()")
    for call in stepper:
        if call.name.startswith("rename"):
            assert child.process.stdin is not None
            child.process.stdin.close()
            child.read_until(b"ending\n")
            wait_for(lambda: (tasks / str(child.pid) / "stat").read_text().rpartition(")")[2].split()[0] in "SZ")
            break
    stepper.leave()
    assert child.process.wait(PATIENCE) == 0
    assert list(Path("/tmp").glob(f".*{child.pid}*")) == []


# -- the program's own descriptors ----------------------------------------------------------------

CLOSING = FORK + programs.source("handover/closing")


def serves_across_forks(child: Child) -> None:
    for _ in range(3):
        wait_for(lambda: child.ask("attachable()") == "True")
        assert VERSION.match(ask(child.pid))
        assert child.ask("forks(3)") == "3"
    assert child.ask("untouched()") == "True"
    assert child.stop() == 0


@pytest.mark.parametrize("reused", [False, True], ids=["closed", "reused"])
def test_a_program_that_closes_every_descriptor_and_forks(
    reused: bool, start_vmscope: StartVMScope, implementation: str
) -> None:
    """The socket is made anew where it was among them, and what the program has there since is left alone."""
    child = start_vmscope(code=CLOSING)
    if implementation == "python":  # whose listener has descriptors in the program's table for a moment then
        wait_for(lambda: child.ask("swept()") == "True")
    child.ask("close()")
    if reused:
        child.ask("pipes()")
    serves_across_forks(child)
    assert not path_of(child.pid).exists()


# Before vmscope's threads look, and with nothing that would wake one of them.
AT_ONCE = programs.source("handover/at_once")


def takes_all_numbers_at_once(child: Child) -> None:
    assert child.ask("at_once()") == "True"
    wait_for(lambda: child.ask("attachable()") == "True")
    assert VERSION.match(ask(child.pid))
    assert child.ask("untouched()") == "True"
    assert child.stop() == 0


def test_a_program_that_takes_their_numbers_at_once(start_vmscope: StartVMScope, implementation: str) -> None:
    child = start_vmscope(code=FORK + AT_ONCE)
    wait_for(lambda: implementation == "c" or child.ask("swept()") == "True")  # that would wake the listener
    takes_all_numbers_at_once(child)


@pytest.fixture
def one_table() -> str:
    """What a program begins with in which no thread has descriptors of its own."""
    if not sandbox.can_refuse():
        pytest.skip("no system calls can be refused here")
    close = "def close():\n    for fd in range(3, 1024):\n        try: os.close(fd)\n        except OSError: pass\n"
    return f"sandbox.refuse(close_range=errno.ENOSYS)\nvmscope.start()\n{CLOSING}{close}"


def test_the_same_where_a_thread_has_no_descriptors_of_its_own(one_table: str) -> None:
    with Child(sandbox.plain_command(f"{one_table}close()\npipes()\n{LOOP}")) as child:
        child.read_until(b"ready\n")
        serves_across_forks(child)


def test_the_same_at_once_where_a_thread_has_no_descriptors_of_its_own(one_table: str) -> None:
    with Child(sandbox.plain_command(one_table + AT_ONCE + LOOP)) as child:
        child.read_until(b"ready\n")
        takes_all_numbers_at_once(child)


# -- a lost socket --------------------------------------------------------------------------------


def test_a_name_that_goes(start_vmscope: StartVMScope, implementation: str) -> None:
    """It is said that nobody can attach as long as that is so. A mirror would find it within a second."""
    child = start_vmscope("-XX:-UsePerfData", code=FORK)
    path = path_of(child.pid)
    path.unlink()
    said = f"(None, '{path} was closed, removed or replaced: it is being made anew')"
    assert child.ask("(lambda s: (s.attach_path, s.attach_reason))(vmscope.status())") == said
    wait_for(lambda: child.ask("attachable()") == "True")
    assert VERSION.match(ask(child.pid))
    path.unlink()
    path.touch()
    assert child.ask("attachable()") == "False"
    wait_for(lambda: child.ask("attachable()") == "True")
    assert VERSION.match(ask(child.pid))
    assert child.stop() == 0
    assert not path.exists()


@C_ONLY
def test_a_name_that_goes_comes_back_by_itself(start_vmscope: StartVMScope) -> None:
    """A tmp cleaner's work is seen while the program does nothing."""
    child = start_vmscope()
    path_of(child.pid).unlink()
    wait_for(path_of(child.pid).exists)
    assert VERSION.match(ask(child.pid))


@C_ONLY
def test_a_fork_brings_a_name_back_that_is_gone(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(code=FORK)
    path_of(child.pid).unlink()
    assert child.ask("forks(1)") == "1"
    wait_for(path_of(child.pid).exists)
    assert VERSION.match(ask(child.pid))


def test_a_name_that_another_answers_under(start_vmscope: StartVMScope, implementation: str) -> None:
    child = start_vmscope("-XX:-UsePerfData", code=FORK)
    path = path_of(child.pid)
    path.unlink()
    with closing(socket.socket(socket.AF_UNIX)) as other:
        other.bind(str(path))
        other.listen()
        assert child.ask("attachable()") == "False"
        wait_for(lambda: "in use by another VM" in child.ask("vmscope.status().attach_reason"))
    wait_for(lambda: child.ask("attachable()") == "True")
    assert VERSION.match(ask(child.pid))


def listening(pid: int) -> Iterator[socket.socket]:
    """A descriptor of each listening socket that a process has, be it in a table of one thread of it alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    for task in Path(f"/proc/{pid}/task").iterdir():
        thread = libc.syscall(434, int(task.name), os.O_EXCL)  # pidfd_open with PIDFD_THREAD
        if thread < 0:
            pytest.skip(f"pidfd_open: {os.strerror(ctypes.get_errno())}")
        for entry in (task / "fd").iterdir():
            try:
                target = os.readlink(entry)
            except FileNotFoundError:  # a thread that still starts has closed it
                continue
            if target.startswith("socket:"):
                fd = libc.syscall(438, thread, int(entry.name), 0)  # pidfd_getfd
                with socket.socket(fileno=fd) as found:
                    if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        yield found
        os.close(thread)


def test_a_socket_that_is_shut_down(start_vmscope: StartVMScope, implementation: str) -> None:
    """From outside, as by a debugger: nobody can be accepted any more."""
    child = start_vmscope(code=FORK)
    for found in listening(child.pid):
        found.shutdown(socket.SHUT_RDWR)
    wait_for(lambda: VERSION.match(ask_or_not(child.pid)))
    assert child.ask("attachable()") == "True"
    assert child.stop() == 0


def ask_or_not(pid: int) -> str:
    try:
        return ask(pid)
    except OSError:
        return ""


def test_a_thread_that_cannot_be_started_again(private_user: User, start_python: StartPython) -> None:
    """After a fork, where the user has no process left: it is said, and comes when it can."""
    child = start_python(
        programs.source("handover/no_thread"),
        user=private_user,
        preload=["resource", "vmscope.process_status", *PRELOAD],
    )
    child.ask("limit(0)")
    assert child.ask("fork()") == "True"
    assert "temporarily unavailable" in child.ask("vmscope.status().attach_reason")
    child.ask("limit(limits[0])")
    wait_for(lambda: child.ask("vmscope.status().attach_path") != "None")
    assert VERSION.match(ask(child.pid))
    assert child.stop() == 0
