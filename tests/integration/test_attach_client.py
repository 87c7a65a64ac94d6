"""The attach protocol's client beside JVMs, processes that a signal would end, and hostile servers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import programs
from tests.conftest import StartJVM, StartPython, StartVMScope
from tests.oracle.isolated import isolated
from tests.oracle.jdk_tools import vmscope
from tests.support import BECOME, JDK, JVM, PATIENCE, Child, User
from tests.wait import wait_for
from vmscope import errors
from vmscope.attach.client import Client, connect
from vmscope.attach.target import Target
from vmscope.cli import cmd
from vmscope.commands import arguments

ROOT = os.geteuid() == 0


def version_of(pid: int) -> str:
    with connect(pid) as client, client.execute("jcmd", "VM.version") as reply:
        assert reply.status == 0
        return reply.read().decode()


def notes(pid: int) -> list[str]:
    """Files that tell a VM of a client."""
    places = (f"/proc/{pid}/cwd", "/tmp")
    return [path for path in (f"{place}/.attach_pid{pid}" for place in places) if os.path.exists(path)]


# -- JVMs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [17, 21, 25])
def test_a_jvm_opens_its_socket_when_asked(start_jvm: StartJVM, version: int) -> None:
    jdk = JDK.find(version)
    if jdk is None:
        pytest.skip(f"no JDK {version}: run make jdks")
    jvm = start_jvm("-Xmx32m", jdk=jdk)
    path = f"/tmp/.java_pid{jvm.pid}"
    assert not os.path.exists(path)
    first = version_of(jvm.pid)
    assert f"\nJDK {version}." in first
    assert notes(jvm.pid) == []
    assert version_of(jvm.pid) == first
    os.unlink(path)  # as a cleaner of /tmp does
    if version > 17:  # 17 does not notice
        assert version_of(jvm.pid) == first


@pytest.mark.parametrize("option", ["-XX:-UsePerfData", "-XX:+PerfDisableSharedMem"])
def test_a_jvm_without_a_region(start_jvm: StartJVM, option: str) -> None:
    assert "OpenJDK" in version_of(start_jvm(option, "-Xmx32m").pid)


def test_a_jvm_whose_directory_is_gone(jdk: JDK, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    before = os.getcwd()
    os.chdir(place)
    try:
        jvm = JVM(jdk, "-Xmx32m")
    finally:
        os.chdir(before)
    with jvm:
        place.rmdir()
        assert "OpenJDK" in version_of(jvm.pid)


def test_a_jvm_that_would_end_by_the_signal(start_jvm: StartJVM) -> None:
    """-Xrs leaves SIGQUIT at its default: such a JVM opens its socket at its start, and gets no signal."""
    jvm = start_jvm("-Xrs", "-Xmx32m")
    target = Target(jvm.pid)
    assert not target.catches
    with pytest.raises(errors.NotAttachable, match="does not handle SIGQUIT"):
        target.wake()
    assert "OpenJDK" in version_of(jvm.pid)


def test_a_jvm_that_was_told_not_to(start_jvm: StartJVM) -> None:
    jvm = start_jvm("-XX:+DisableAttachMechanism", "-Xmx32m")
    with pytest.raises(errors.NotAttachable, match="does not take part in attach") as caught:
        connect(jvm.pid)
    assert "-XX:+DisableAttachMechanism" in caught.value.hint
    assert notes(jvm.pid) == []
    run = vmscope("cmd", str(jvm.pid), "VM.version")
    assert (run.returncode, run.stdout) == (1, "")
    assert jvm.process.poll() is None


def stop(pid: int) -> None:
    """SIGSTOP, and waits until every thread stands."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    wait_for(lambda: not any("\nState:\tT" not in (task / "status").read_text() for task in tasks.iterdir()))


