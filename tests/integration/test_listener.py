"""A process as its clients and as its own program see the listener: when it answers, and that nothing else changes."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests import programs, sandbox
from tests.conftest import StartPython, StartVMScope
from tests.support import PATIENCE, Child, User, python_command
from tests.wait import wait_for
from vmscope import native

VERSION = re.compile(r"0\nCPython version 3\.\d+\.\d+.*\nvmscope ", re.DOTALL)
C_ONLY = pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the extension's alone")


def path_of(pid: int) -> Path:
    return Path(f"/tmp/.java_pid{pid}")


def ask(pid: int, *words: str, timeout: float = PATIENCE) -> str:
    """The whole answer to a request of version 1, by default for the version."""
    words = words or ("jcmd", "VM.version")
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(timeout)
        client.connect(str(path_of(pid)))
        client.sendall(b"".join(word.encode() + b"\0" for word in ("1", *words, *[""] * (4 - len(words)))))
        answer = bytearray()
        while part := client.recv(1 << 16):
            answer += part
    return answer.decode()


def is_served(pid: int) -> bool:
    """Whether somebody listens there: a killed process, which had the pid before, may have left its file."""
    with closing(socket.socket(socket.AF_UNIX)) as client:
        return client.connect_ex(str(path_of(pid))) not in (errno.ENOENT, errno.ECONNREFUSED)


def caught(pid: int, name: str = "SigCgt") -> bool:
    """Whether SIGQUIT is caught (SigIgn: ignored)."""
    text = Path(f"/proc/{pid}/status").read_text()
    match = re.search(rf"^{name}:\s+(\w+)$", text, re.MULTILINE)
    assert match, text
    return bool(int(match[1], 16) >> (signal.SIGQUIT - 1) & 1)


# -- the life of the socket -----------------------------------------------------------------------


def test_it_is_there_from_the_start(start_vmscope: StartVMScope, implementation: str) -> None:
    child = start_vmscope()
    path = path_of(child.pid)
    assert child.ask("vmscope.status().attach_path") == str(path)
    assert child.ask("vmscope.status().attach_reason") == ""
    assert path.is_socket()
    assert path.lstat().st_mode & 0o777 == 0o600
    assert VERSION.match(ask(child.pid))
    assert child.ask("vmscope.stop()") == "None"
    assert not path.exists()
    assert child.ask("vmscope.status().attach_reason") == "vmscope.stop() was called"
    assert child.ask("vmscope.start()") == "None"
    assert VERSION.match(ask(child.pid))
    assert child.stop() == 0
    assert not path.exists()


def test_switched_off(start_vmscope: StartVMScope) -> None:
    child = start_vmscope("-XX:+DisableAttachMechanism")
    assert child.ask("vmscope.status().attach_path, vmscope.status().attach_reason") == str(
        (None, "switched off by -XX:+DisableAttachMechanism")
    )
    assert not is_served(child.pid)
    assert not caught(child.pid)
    assert child.ask("vmscope.vm('self').values()['sun.rt.jvmCapabilities'][0]") == "0"


def test_without_a_region(start_vmscope: StartVMScope) -> None:
    for option in ("-XX:-UsePerfData", "-XX:+PerfDisableSharedMem"):
        child = start_vmscope(option)
        assert VERSION.match(ask(child.pid))
        assert child.stop() == 0
        assert not path_of(child.pid).exists()


def test_the_capability_says_so(start_vmscope: StartVMScope) -> None:
    child = start_vmscope()
    assert child.ask("vmscope.vm('self').values()['sun.rt.jvmCapabilities']") == "1" + "0" * 63


ENDS = {
    "return": "",
    "sys.exit": "sys.exit()",
    "error": "1 / 0",
    "os.abort": "os.abort()",
    "SIGTERM under run": "os.kill(os.getpid(), signal.SIGTERM)",
    "SIGQUIT": "os.kill(os.getpid(), signal.SIGQUIT)",
    "SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)",
}


@C_ONLY
@pytest.mark.parametrize("end", ENDS)
def test_no_end_leaves_it(end: str) -> None:
    code = f"""
