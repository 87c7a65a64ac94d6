"""Who may attach: the process's user and group, if they are all that it is and has been, and root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import vmscope
from tests import programs
from tests.conftest import StartPython
from tests.integration.test_listener import VERSION, ask, path_of
from tests.support import BECOME, PATIENCE, Child, User, python_command
from tests.wait import wait_for

PRELOAD = (
    "import ctypes, socket, vmscope.runtime, vmscope.process_status\n"
    "import vmscope.commands.operations, vmscope.commands.version\n"
)
CALLS = "prctl = ctypes.CDLL(None).prctl\nDUMPABLE, KEEP_CAPABILITIES = 4, 8\n"
TARGET = """
vmscope.start()
print("ready", flush=True)
import os, sys
for line in sys.stdin:
    print(eval(line), flush=True)
"""
# Connects where it is told, sends what it is told and prints the answer, or what was raised instead of one.
CLIENT = """
import sys
client = socket.socket(socket.AF_UNIX)
try:
    client.connect("/tmp/.java_pid" + sys.argv[1])
    client.sendall(b"1\\0jcmd\\0VM.ver")
except OSError as error:
    client = error
print("ready", flush=True)
sys.stdin.readline()
try:
    if isinstance(client, OSError):
        raise client
    client.sendall(b"sion\\0\\0\\0")
    print(client.recv(1000), flush=True)
except OSError as error:
    print(type(error).__name__, flush=True)
"""
SERVED = r"b'0\nCPython version"
DENIED = r"b'-1\nPermission denied: the process has changed its user, or its privileges, since the client connected\n'"
NOTHING = ("b''", "ConnectionResetError", "BrokenPipeError")

pytestmark = pytest.mark.usefixtures("implementation")


def become(user: User, group: int | None = None) -> str:
    return BECOME.format(uid=user.uid, gid=user.gid if group is None else group, name=user.name)


@contextmanager
def client(pid: int, code: str = "") -> Iterator[Child]:
    """One that has connected and sent the half of its request; `code` makes it somebody's."""
    with Child(python_command(f"{PRELOAD}{code}{CLIENT}", str(pid))) as child:
        child.read_until(b"ready\n")
        yield child


def said(child: Child) -> str:
    """What the client is told once it has sent the rest."""
    return child.ask("")


def target(start_python: StartPython, code: str) -> Child:
    """A process that `code` has made what it is; whoever may not attach could connect to it."""
    child = start_python(PRELOAD + CALLS + code + TARGET)
    path_of(child.pid).chmod(0o777)
    return child


# As the user, for whom a client of the same user and group asks, but for one thing.
PRIVILEGED = {
    "real user": "os.setresgid({gid}, {gid}, {gid}); os.setresuid(0, {uid}, {uid}); prctl(DUMPABLE, 1)\n",
    "saved user": "os.setresgid({gid}, {gid}, {gid}); os.setresuid({uid}, {uid}, 0); prctl(DUMPABLE, 1)\n",
    "seteuid": "os.setegid({gid}); os.seteuid({uid}); prctl(DUMPABLE, 1)\n",
    "saved group": "os.setresgid({gid}, {gid}, 0); os.setresuid({uid}, {uid}, {uid}); prctl(DUMPABLE, 1)\n",
    "group": "os.setresgid(0, 0, 0); os.setresuid({uid}, {uid}, {uid}); prctl(DUMPABLE, 1)\n",
    "changed its user": "os.setresgid({gid}, {gid}, {gid}); os.setresuid({uid}, {uid}, {uid})\n",
    "capabilities": "prctl(KEEP_CAPABILITIES, 1); os.setresgid({gid}, {gid}, {gid})\n"
    "os.setresuid({uid}, {uid}, {uid}); prctl(DUMPABLE, 1)\n",
}


def test_the_same_user_and_group(private_user: User, start_python: StartPython) -> None:
    child = target(start_python, become(private_user))
    with client(child.pid, become(private_user)) as asking:
        assert said(asking).startswith(SERVED)