def test_a_stopped_jvm(start_jvm: StartJVM) -> None:
    jvm = start_jvm("-Xmx32m")
    stop(jvm.pid)
    with pytest.raises(errors.AttachTimeout, match="is stopped"):
        connect(jvm.pid, timeout=0.3)
    assert notes(jvm.pid) == []
    os.kill(jvm.pid, signal.SIGCONT)
    version_of(jvm.pid)
    stop(jvm.pid)
    with (
        connect(jvm.pid, silence=0.3) as client,
        pytest.raises(errors.AttachTimeout, match="is stopped") as caught,
    ):
        client.execute("jcmd", "VM.version")
    assert caught.value.hint == f"kill -CONT {jvm.pid}"
    os.kill(jvm.pid, signal.SIGCONT)
    assert "OpenJDK" in version_of(jvm.pid)


def test_a_jvm_that_dies_in_the_middle(start_jvm: StartJVM) -> None:
    jvm = start_jvm("-Xmx32m")
    with connect(jvm.pid) as client:
        jvm.kill()
        with pytest.raises(errors.AttachError, match="ended while it was asked"):
            client.execute("jcmd", "VM.version")
    with pytest.raises(errors.NoSuchProcess):
        connect(jvm.pid)


def test_long_requests_take_version_2(jdk: JDK, start_jvm: StartJVM) -> None:
    jvm = start_jvm("-Xmx32m")
    name = "x" * 5000
    with connect(jvm.pid) as client:
        if jdk.version < 25:
            with pytest.raises(errors.RequestError, match="1024 bytes"):
                client.execute("jcmd", f"help {name}")
        else:
            with client.execute("jcmd", f"help {name}") as reply:
                assert name in reply.read().decode()
        with pytest.raises(errors.RequestError, match="NUL"):
            client.execute("jcmd", "a\0b")


# -- what a signal would end ----------------------------------------------------------------------

REACTIONS = {
    "default": "signal.signal(signal.SIGQUIT, signal.SIG_DFL)",
    "ignored": "signal.signal(signal.SIGQUIT, signal.SIG_IGN)",
    "handled": "signal.signal(signal.SIGQUIT, lambda *_: print('caught', flush=True))",
    "faulthandler": "import faulthandler; faulthandler.register(signal.SIGQUIT)",
    "blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGQUIT])",
}


@pytest.mark.parametrize("name", REACTIONS)
def test_what_is_no_vm_gets_no_signal(start_python: StartPython, name: str) -> None:
    """Whatever it does with SIGQUIT, a process that is no VM goes on as before, and every client says why."""
    child = start_python(
        f"import signal, sys\n{REACTIONS[name]}\nprint('ready', flush=True)\nsys.stdin.readline()\nprint('bye')"
    )
    with pytest.raises(errors.NotAttachable, match=f"process {child.pid} .*SIGQUIT was not sent") as caught:
        connect(child.pid)
    assert "vmscope run" in caught.value.hint
    for line in (["cmd", str(child.pid), "VM.version"], ["jcmd", str(child.pid), "VM.version"]):
        run = vmscope(*line)
        assert run.returncode == 1
        assert len(run.stderr.splitlines()) == 1
        assert "SIGQUIT was not sent" in run.stderr
    assert notes(child.pid) == []
    child.send("")
    assert child.rest() == b"bye\n"
    assert child.process.wait(PATIENCE) == 0


def test_no_such_process() -> None:
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    for pid in (ended.pid, 2**31 - 1, 2**31, 0):  # a zombie, pids that cannot be
        with pytest.raises(errors.NoSuchProcess):
            connect(pid)
    ended.wait()
    run = vmscope("cmd", str(ended.pid), "VM.version")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith(f"vmscope: Process not found: there is no process {ended.pid}")


def test_a_pid_that_is_used_again_gets_no_signal(start_python: StartPython) -> None:
    """The signal goes by a descriptor of the process, if that started when the one that was looked at did."""
    child = start_python("import signal\nsignal.signal(signal.SIGQUIT, print)\nprint('ready', flush=True)\ninput()")
    target = Target(child.pid)
    assert target.catches
    child.kill()
    with pytest.raises(errors.NoSuchProcess):
        target.wake()
    taken = Target(os.getpid())
    taken._start = b"1"  # as if it had been another process then
    assert not taken.alive
    with pytest.raises(errors.NoSuchProcess):
        taken.wake()