import os, resource, signal, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print("ready", os.path.exists(f"/tmp/.java_pid{{os.getpid()}}"), flush=True)
sys.stdin.readline()
{ENDS[end]}
"""
    with Child([sys.executable, "-m", "vmscope", "run", "-c", code], merge_stderr=True) as child:
        assert child.readline() == "ready True"
        child.send("")
        child.process.wait(PATIENCE)
        assert not path_of(child.pid).exists()


def test_what_a_killed_process_leaves(start_vmscope: StartVMScope) -> None:
    """The next VM that starts removes it; another process of the pid replaces it."""
    for _ in range(5):  # a JVM of another test may come first: it takes the region alone away
        child = start_vmscope()
        path = path_of(child.pid)
        child.kill()
        assert path.is_socket()
        other = start_vmscope()
        gone = not path.exists()
        path.unlink(missing_ok=True)
        assert other.stop() == 0
        if gone:
            return
    raise AssertionError("it stays")


def test_what_a_killed_process_without_a_region_leaves(start_vmscope: StartVMScope, implementation: str) -> None:
    """A VM that runs for a moment removes it, when it is a minute old."""
    child, young, alive = (start_vmscope("-XX:-UsePerfData") for _ in range(3))
    old, new, kept = (path_of(each.pid) for each in (child, young, alive))
    child.kill()
    young.kill()
    for path in (old, kept):
        os.utime(path, times=(0, 0))
    other = start_vmscope("-XX:-UsePerfData")
    try:
        wait_for(lambda: not old.exists())
        assert new.is_socket()
        assert VERSION.match(ask(alive.pid))
    finally:
        new.unlink()
    assert other.stop() == alive.stop() == 0


def test_exit_waits_for_no_client(start_vmscope: StartVMScope, implementation: str) -> None:
    child = start_vmscope()
    silent = []
    try:
        for _ in range(10):
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(path_of(child.pid)))
            client.send(b"1\0")
            silent.append(client)
        begin = time.monotonic()
        assert child.stop() == 0
        assert time.monotonic() - begin < 5
    finally:
        for client in silent:
            client.close()


SLOW_COMMAND = programs.source("listener/slow_command")


def test_exit_waits_for_a_command_a_second_at_most(start_vmscope: StartVMScope, implementation: str) -> None:
    child = start_vmscope(code=SLOW_COMMAND)
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(PATIENCE)
        client.connect(str(path_of(child.pid)))
        client.sendall(b"1\0jcmd\0Test.wait\0\0\0")
        assert client.recv(100).startswith(b"0\nbegun")
        begin = time.monotonic()
        assert child.stop() == 0
        assert time.monotonic() - begin < 5


def test_exit_while_a_command_imports_what_agents_need() -> None:
    """The module is there, and nothing is in it yet."""
    code = """
import os, sys, types
sys.modules["vmscope.tool.host"] = types.ModuleType("vmscope.tool.host")
print(os.path.exists(f"/tmp/.java_pid{os.getpid()}"))
"""
    with Child([sys.executable, "-m", "vmscope", "run", "-c", code], merge_stderr=True) as child:
        assert child.readline() == "True"
        assert child.process.wait(PATIENCE) == 0
        assert child.rest() == b""  # no traceback
        assert not path_of(child.pid).exists()


# -- it answers while the program is busy ---------------------------------------------------------

BUSY = {
    "idle": "time.sleep(60)",
    "busy": "while True: pass",
    "blocked in C": "pair = socket.socketpair(); pair[0].recv(1)",
    "in a lock": "l = threading.Lock(); l.acquire(); l.acquire()",
    "in asyncio": "asyncio.run(asyncio.sleep(60))",
    "in many threads": "[threading.Thread(target=burn, daemon=True).start() for _ in range(4)]; burn()",
    "joining a thread": "t = threading.Thread(target=time.sleep, args=(60,), daemon=True); t.start(); t.join()",
    "in select": "select.select([], [], [], 60)",
}
PROGRAM = """
import asyncio, ctypes, os, select, signal, socket, subprocess, sys, threading, time
import vmscope
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
def burn():
    while True: pass