@pytest.mark.parametrize("what", PRIVILEGED)
def test_privileges_are_for_root_alone(what: str, private_user: User, start_python: StartPython) -> None:
    code = PRIVILEGED[what].format(uid=private_user.uid, gid=private_user.gid)
    child = target(start_python, f"import os\nos.setgroups([])\n{code}")
    with client(child.pid, become(private_user)) as asking:
        assert said(asking) in NOTHING
    assert VERSION.match(ask(child.pid)), "root"


def test_a_client_of_another_group(private_user: User, start_python: StartPython) -> None:
    """As after newgrp: HotSpot refuses it too."""
    child = target(start_python, become(private_user))
    with client(child.pid, become(private_user, group=65534)) as asking:
        assert said(asking) in NOTHING


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="such a program is loaded without what is preloaded")
def test_a_setuid_program(private_user: User, start_python: StartPython) -> None:
    """Even when it has become its user altogether."""
    folder = Path(f"/var/tmp/vmscope-test-{os.getpid()}")
    folder.mkdir()
    try:
        program = folder / "python"
        shutil.copy(sys._base_executable, program)  # type: ignore[attr-defined]
        program.chmod(0o4755)
        code = f"import os\nassert os.geteuid() == 0\n{PRELOAD}{CALLS}{become(private_user)}{TARGET}"
        user = ["setpriv", f"--reuid={private_user.uid}", f"--regid={private_user.gid}", "--clear-groups"]
        env = {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": ":".join(sys.path)}
        with Child([*user, str(program), "-c", code], env=env) as child:
            child.read_until(b"ready\n")
            with client(child.pid, become(private_user)) as asking:
                assert said(asking) in NOTHING
            assert VERSION.match(ask(child.pid)), "root"
    finally:
        shutil.rmtree(folder)


def test_a_client_that_connects_while_privileges_are_put_aside(private_user: User, start_python: StartPython) -> None:
    """And whose request comes when they are there again: it has nothing of them."""
    child = target(start_python, f"import os\nos.setegid({private_user.gid})\nos.seteuid({private_user.uid})\n")
    with client(child.pid, become(private_user)) as asking:
        assert child.ask("os.seteuid(0)") == "None"
        assert said(asking) in NOTHING


def test_privileges_that_come_between_connection_and_request(private_user: User, start_python: StartPython) -> None:
    child = target(start_python, become(private_user))
    with client(child.pid, become(private_user)) as asking:
        assert VERSION.match(ask(child.pid)), "the client has been accepted"
        assert child.ask("prctl(DUMPABLE, 0)") == "0"
        assert said(asking) == DENIED


KEEP_THE_GIL = "prctl(DUMPABLE, 0) or ctypes.PyDLL(None).system(b'echo kept; read x')"  # until the next line


@pytest.mark.skipif(sysconfig.get_config_var("Py_GIL_DISABLED") == 1, reason="there is no GIL")
@pytest.mark.parametrize("operation", ["threaddump", "getversion"])
def test_privileges_that_come_before_what_needs_no_gil(
    operation: str, private_user: User, start_python: StartPython, implementation: str
) -> None:
    """Such requests are answered by the thread that reads them: it asks too."""
    if implementation == "python":
        pytest.skip("the twin needs the GIL for all of it")
    child = target(start_python, become(private_user))
    code = CLIENT.replace("jcmd\\0VM.ver", operation[:4]).replace("sion", f"{operation[4:]}\\0")
    with Child(python_command(f"{PRELOAD}{become(private_user)}{code}", str(child.pid))) as asking:
        asking.read_until(b"ready\n")
        assert VERSION.match(ask(child.pid)), "the client has been accepted"
        assert child.ask(KEEP_THE_GIL) == "kept"
        asking.send("")
        for _ in range(3):  # by then it would have been answered
            assert "without the GIL" in ask(child.pid, "threaddump"), "root"
        assert child.ask("x") == "0"
        assert asking.readline() == DENIED


STEPS = programs.source("credentials/steps")


# Asks for it: what the first step says, then what the next ones do.
WALK_CLIENT = (
    CLIENT.replace("VM.ver", "Test.")
    .replace("sion", "walk")
    .replace("recv(1000)", "recv(8), flush=True)\n    print(client.recv(1000)")
)


def test_privileges_that_come_between_two_steps(private_user: User, start_python: StartPython) -> None:
    """What the command has begun is cleaned up."""
    child = target(start_python, STEPS + become(private_user))
    with Child(python_command(f"{PRELOAD}{become(private_user)}{WALK_CLIENT}", str(child.pid))) as asking:
        asking.read_until(b"ready\n")
        assert said(asking) == r"b'0\nbegun\n'"
        assert child.ask("prctl(DUMPABLE, 0)") == "0"
        assert asking.readline() == "b''"
    assert child.ask("ended") == "[True]"


def problem_of(pid: int) -> str:
    """What `vmscope ps` shows of it."""
    with vmscope.vm(pid) as vm:
        return vm.problem


# The process becomes the user, and one thread of it keeps its capabilities, as that is said by thread.
KEEPER = """
import os, threading
def become():
    os.setgroups([])
    os.setresgid({gid}, {gid}, {gid})
    os.setresuid({uid}, {uid}, {uid})
def keep():
    prctl(KEEP_CAPABILITIES, 1)
    kept.set()
    over.wait()
kept, changed, over = threading.Event(), threading.Event(), threading.Event()
starter = threading.Thread(target=lambda: changed.wait() and vmscope.start(), daemon=True)
starter.start()
"""
KEEPING = {
    "main thread, started after": "keep_in_main(); become(); changed.set(); starter.join()\n",
    "main thread, started before": "vmscope.start(); keep_in_main(); become()\n",
    "another thread": "threading.Thread(target=keep, daemon=True).start(); kept.wait(); become()\n",
}


@pytest.mark.parametrize("how", KEEPING)
def test_capabilities_of_one_thread_are_for_root_alone(
    how: str, private_user: User, start_python: StartPython, implementation: str
) -> None:
    """The threads that carry requests out have none of them, but all memory is theirs."""
    code = KEEPER.format(uid=private_user.uid, gid=private_user.gid) + "keep_in_main = lambda: prctl(8, 1)\n"
    child = target(start_python, f"{code}{KEEPING[how]}prctl(DUMPABLE, 1)\n")
    with client(child.pid, become(private_user)) as asking:
        assert said(asking) in NOTHING
    assert VERSION.match(ask(child.pid)), "root"
    said_why = child.ask("vmscope.status().problems")
    assert "root alone can attach: thread " in said_why
    assert (f"thread {child.pid} has other ids" in said_why) == how.startswith("main thread")
    if implementation == "c" or not how.endswith("before"):  # by its name the twin opens its file, which is root's
        wait_for(lambda: problem_of(child.pid).startswith("root alone can attach: thread "))
    child.ask("over.set()")


DROP = """
# Of the main thread alone, as the kernel has it for each thread.
import os, struct

libc = ctypes.CDLL(None)


def drop_capabilities():
    assert libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24)) == 0


def set_inheritable(bits):
    head, data = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    assert libc.capget(head, data) == 0
    words = list(struct.unpack("6I", data.raw))
    words[2] = bits
    assert libc.capset(head, struct.pack("6I", *words)) == 0


def drop_groups():
    assert libc.syscall({"x86_64": 116, "aarch64": 159}[os.uname().machine], 0, None) == 0  # setgroups


def drop_from_the_bounding_set():
    assert prctl(24, 10, 0, 0, 0) == 0  # PR_CAPBSET_DROP


def gain_nothing_by_exec():
    assert prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS


def filter_calls():
    allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(allow)))
    assert prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP
"""
DROPS = {
    "capabilities": ("", "drop_capabilities()", "capabilities"),
    "inheritable capabilities": ("set_inheritable(1 << 10)\n", "set_inheritable(0)", "capabilities"),
    "groups": ("os.setgroups([54321])\n", "drop_groups()", "groups"),
    "bounding set": ("", "drop_from_the_bounding_set()", "capabilities"),
    "NoNewPrivs": ("", "gain_nothing_by_exec()", "NoNewPrivs"),
    "seccomp": ("", "filter_calls()", "Seccomp"),
    "one more filter": ("filter_calls()\n", "filter_calls()", "Seccomp"),
}


@pytest.mark.parametrize("what", DROPS)
def test_rights_that_the_main_thread_has_no_longer_are_for_nobody(what: str, start_python: StartPython) -> None:
    """Vmscope's threads have them still, until they are started anew."""
    before, drop, named = DROPS[what]
    child = target(start_python, DROP + before)
    assert VERSION.match(ask(child.pid))
    assert child.ask(drop) == "None"
    for request in (("jcmd", "VM.version"), ("threaddump",), ("getversion",)):
        assert ask(child.pid, *request).startswith("-1\nPermission denied: threads of vmscope have rights")
    why = f"no client can attach: threads of vmscope have rights that the main thread does not have ({named}); "
    assert why in child.ask("vmscope.status().problems")
    wait_for(lambda: problem_of(child.pid).startswith(why))
    assert child.ask("vmscope.stop() or vmscope.start()") == "None"
    assert child.ask("vmscope.status().problems") == "()"
    assert VERSION.match(ask(child.pid))
    wait_for(lambda: problem_of(child.pid) == "")


def test_rights_that_the_main_thread_drops_between_two_steps(start_python: StartPython) -> None:
    child = target(start_python, STEPS + DROP)
    with Child(python_command(f"{PRELOAD}{WALK_CLIENT}", str(child.pid))) as asking:
        asking.read_until(b"ready\n")
        assert said(asking) == r"b'0\nbegun\n'"
        assert child.ask("gain_nothing_by_exec()") == "None"
        assert asking.readline() == "b''"
    assert child.ask("ended") == "[True]"


def test_a_process_without_a_descriptor_left_is_asked(start_python: StartPython, implementation: str) -> None:
    """The rights of threads stand in files."""
    if implementation == "python":
        pytest.skip("the twin has the program's descriptors, and needs one for the client")
    child = target(start_python, "import os\ntaken = []\n")
    assert VERSION.match(ask(child.pid)), "what that imports"
    take = "exec('try:\\n while True: taken.append(os.dup(0))\\nexcept OSError: pass')"
    assert child.ask(take) == "None"
    assert VERSION.match(ask(child.pid))


def test_a_child_of_a_thread_with_other_rights(start_python: StartPython) -> None:
    """It has that thread alone, and threads of vmscope's that this one has started."""
    code = """
import os, threading
def fork():
    prctl(38, 1, 0, 0, 0)
    pids.append(os.fork())
    if not pids[0]:
        threading.Event().wait()
pids = []
"""
    child = target(start_python, code)
    assert child.ask("(lambda t: t.start() or t.join())(threading.Thread(target=fork))") == "None"
    pid = int(child.ask("pids[0]"))
    try:
        wait_for(path_of(pid).exists)
        assert VERSION.match(ask(pid))
    finally:
        os.kill(pid, signal.SIGKILL)


def test_root_in_a_user_namespace_is_not_root(private_user: User, start_python: StartPython) -> None:
    """The kernel tells us who a client is as our own namespace sees it."""
    child = target(start_python, "")
    code = become(private_user) + (
        "CLONE_NEWUSER = 0x10000000\n"
        "if ctypes.CDLL(None).unshare(CLONE_NEWUSER):\n    print('ready\\nnone', flush=True)\n    raise SystemExit\n"
        "open('/proc/self/setgroups', 'w').write('deny')\n"
        f"open('/proc/self/uid_map', 'w').write('0 {private_user.uid} 1')\n"
        "assert os.geteuid() == 0\n"
    )
    with client(child.pid, code) as asking:
        answer = said(asking)
    if answer == "none":
        pytest.skip("no user namespaces")
    assert answer in NOTHING


IN_A_NAMESPACE = """
import os, struct

libc, user, group = ctypes.CDLL(None), os.getuid(), os.getgid()
assert libc.unshare(0x10000000) == 0  # CLONE_NEWUSER
open("/proc/self/setgroups", "w").write("deny")
for name, own in ("uid_map", user), ("gid_map", group):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(f"{number} {own} 1")
assert libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24)) == 0
prctl(DUMPABLE, 1)
assert os.getresuid() == (number,) * 3
"""


@pytest.mark.parametrize("number", [1000, 65534])
def test_who_has_no_id_in_the_namespace_is_not_nobody(
    number: int, private_user: User, start_python: StartPython
) -> None:
    """Everybody from outside looks like user 65534 there: to a process that is that user, like itself."""
    if subprocess.run(["unshare", "--user", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces")
    child = target(start_python, become(private_user) + f"number = {number}\n" + IN_A_NAMESPACE)
    if child.ask("1").startswith("none"):
        pytest.skip("no user namespaces")
    with client(
        child.pid, "import os\nos.setgroups([])\nos.setresgid(*[54321] * 3)\nos.setresuid(*[54321] * 3)\n"
    ) as asking:
        assert said(asking) in NOTHING
    with client(child.pid, become(private_user)) as asking:
        answer = said(asking)
    assert answer in NOTHING if number == 65534 else answer.startswith(SERVED)


def test_who_has_no_id_is_whom_the_kernel_says(private_user: User, start_python: StartPython) -> None:
    """`kernel.overflowuid` need not be 65534. Here a file says so in its place."""
    if subprocess.run(["unshare", "--user", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces")
    hidden = (
        "import os\nlibc = ctypes.CDLL(None)\nassert libc.unshare(0x20000) == 0  # CLONE_NEWNS\n"
        "assert libc.mount(b'none', b'/', None, 1 << 18 | 1 << 14, None) == 0  # MS_PRIVATE | MS_REC\n"
        "with open('/dev/shm/vmscope-overflow', 'w') as file:\n    file.write('1000')\n"
        "assert libc.mount(b'/dev/shm/vmscope-overflow', b'/proc/sys/kernel/overflowuid', None, 4096, None) == 0\n"
        "os.unlink('/dev/shm/vmscope-overflow')\n"
    )
    child = target(start_python, hidden + become(private_user) + "number = 1000\n" + IN_A_NAMESPACE)
    with client(child.pid, become(private_user)) as asking:
        assert said(asking) in NOTHING


def test_user_nobody_of_the_first_namespace(start_python: StartPython) -> None:
    if Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
        pytest.skip("this is no first user namespace")
    code = "import os\nos.setgroups([])\nos.setresgid(*[65534] * 3)\nos.setresuid(*[65534] * 3)\n"
    folder = Path("/tmp/hsperfdata_nobody")
    there = folder.exists()
    child = target(start_python, f"{code}prctl(DUMPABLE, 1)\n")
    with client(child.pid, code) as asking:
        assert said(asking).startswith(SERVED)
    assert child.stop() == 0
    if not there:
        with suppress(OSError):  # another test's process has its region there
            folder.rmdir()


def test_what_the_tool_says(private_user: User, start_python: StartPython) -> None:
    code = PRIVILEGED["saved user"].format(uid=private_user.uid, gid=private_user.gid)
    child = target(start_python, f"import os\nos.setgroups([])\n{code}")
    path_of(child.pid).chmod(0o600)
    code = f"from vmscope.cli import main\nraise SystemExit(main(['cmd', '{child.pid}', 'VM.version']))"
    run = subprocess.run(
        python_command(code, user=private_user, preload=["vmscope.cli.cmd", "vmscope.mounts", "vmscope.native"]),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 1
    assert "root alone may ask it" in run.stderr