# -- hostile servers ------------------------------------------------------------------------------


class Server(Child):
    """A process that listens where a VM would, and does with a client what `serve(client)` says."""

    def __init__(self, serve: str, setup: str = "") -> None:
        code = f"""
import os, socket, sys, time
path = f"/tmp/.java_pid{{os.getpid()}}"
if os.path.lexists(path):
    os.unlink(path)  # of a process that was killed
server = socket.socket(socket.AF_UNIX)
server.bind(path)
os.chmod(path, 0o600)
{setup}
server.listen(1)
def serve(client):
    {serve}
print("ready", flush=True)
while True:
    client, _ = server.accept()
    try:
        serve(client)
    except OSError:
        pass
    client.close()
"""
        super().__init__([sys.executable, "-c", code])
        self.path = f"/tmp/.java_pid{self.pid}"
        try:
            self.read_until(b"ready\n")
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        super().kill()
        if os.path.lexists(self.path):
            os.unlink(self.path)


@pytest.fixture
def hostile() -> Iterator[type[Server]]:
    made: list[Server] = []

    class Kept(Server):
        def __init__(self, serve: str, setup: str = "") -> None:
            super().__init__(serve, setup)
            made.append(self)

    yield Kept
    for server in made:
        server.kill()


def refused(client: Client, kind: type[errors.VMScopeError], words: str) -> None:
    with pytest.raises(kind, match=words), client.execute("jcmd", "VM.version") as reply:
        reply.read()


def test_a_server_that_never_answers(hostile: type[Server]) -> None:
    server = hostile("time.sleep(600)")
    with connect(server.pid, silence=0.3) as client:
        refused(client, errors.AttachTimeout, "has said nothing for 0.3 s")
    run = vmscope("cmd", "--timeout=300ms", str(server.pid), "VM.version")
    assert run.returncode == 1
    assert "--timeout=SECONDS waits longer" in run.stderr


def test_a_server_that_stops_in_the_middle(hostile: type[Server]) -> None:
    server = hostile("client.sendall(b'0\\nhalf of'); time.sleep(600)")
    run = vmscope("cmd", "--timeout=300ms", str(server.pid), "VM.version")
    assert (run.returncode, run.stdout) == (1, "half of")
    assert "has said nothing for 0.3 s" in run.stderr


def test_a_server_that_dies_in_the_middle(hostile: type[Server]) -> None:
    server = hostile("client.sendall(b'0\\nhalf of'); time.sleep(0.1); os._exit(1)")  # the client has read the half
    run = vmscope("cmd", str(server.pid), "VM.version")
    assert (run.returncode, run.stdout) == (1, "half of")
    assert f"process {server.pid} ended" in run.stderr


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("b''", "without an answer"),
        ("b'hello\\n'", "does not answer by the attach protocol: b'hello"),
        ("b'9' * 1000000", "does not answer by the attach protocol"),
        ("b'\\n'", "does not answer by the attach protocol"),
        ("b'--1\\n'", "does not answer by the attach protocol"),
        ("b'\\xb2\\n'", "does not answer by the attach protocol"),
    ],
)
def test_a_server_that_speaks_something_else(hostile: type[Server], answer: str, words: str) -> None:
    server = hostile(f"client.recv(99); client.sendall({answer})")
    with connect(server.pid) as client:
        refused(client, errors.AttachError, words)