vmscope.start()
print("ready", flush=True)
"""


@pytest.mark.parametrize("what", BUSY)
def test_it_answers_while_the_program_is(what: str, start_python: StartPython, implementation: str) -> None:
    child = start_python(PROGRAM + BUSY[what])
    for _ in range(3):
        assert VERSION.match(ask(child.pid))


def test_it_answers_after_a_call_that_holds_the_gil(start_python: StartPython) -> None:
    """The request waits for the GIL, and the counters stay readable meanwhile."""
    child = start_python(PROGRAM + "ctypes.PyDLL(None).usleep(1_500_000)\ntime.sleep(60)")
    import vmscope

    found: list[str] = []
    asking = threading.Thread(target=lambda: found.append(ask(child.pid)))
    asking.start()
    assert int(vmscope.vm(child.pid).values()["sun.os.hrt.ticks"]) > 0
    asking.join(PATIENCE)
    assert VERSION.match(found[0])


def test_clients_of_a_process_that_dies_hear_of_it(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(code=SLOW_COMMAND)
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(PATIENCE)
        client.connect(str(path_of(child.pid)))
        client.sendall(b"1\0jcmd\0Test.wait\0\0\0")
        assert client.recv(100).startswith(b"0\nbegun")
        child.kill()
        while client.recv(100):
            pass


def test_200_clients_of_a_busy_process(start_python: StartPython) -> None:
    child = start_python(PROGRAM + "burn()")
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(ask(child.pid))) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    assert len(found) == 200
    assert [each for each in found if not VERSION.match(each)] == []


# -- nothing shows --------------------------------------------------------------------------------


@C_ONLY
def test_the_program_sees_neither_threads_nor_descriptors(start_vmscope: StartVMScope) -> None:
    code = """
import os, signal, threading
def seen():
    return sorted(os.listdir("/proc/self/fd")), threading.enumerate(), [
        signal.getsignal(number) for number in sorted(signal.valid_signals())]
before = seen()
"""
    child = start_vmscope(code=code)
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(str(path_of(child.pid)))
        client.send(b"1\0")
        for _ in range(5):
            assert VERSION.match(ask(child.pid))
        assert child.ask("seen() == before") == "True"
    wait_for(lambda: child.ask("len(sys._current_frames())") == "1", "the thread of commands has a state left")


@C_ONLY
def test_commands_have_the_programs_descriptors(start_vmscope: StartVMScope) -> None:
    """A file that is closed on the thread of a command is closed in the program; and one opened there, open."""
    code = programs.source("listener/swapped_descriptor")
    child = start_vmscope(code=code)
    assert ask(child.pid, "jcmd", "Test.swap").startswith("0\n")
    assert child.ask("is_open(one), is_open(other), is_open(77)") == "(False, True, True)"


def test_no_collection_on_its_thread(start_vmscope: StartVMScope) -> None:
    code = programs.source("listener/no_collection")
    child = start_vmscope(code=code)
    assert ask(child.pid, "jcmd", "Test.make").startswith("0\n")
    assert child.ask("where <= {ident}, gc.get_threshold()") == "(True, (500, 5, 5))"


def test_a_program_that_closes_every_descriptor(start_vmscope: StartVMScope) -> None:
    """The extension's are not among them; the twin gives up, without a word."""
    code = """
import os
def close():
    os.closerange(3, 1024)
    return [os.pipe() for _ in range(20)][0]
"""
    child = start_vmscope(code=code)
    child.ask("close()")
    if native.IMPLEMENTATION == "c":
        assert VERSION.match(ask(child.pid))
    assert child.stop() == 0
    assert not path_of(child.pid).exists()


# -- fork -----------------------------------------------------------------------------------------

FORKER = programs.source("listener/forker")