def test_an_answer_without_an_end(hostile: type[Server]) -> None:
    """It is handed on piece by piece; what reads it says when it is enough."""
    server = hostile("client.sendall(b'0\\n')\n    while True: client.sendall(b'x' * 65536)")
    with connect(server.pid) as client:
        with client.execute("jcmd", "VM.version") as reply:
            assert reply.read(1000) == b"x" * 1000
        with client.execute("jcmd", "VM.version") as reply:
            total = 0
            for part in reply:
                assert len(part) <= 65536
                total += len(part)
                if total > 10_000_000:
                    break
    command = f"{sys.executable} -m vmscope cmd {server.pid} VM.version | head -c 3"
    run = subprocess.run(["sh", "-c", command], capture_output=True, timeout=PATIENCE, check=False)
    assert (run.stdout, run.stderr) == (b"xxx", b"")


def test_a_failure_without_an_end(hostile: type[Server]) -> None:
    server = hostile("client.sendall(b'1\\n')\n    while True: client.sendall(b'x' * 65536)")
    with connect(server.pid) as client, client.execute("jcmd", "VM.version") as reply:
        assert len(str(reply.failure())) == 65536


def test_a_server_whose_queue_is_full(hostile: type[Server], monkeypatch: pytest.MonkeyPatch) -> None:
    server = hostile("print('in', flush=True); time.sleep(600)")
    waiting: list[socket.socket] = []

    def wait() -> None:
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].setblocking(False)
        waiting[-1].connect(server.path)

    try:
        wait()
        assert server.readline() == "in"
        wait()
        wait()
        with pytest.raises(BlockingIOError):
            wait()
        monkeypatch.setattr("vmscope.attach.client.HANDSHAKE", 0.2)
        with pytest.raises(errors.AttachTimeout, match="no more clients"):
            connect(server.pid)
    finally:
        for one in waiting:
            one.close()


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ("os.chmod(path, 0o666)", "open to others .mode 666"),
        ("os.chmod(path, 0o640)", "open to others .mode 640"),
        ("os.chown(path, 12345, 12345)", "belongs to user 12345"),
        ("os.rename(path, path + '.x'); os.symlink(path + '.x', path)", "is not a socket"),
        ("os.unlink(path); open(path, 'w').close(); os.chmod(path, 0o600)", "is not a socket"),
        ("os.unlink(path); os.mkfifo(path, 0o600)", "is not a socket"),
        ("os.unlink(path); os.mkdir(path, 0o700)", "is not a socket"),
    ],
)
def test_a_socket_that_is_not_to_be_trusted(hostile: type[Server], setup: str, words: str) -> None:
    """Nothing is sent, and no signal either."""
    if "chown" in setup and not ROOT:
        pytest.skip("needs root")
    server = hostile("print(client.recv(99), flush=True)", setup)
    try:
        with pytest.raises(errors.InsecureSocket, match=words) as caught:
            connect(server.pid)
        assert caught.value.path is not None
        assert caught.value.path.endswith(f".java_pid{server.pid}")
        assert server.process.poll() is None
    finally:
        if os.path.isdir(server.path) and not os.path.islink(server.path):
            os.rmdir(server.path)
        if os.path.exists(server.path + ".x"):
            os.unlink(server.path + ".x")


def test_a_socket_that_another_process_answers(hostile: type[Server], start_python: StartPython) -> None:
    other = start_python("print('ready', flush=True)\ninput()")
    path = f"/tmp/.java_pid{other.pid}"
    server = hostile("print(client.recv(99), flush=True)")
    os.rename(server.path, path)
    try:
        with pytest.raises(errors.InsecureSocket, match=f"is answered by process {server.pid}"):
            connect(other.pid)
    finally:
        os.unlink(path)


def test_a_socket_that_was_left_behind(start_python: StartPython) -> None:
    """Of a process that was killed, by one that has its pid now: nobody listens, and no signal is sent."""
    child = start_python("print('ready', flush=True)\ninput()")
    path = f"/tmp/.java_pid{child.pid}"
    if os.path.exists(path):
        os.unlink(path)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    os.chmod(path, 0o600)
    if ROOT:
        os.chown(path, 12345, -1)  # another user's even
    try:
        with pytest.raises(errors.NotAttachable, match="SIGQUIT was not sent"):
            connect(child.pid)
    finally:
        os.unlink(path)