@C_ONLY
def test_a_process_that_forks_all_the_time(start_python: StartPython) -> None:
    """No warning, no answer lost, whatever the moment. (The twin's thread may starve between one fork and the next.)"""
    child = start_python(FORKER, options=["-W", "error"])
    for _ in range(100):
        assert VERSION.match(ask(child.pid))
    assert child.process.poll() is None


def test_a_process_that_has_forked(start_vmscope: StartVMScope, implementation: str) -> None:
    code = "import os\ndef fork():\n    pid = os.fork()\n    return os.waitpid(pid, 0) if pid else os._exit(0)"
    child = start_vmscope(code=code)
    for _ in range(5):
        child.ask("fork()")
        assert VERSION.match(ask(child.pid))
    assert child.stop() == 0


CHILDREN = programs.source("listener/children")


@pytest.mark.parametrize("option", ["-XX:+UsePerfData", "-XX:-UsePerfData"])
def test_children_have_their_own(option: str) -> None:
    with Child(python_command(CHILDREN, option, options=["-W", "error"])) as child:
        lines = [child.readline().split() for _ in range(4)]
        assert sorted(line[0] for line in lines) == ["child"] * 3 + ["parent"]
        if native.IMPLEMENTATION == "c":
            assert [line[2] for line in lines] == ["True"] * 4
        for _, pid, _ in lines:
            assert VERSION.match(ask(int(pid)))
        child.send("")
        assert child.stop() == 0
        assert not path_of(child.pid).exists()
        for _, pid, _ in lines:
            path_of(int(pid)).unlink(missing_ok=True)


@C_ONLY
def test_a_child_that_nobody_told_us_of_holds_no_socket(start_vmscope: StartVMScope) -> None:
    """One forked by C code, which lives on: once the parent has been killed, a client is refused at once."""
    code = "import ctypes, time\ndef fork():\n    pid = ctypes.PyDLL(None).fork()\n    return pid or time.sleep(60)"
    child = start_vmscope(code=code)
    pid = int(child.ask("fork()"))
    try:
        child.kill()
        with closing(socket.socket(socket.AF_UNIX)) as client, pytest.raises(ConnectionRefusedError):
            client.connect(str(path_of(child.pid)))
    finally:
        os.kill(pid, signal.SIGKILL)
        path_of(child.pid).unlink()