def test_many_clients_of_one_jvm(start_jvm: StartJVM) -> None:
    """Together they open its socket, and all are answered."""
    jvm = start_jvm("-Xmx32m")
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.append(version_of(jvm.pid))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(said) == 20
    assert len(set(said)) == 1
    assert notes(jvm.pid) == []


# -- users and namespaces -------------------------------------------------------------------------

ASK = """
import os, sys, pwd
from vmscope.attach.client import connect
from vmscope.errors import VMScopeError
import vmscope.reader.machine, vmscope.reader.attachment
{become}
for pid in sys.argv[1:]:
    try:
        with connect(int(pid)) as client, client.execute("jcmd", "VM.version") as reply:
            print(reply.status, reply.read().split()[0].decode())
    except VMScopeError as error:
        print(type(error).__name__, error)
"""


def test_another_user(private_user: User, jdk: JDK, start_jvm: StartJVM, start_vmscope: StartVMScope) -> None:
    """Root asks everybody's VM; a user is refused by root's, and asks its own."""
    roots = start_jvm("-Xmx32m")
    roots_python, their_python = start_vmscope(), start_vmscope(user=private_user)
    script = (
        BECOME.format(uid=private_user.uid, gid=private_user.gid, name=private_user.name)
        + "import sys\nos.chdir('/')\nos.execv(sys.argv[1], sys.argv[1:])"
    )
    keytool = ["sun.security.tools.keytool.Main", "-importpass", "-keystore", "/nonexistent/none"]
    java = os.path.realpath(jdk.tool("java"))
    theirs = Child([sys.executable, "-c", script, java, "-Xmx32m", *keytool], merge_stderr=True)
    with theirs:
        theirs.read_until(b"password:")
        become = BECOME.format(uid=private_user.uid, gid=private_user.gid, name=private_user.name)

        def ask() -> list[str]:
            code = ASK.format(become=become)
            pids = [str(child.pid) for child in (roots, roots_python, theirs, their_python)]
            command = [sys.executable, "-c", code, *pids]
            run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
            assert run.returncode == 0, run.stderr
            return run.stdout.splitlines()

        refusals = [
            f"AccessDenied Permission denied: process {child.pid} belongs to another user"
            for child in (roots, roots_python)
        ]
        expected = [*refusals, "0 OpenJDK", "0 CPython"]
        assert ask() == expected
        for child in (roots, theirs):
            assert "OpenJDK" in version_of(child.pid)
        for child in (roots_python, their_python):
            assert "CPython" in version_of(child.pid)
        assert ask() == expected  # now that all their sockets are there


CONTAINER = programs.source("attach_client/container")


@pytest.mark.parametrize("kind", ["java", "python"])
def test_a_container(jdk: JDK, kind: str) -> None:
    """A VM with a pid and a /tmp of its own: from outside by its pid there, from inside by its own."""
    keytool = ["sun.security.tools.keytool.Main", "-importpass", "-keystore", "/proc/none"]
    commands = {
        "java": [jdk.tool("java"), "-Xmx32m", *keytool],
        "python": [sys.executable, "-m", "vmscope", "run", "-c", "input('password:')", *keytool],
    }
    outside, listed, inside = isolated(
        r"""
        import re
        container = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
             sys.executable, "-c", facts["container"], *facts["command"]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert container.stdout.readline() == "ready\n"
        listed = ours("jcmd", "-l")
        # unshare's own pid may be the JVM's in there, and then both are listed, as the JDK's jcmd does
        pid = max(re.findall(r"(?m)^\d+", listed[1]), key=int)
        outside = [ours("cmd", pid, "VM.version")]
        outside += [ours("jcmd", pid, "VM.version"), run(facts["jcmd"], pid, "VM.version")]
        print("x", file=container.stdin, flush=True)
        inside = eval(container.stdout.readline())
        container.stdin.close()
        result = [outside, listed, inside]
        """,
        command=commands[kind],
        jcmd=jdk.tool("jcmd"),
        container=CONTAINER,
    )
    assert listed[1].endswith(" sun.security.tools.keytool.Main -importpass -keystore /proc/none\n")
    assert outside[0][0] == inside[0] == 0
    assert outside[0][1] == inside[1]
    assert {"java": "OpenJDK", "python": "CPython"}[kind] in inside[1]
    assert outside[1] == outside[2]


# -- Python VMs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reaction", ["pass", *(REACTIONS[name] for name in ("default", "ignored", "handled"))])
def test_a_python_vm_is_ready_from_its_start(start_vmscope: StartVMScope, reaction: str) -> None:
    """Whatever it does with SIGQUIT, for it needs none; and when its socket has been cleaned away, it gets none."""
    vm = start_vmscope(code=f"import signal\n{reaction}")
    assert version_of(vm.pid).startswith("CPython version")
    run = vmscope("cmd", str(vm.pid), "VM.uptime")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.endswith(" s\n")
    os.unlink(f"/tmp/.java_pid{vm.pid}")
    with pytest.raises(errors.NotAttachable, match="its socket is gone"):
        connect(vm.pid)
    assert vm.ask("1 + 1") == "2"


def test_a_python_vm_that_was_told_not_to(start_vmscope: StartVMScope) -> None:
    vm = start_vmscope("-XX:+DisableAttachMechanism")
    for command in (["cmd", str(vm.pid), "VM.version"], ["attach", str(vm.pid)]):
        run = vmscope(*command)
        assert run.returncode == 1
        assert "start it without -XX:+DisableAttachMechanism" in run.stderr


# From the first call of libc's on no other thread has the GIL.
HOLDS_GIL = "import ctypes, signal, sys; libc = ctypes.PyDLL(None); sys.setswitchinterval(100)"


def test_a_python_vm_that_holds_the_gil(start_vmscope: StartVMScope) -> None:
    """It takes the command, says nothing for the time limit, which is an error, and answers the next one later."""
    vm = start_vmscope(code=HOLDS_GIL)
    vm.send("libc.write(1, b'in\\n', 3) and libc.usleep(1_500_000)")
    assert vm.readline() == "in"
    run = vmscope("cmd", "--timeout=300ms", str(vm.pid), "VM.version")
    assert run.returncode == 1
    assert "has said nothing for 0.3 s; it may still be at it" in run.stderr
    assert version_of(vm.pid).startswith("CPython version")  # as soon as the GIL is free


def test_a_python_vm_that_dies_in_the_middle(start_vmscope: StartVMScope) -> None:
    vm = start_vmscope(code=HOLDS_GIL)
    vm.send("libc.write(1, b'in\\n', 3) and signal.setitimer(signal.ITIMER_REAL, 0.3) and libc.sleep(60)")
    assert vm.readline() == "in"
    with connect(vm.pid) as client:
        refused(client, errors.AttachError, "ended while it was asked")


# -- agents ---------------------------------------------------------------------------------------

AGENT_C = """
#include <jvmti.h>
#include <stdio.h>
JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved) {
    FILE *file = fopen(options, "w");
    if (file == NULL) return 7;
    fputs("attached", file);
    fclose(file);
    return 0;
}
"""
AGENT_JAVA = """
public class Agent {
    public static void agentmain(String options) throws Exception {
        java.nio.file.Files.writeString(java.nio.file.Path.of(options), "attached");
    }
}
"""