@C_ONLY
def test_one_fork_alone_waits_for_a_long_command(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(
        code=SLOW_COMMAND
        + """
import os, time
def fork():
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return time.monotonic() - begin
"""
    )
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(PATIENCE)
        client.connect(str(path_of(child.pid)))
        client.sendall(b"1\0jcmd\0Test.wait\0\0\0")
        assert client.recv(100).startswith(b"0\nbegun")
        first = float(child.ask("fork()"))
        assert first < 2
        assert float(child.ask("min(fork() for _ in range(3))")) < first / 4
    assert child.stop() == 0


STEPS = programs.source("listener/steps")


def test_between_the_steps_of_a_command_all_else_comes(start_vmscope: StartVMScope, implementation: str) -> None:
    """Other commands, and forks, which neither wait nor warn, and whose children end nothing that is the parent's."""
    child = start_vmscope(code=STEPS)
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(PATIENCE)
        client.connect(str(path_of(child.pid)))
        client.sendall(b"1\0jcmd\0Test.walk\0\0\0")
        assert client.recv(100).startswith(b"0\nbegun")
        assert VERSION.match(ask(child.pid))
        took = [float(child.ask("fork()")) for _ in range(10)]
        assert sorted(took)[5] < 0.4, took
        assert VERSION.match(ask(child.pid))
        child.ask("done.append(1)")
        assert int(client.recv(100).split()[0]) > 1
    assert child.ask("ended == [os.getpid()], warned") == "(True, [])"
    assert child.stop() == 0


def test_the_end_comes_between_two_steps(start_vmscope: StartVMScope, implementation: str) -> None:
    """What a command has begun is cleaned up."""
    child = start_vmscope(code=STEPS)
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(PATIENCE)
        client.connect(str(path_of(child.pid)))
        client.sendall(b"1\0jcmd\0Test.walk\0\0\0")
        assert client.recv(100).startswith(b"0\nbegun")
        assert VERSION.match(ask(child.pid))
        assert child.ask("vmscope.stop() or ended == [os.getpid()]") == "True"
        assert client.recv(100) == b""
    assert child.stop() == 0


def test_forks_while_a_command_imports_logging() -> None:
    """Which registers hooks of its own, when os.fork has called those that come before it."""
    code = programs.source("listener/forks_and_logging")
    with Child([sys.executable, "-m", "vmscope", "run", "-c", code], merge_stderr=True) as child:
        assert child.readline() == "ready"
        assert ask(child.pid, "jcmd", "Test.load").startswith("0\n")
        assert child.process.wait(PATIENCE) == 0
        assert child.rest() == b""  # nothing of a lock that nobody has taken


def test_a_command_that_forks(start_vmscope: StartVMScope) -> None:
    """On the listener's own thread, as an agent may: the child ends with its thread, and the parent goes on."""
    code = """
import os, subprocess, sys
from vmscope.commands import registry
def fork(out):
    pid = os.fork()
    if pid == 0:
        return
    out.write(f"{os.waitpid(pid, 0)[1]} {subprocess.check_output([sys.executable, '-c', 'print(7)'], text=True)}")
registry.register(registry.Command("Test.fork", "Forks.", fork))
"""
    child = start_vmscope(code=code)
    for _ in range(3):
        assert ask(child.pid, "jcmd", "Test.fork") == "0\n0 7\n"
    assert VERSION.match(ask(child.pid))
    assert child.stop() == 0


# -- SIGQUIT --------------------------------------------------------------------------------------


def handshake(pid: int, folder: str = "/tmp") -> None:
    """What the JDK's clients do where they find no socket."""
    request = Path(folder, f".attach_pid{pid}")
    request.touch()
    try:
        os.kill(pid, signal.SIGQUIT)
        wait_for(path_of(pid).exists, "no socket came")
    finally:
        request.unlink()


@C_ONLY
@pytest.mark.parametrize("place", ["/tmp", "cwd"])
def test_the_lazy_handshake(place: str, start_python: StartPython, tmp_path: Path) -> None:
    """For a socket that a cleaner of /tmp has taken."""
    child = start_python(f"import os\nos.chdir({str(tmp_path)!r})\n{PROGRAM}\ntime.sleep(60)")
    assert caught(child.pid)
    for _ in range(3):
        path_of(child.pid).unlink()
        handshake(child.pid, "/tmp" if place == "/tmp" else str(tmp_path))
        assert VERSION.match(ask(child.pid))
    handshake(child.pid)
    assert VERSION.match(ask(child.pid)), "with the socket in its place nothing changes"


@C_ONLY
def test_sigquit_ends_the_process_as_ever(start_python: StartPython) -> None:
    child = start_python(PROGRAM.replace("vmscope.start()", "vmscope.start(); print(signal.getsignal(3))")
                         + "time.sleep(60)", ready=False)  # fmt: skip
    assert child.readline() == "0"
    child.read_until(b"ready\n")
    assert caught(child.pid)
    os.kill(child.pid, signal.SIGQUIT)
    assert child.process.wait(PATIENCE) == -signal.SIGQUIT
    assert not path_of(child.pid).exists()


HANDLED = {
    "ignored": "signal.signal(signal.SIGQUIT, signal.SIG_IGN)",
    "handled by the program": "signal.signal(signal.SIGQUIT, lambda *_: print('quit', flush=True))",
    "handled by faulthandler": "import faulthandler; faulthandler.register(signal.SIGQUIT, file=sys.stdout)",
    "left alone by -Xrs": "",
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", HANDLED)
def test_sigquit_belongs_to_the_program(how: str, when: str, start_python: StartPython) -> None:
    """Whoever handles it has it, and the socket needs no signal."""
    start = "vmscope.start('-Xrs')" if "Xrs" in how else "vmscope.start()"
    taken = f"{HANDLED[how]}\n{start}" if when == "before" else f"{start}\n{HANDLED[how]}"
    # Signals come between two calls.
    child = start_python(PROGRAM.replace("vmscope.start()", taken) + "while True: time.sleep(0.1)")
    assert VERSION.match(ask(child.pid))
    if "Xrs" in how:
        assert not caught(child.pid)
        return
    assert caught(child.pid, "SigIgn") == (how == "ignored")
    os.kill(child.pid, signal.SIGQUIT)
    if how == "handled by the program":
        assert child.readline() == "quit"
    elif how != "ignored":
        assert child.readline().startswith(("Current thread", "Thread"))
    assert VERSION.match(ask(child.pid))
    assert child.process.poll() is None


@C_ONLY
def test_an_attach_file_of_another_user_counts_for_nothing(start_python: StartPython, private_user: User) -> None:
    child = start_python(PROGRAM + "time.sleep(60)")
    request = Path(f"/tmp/.attach_pid{child.pid}")
    request.touch()
    os.chown(request, private_user.uid, private_user.gid)
    try:
        os.kill(child.pid, signal.SIGQUIT)
        assert child.process.wait(PATIENCE) == -signal.SIGQUIT
    finally:
        request.unlink()


# -- users and namespaces -------------------------------------------------------------------------


def test_users(private_user: User, start_python: StartPython) -> None:
    """Another user gets nothing, even where the socket's mode would let him; root and the user himself are served."""
    program = "import vmscope\nvmscope.start()\nprint('ready', flush=True)\nimport sys\nsys.stdin.readline()"
    asker = f"""
        import socket, sys
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect("/tmp/.java_pid" + sys.argv[1])
            client.sendall({b"1" + bytes(1) + b"jcmd" + bytes(1) + b"VM.version" + bytes(3)!r})
            print(len(client.recv(100)))
        except OSError as error:
            print(type(error).__name__)
    """
    users = {"root": start_python(program), "user": start_python(program, user=private_user, preload=PRELOAD)}
    preload = ["socket"]

    def asked(target: str, user: User | None) -> str:
        return start_python(asker, str(users[target].pid), user=user, preload=preload, ready=False).readline()

    assert asked("root", None) not in ("0", "PermissionError")
    assert asked("user", None) not in ("0", "PermissionError")
    assert asked("user", private_user) not in ("0", "PermissionError")
    assert asked("root", private_user) == "PermissionError"
    path_of(users["root"].pid).chmod(0o777)
    assert asked("root", private_user) in ("0", "BrokenPipeError", "ConnectionResetError")
    assert VERSION.match(ask(users["root"].pid))


PRELOAD = ["vmscope.runtime", "vmscope.commands.operations", "vmscope.commands.version"]


def test_a_pid_namespace() -> None:
    """The pid in the name is the namespace's, as those who look through /proc/PID/root expect."""
    code = """
        vmscope.start()
        answer(pid=os.getpid(), path=vmscope.status().attach_path, tree=tree())
        sys.stdin.readline()
    """
    mounts = "mount -t tmpfs tmpfs /tmp"
    with Child(sandbox.command(code, mounts=mounts, pid=True)) as child:
        found = json.loads(child.readline())
        assert (found["pid"], found["path"]) == (1, "/tmp/.java_pid1")
        assert "/tmp/.java_pid1" in found["tree"]
        inner = next(
            int(path.name)
            for path in Path("/proc").iterdir()
            if path.name.isdigit() and _parent(int(path.name)) == child.pid
        )
        with closing(socket.socket(socket.AF_UNIX)) as client:
            client.settimeout(PATIENCE)
            client.connect(f"/proc/{inner}/root/tmp/.java_pid1")
            client.sendall(b"1\0jcmd\0VM.version\0\0\0")
            assert client.recv(100).startswith(b"0\nCPython version")
        child.send("")
        assert child.stop() == 0


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()[1])
    except OSError:
        return 0


def test_two_namespaces_that_share_a_folder() -> None:
    """The second VM of a pid leaves the first one's socket alone, and says why it has none."""
    code = """
        second = "import vmscope; vmscope.start(); print(vmscope.status().attach_path, vmscope.status().attach_reason)"
        vmscope.start()
        run = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", second]
        print(subprocess.run(run, capture_output=True, text=True, check=True).stdout, end="")
        answer(there=os.path.exists("/tmp/.java_pid1"), path=vmscope.status().attach_path)
    """
    lines = sandbox.run(code, mounts="mount -t tmpfs tmpfs /tmp", pid=True).splitlines()
    assert lines[0].startswith("None /tmp/.java_pid1 is in use by another VM of the same pid")
    assert json.loads(lines[1]) == {"there": True, "path": "/tmp/.java_pid1"}


def test_a_sub_interpreter_has_none() -> None:
    code = """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        made = interpreters.create()
        run = getattr(interpreters, "exec", None) or interpreters.run_string
        run(made, "import vmscope; vmscope.start(); print(vmscope.status().attach_reason, flush=True)")
        interpreters.destroy(made)
        vmscope.start()
        answer(path=vmscope.status().attach_path is not None)
    """
    lines = sandbox.plain(code).splitlines()
    assert lines[0].startswith("a process has one socket, its main interpreter's")
    assert json.loads(lines[1]) == {"path": True}


# -- autostart ------------------------------------------------------------------------------------


def test_an_autostarted_process(start_python: StartPython) -> None:
    """Started on a thread with other descriptors; commands have the program's all the same."""
    child = start_python(
        """
        import os, sys, time
        from vmscope import boot
        os.dup2(1, 50)
        boot.autostart()
        print("ready", flush=True)
        for line in sys.stdin:
            print(eval(line), flush=True)
        """
    )
    wait_for(path_of(child.pid).exists)
    assert VERSION.match(ask(child.pid))
    code = """
from vmscope.commands import registry
def read(out): out.write(os.readlink("/proc/thread-self/fd/50"))
registry.register(registry.Command("Test.fd", "", read))
"""
    assert child.ask(f"exec({code!r})") == "None"
    answer = ask(child.pid, "jcmd", "Test.fd")
    assert answer == f"0\n{os.readlink(f'/proc/{child.pid}/fd/1')}"
    wait_for(lambda: child.ask("len(sys._current_frames())") == "1", "the thread of commands has a state left")
    assert child.stop() == 0
    assert not path_of(child.pid).exists()


@C_ONLY
def test_idle_it_never_wakes(start_vmscope: StartVMScope) -> None:
    child = start_vmscope("-XX:PerfDataSamplingInterval=0", "-XX:+PerfDisableSharedMem")
    assert VERSION.match(ask(child.pid))
    threads = [task for task in Path(f"/proc/{child.pid}/task").iterdir() if task.name != str(child.pid)]
    assert len(threads) == 2

    def switches() -> list[str]:
        return [re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text())[0] for task in threads]

    time.sleep(1)  # once it looks for what others have left
    before = switches()
    time.sleep(2)  # how often they wake in that time
    assert switches() == before


def test_a_program_that_forks_in_a_namespace_without_close_range() -> None:
    """A kernel that gives a thread no descriptors of its own: then they are the program's, and all else is the same."""
    if not sandbox.can_refuse():
        pytest.skip("no system calls can be refused here")
    code = """
        def sockets():
            found = set()
            for fd in os.listdir("/proc/self/fd"):
                try:
                    found.add(os.readlink(f"/proc/self/fd/{fd}"))
                except FileNotFoundError:
                    pass
            return {name for name in found if name.startswith("socket")}
        before = sockets()
        sandbox.refuse(close_range=errno.ENOSYS)
        vmscope.start()
        parents = sockets() - before
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                os._exit(bool(sockets() & parents))
            answer(status=os.waitpid(pid, 0)[1], parents=bool(parents))
        print("ready", flush=True)
        sys.stdin.readline()
    """
    with Child(sandbox.plain_command(code)) as child:
        for _ in range(20):
            assert json.loads(child.readline()) == {"status": 0, "parents": True}
        child.read_until(b"ready\n")
        assert VERSION.match(ask(child.pid))
        child.send("")
        assert child.stop() == 0