def test_a_native_agent_in_a_jvm(jdk17: JDK, start_jvm: StartJVM, tmp_path: Path) -> None:
    include = jdk17.home / "include"
    if not (include / "jvmti.h").exists() or shutil.which("gcc") is None:
        pytest.skip("needs jvmti.h and gcc")
    (tmp_path / "agent.c").write_text(AGENT_C)
    library = tmp_path / "libagent.so"
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        f"-I{include}",
        f"-I{include}/linux",
        f"{tmp_path}/agent.c",
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True, timeout=PATIENCE)
    jvm = start_jvm("-Xmx32m", jdk=jdk17)
    seen = tmp_path / "seen=1"  # only the first sign of equality ends the agent's name
    run = vmscope("attach", str(jvm.pid), f"{library}={seen}")
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{jvm.pid} has loaded {library}\n", "")
    assert seen.read_text() == "attached"
    failed = vmscope("attach", str(jvm.pid), f"{library}=/nonexistent/file")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "says: return code: 7" in failed.stderr
    missing = vmscope("attach", str(jvm.pid), "/none.so")
    assert missing.returncode == 1
    assert "/none.so" in missing.stderr
    assert len(missing.stderr.splitlines()) == 1


def test_a_java_agent_in_a_jvm(jdk17: JDK, start_jvm: StartJVM, tmp_path: Path) -> None:
    if not jdk17.has("javac") or not jdk17.has("jar"):
        pytest.skip(f"no javac in {jdk17.bin}")
    (tmp_path / "Agent.java").write_text(AGENT_JAVA)
    (tmp_path / "manifest").write_text("Agent-Class: Agent\n")
    for command in (["javac", "Agent.java"], ["jar", "cfm", "agent.jar", "manifest", "Agent.class"]):
        subprocess.run([jdk17.tool(command[0]), *command[1:]], cwd=tmp_path, check=True, timeout=2 * PATIENCE)
    jvm = start_jvm("-Xmx32m", jdk=jdk17)
    run = subprocess.run(
        [sys.executable, "-m", "vmscope", "attach", str(jvm.pid), f"agent.jar={tmp_path}/seen"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{jvm.pid} has loaded agent.jar\n", "")
    assert (tmp_path / "seen").read_text() == "attached"


def test_an_agent_in_a_python_vm(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    (tmp_path / "helpful.py").write_text(
        "def agent_on_attach(vm, options):\n    global told\n    told = options\n    return int(options == 'bad')\n"
    )
    vm = start_vmscope("-XX:+EnableDynamicAgentLoading", env={"PYTHONPATH": str(tmp_path)})
    run = vmscope("attach", str(vm.pid), "helpful=a=b,c")
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{vm.pid} has loaded helpful\n", "")
    assert vm.ask("sys.modules['helpful'].told") == "a=b,c"
    failed = vmscope("attach", str(vm.pid), "helpful=bad")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "return code: 1" in failed.stderr
    missing = vmscope("attach", str(vm.pid), "no.such.agent")
    assert missing.returncode == 1
    assert len(missing.stderr.splitlines()) == 1
    assert "no.such.agent was not loaded" in missing.stderr


# -- the command line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], ""),
        (["VM.version"], "VM.version"),
        (["Thread.print -l"], "Thread.print -l"),
        (["GC.heap_dump", "-all", "/tmp/a b"], 'GC.heap_dump -all "/tmp/a b"'),
        (["X", "key=a b", "other=c"], 'X key="a b" other=c'),
        (["X", 'a "b" c'], "X 'a \"b\" c'"),
        (["X", ""], 'X ""'),
        (["X", "a b=c d"], 'X "a b=c d"'),
    ],
)
def test_arguments_are_quoted(words: list[str], line: str) -> None:
    assert cmd.line(words) == line


def test_quotes_of_both_kinds() -> None:
    with pytest.raises(errors.CommandLineError, match="cannot be quoted"):
        cmd.line(["X", "a 'b' \"c\""])


@pytest.mark.parametrize(
    "words",
    [[], ["-1"], ["--nonsense", "1"], ["--timeout", "1"], ["--timeout=x", "1"], ["--timeout=-1", "1"]],
)
def test_wrong_arguments(words: list[str]) -> None:
    for command in ("cmd", "attach"):
        run = vmscope(command, *words)
        assert run.returncode == 2
        assert run.stdout == ""
        assert run.stderr.startswith("vmscope: ")
        assert len(run.stderr.splitlines()) == 1


def test_a_command_with_blanks_and_one_that_fails(jvm: JVM, tmp_path: Path) -> None:
    path = tmp_path / "a dump"
    run = vmscope("cmd", str(jvm.pid), "GC.heap_dump", str(path))
    assert run.returncode == 0, run.stderr
    assert path.stat().st_size > 1000
    again = vmscope("cmd", str(jvm.pid), "nonsense")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == (
        "vmscope: java.lang.IllegalArgumentException: Unknown diagnostic command 'nonsense' "
        f"(vmscope cmd {jvm.pid} help lists the commands)\n"
    )
    for words in (["--help"], ["GC.heap_dump", "-h"], ["GC.heap_dump /a -help"]):
        asked = vmscope("cmd", str(jvm.pid), *words)  # also of JVMs that do not know it
        assert (asked.returncode, asked.stderr) == (0, "")
        assert (
            asked.stdout == vmscope("cmd", str(jvm.pid), "help", *(["GC.heap_dump"] if "GC" in words[0] else [])).stdout
        )
    forever = vmscope("cmd", "--timeout=0", str(jvm.pid))
    assert forever.returncode == 0
    assert "VM.version" in forever.stdout


def test_commands_by_name(jvm: JVM, tmp_path: Path) -> None:
    script = tmp_path / "many" / "shop.py"
    script.parent.mkdir()
    script.write_text("import sys\nprint('ready', flush=True)\nsys.stdin.read()\n")
    name = f"{tmp_path.name}/many"
    command = [sys.executable, "-m", "vmscope", "run", str(script), "an argument"]
    with Child(command) as one, Child(command) as two:
        one.read_until(b"ready\n")
        alone = vmscope("cmd", name, "VM.uptime")
        two.read_until(b"ready\n")
        both = vmscope("cmd", name, "VM.version")
        failed = vmscope("cmd", name, "nonsense")
        everybody = vmscope("cmd", "0", "VM.uptime")
        none = vmscope("cmd", "argument", "VM.uptime")
    assert (both.returncode, both.stderr, failed.returncode) == (0, "", 1)
    assert [line for line in both.stdout.splitlines() if line[:-1].isdigit()] == [
        f"{pid}:" for pid in sorted((one.pid, two.pid))
    ]
    assert alone.stdout.endswith(" s\n")
    assert failed.stderr.count("Unknown diagnostic command 'nonsense'") == 2
    assert {f"{each.pid}:" for each in (one, two, jvm)} <= set(everybody.stdout.splitlines())
    assert (none.returncode, none.stdout) == (1, "")
    assert none.stderr == "vmscope: no VM that can be asked is called 'argument' (vmscope ps lists the VMs)\n"


def test_a_first_question_does_not_wait(start_jvm: StartJVM) -> None:
    """The handshake takes what the JVM takes, not a fixed nap: the best of several is far below 100 ms."""
    took = []
    for _ in range(3):
        jvm = start_jvm("-Xmx32m", "-XX:+UseSerialGC")
        begin = time.monotonic()
        connect(jvm.pid).close()
        took.append(time.monotonic() - begin)
        jvm.kill()
    assert min(took) < 5


@pytest.mark.parametrize(
    ("word", "argument"),
    [
        ("/a b", "/a b"),
        ("'/a b'", "/a b"),
        ('"/a b"', "/a b"),
        ("/a=b c", "/a=b c"),
        ("/a=b", "/a=b"),
        ("it's a", "it's a"),
    ],
)
def test_a_word_stays_a_word(word: str, argument: str) -> None:
    """Those with quotes of their own, as jcmd needs them, too."""
    text = cmd.line(["GC.heap_dump", word, "-gz=1"])
    assert list(arguments.words(text.partition(" ")[2])) == [(argument, None), ("-gz", "1")]


@pytest.mark.parametrize("word", ["name=a b", "name='a b'", 'name="a b"'])
def test_an_option_s_value_stays_one(word: str) -> None:
    assert list(arguments.words(cmd.line(["x", word]).partition(" ")[2])) == [("name", "a b")]
