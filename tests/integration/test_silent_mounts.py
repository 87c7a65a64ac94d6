"""A file system that never answers, which another user has mounted under a name that a VM or a client is about to use.

Each test is root of a machine of its own. Whoever asks the file system for anything stays for ever.
"""

from __future__ import annotations

import pytest

from tests.attackers import can_be_silent
from tests.oracle.isolated import isolated

pytestmark = pytest.mark.skipif(not can_be_silent(), reason="needs root and /dev/fuse")

START = """
import contextlib, select, signal
from tests.attackers import *
from tests import attackers

os.chmod("/tmp", 0o1777)
PATIENCE = 30


@contextlib.contextmanager
def silent(path, kind="directory", uid=ATTACKER):
    # A user's mount, as fusermount makes it: on what is that user's
    if kind == "directory":
        os.mkdir(path)
    else:
        open(path, "x").close()
    os.chown(path, uid, uid)
    with silent_file_system(path, uid):
        yield
    os.rmdir(path) if kind == "directory" else os.unlink(path)


def python(code, name="", native=facts.get("native", "1")):
    # Runs a VM. `name`: a path, with its pid, at which a silent file system is mounted before it begins. What it has
    # printed and its status; where it does not come back, only that: it may stay for ever.
    read, write = os.pipe()
    output, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(read, 1)
        os.dup2(told, 1)
        os.execve(sys.executable, [sys.executable, "-c", code], {**os.environ, "VMSCOPE_NATIVE": native})
    os.close(told)
    with silent(name.format(pid)) if name else contextlib.nullcontext():
        os.write(write, b".")
        pidfd = os.pidfd_open(pid)
        if not select.select([pidfd], [], [], PATIENCE)[0]:
            os.kill(pid, signal.SIGKILL)
            return ["it hangs", None]
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return [os.read(output, 1 << 16).decode(), status]


def sleeper(uid):
    # A process without a VM
    return process_of(uid, lambda: None)


def client(*arguments):
    try:
        ran = ours(*arguments, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return ["it hangs", "", ""]
    return [ran.status, ran.output, ran.error]


SAY = "import os, time, vmscope; vmscope.start(); status = vmscope.status(); "
"""


@pytest.fixture
def native(implementation: str) -> str:
    return "0" if implementation == "python" else "1"


def test_a_start_in_whose_directory_nobody_answers(native: str) -> None:
    output, status = isolated(
        START
        + """
with silent("/tmp/hsperfdata_root"):
    result = python(SAY + "print(status.path, status.reason, status.attach_path, sep=chr(10))")
""",
        native=native,
    )
    assert status == 0, output
    path, reason, attach_path = output.splitlines()
    assert path == "None"
    assert reason.startswith(
        "/tmp/hsperfdata_root is taken: another user has mounted a file system there, which may never answer"
    )
    assert attach_path.startswith("/tmp/.java_pid")


def test_a_start_under_whose_socket_s_name_nobody_answers(native: str) -> None:
    output, status = isolated(
        START
        + """
result = python(SAY + "print(os.getpid(), status.attach_path, status.attach_reason, status.path, sep=chr(10))",
                "/tmp/.java_pid{}")
""",
        native=native,
    )
    assert status == 0, output
    pid, attach_path, reason, path = output.splitlines()
    assert attach_path == "None"
    assert reason == f"/tmp/.java_pid{pid} is taken: a file system is mounted there"
    assert path == f"/tmp/hsperfdata_root/{pid}"


@pytest.mark.parametrize("kind", ["directory", "file", "socket"])
def test_a_sweep_past_a_name_where_nobody_answers(native: str, kind: str) -> None:
    """It is done when what a killed VM left is gone; then the VM forks, answers and ends as ever."""
    found = isolated(
        START
        + f"""
import socket
pid = 4_000_000
names = [f"/tmp/.java_pid{{pid - shift}}" for shift in range(8)]  # before and after what was left, whatever the order
with contextlib.ExitStack() as stack:
    for name in names:
        if "{kind}" == "socket":
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(name)
            os.chown(name, ATTACKER, ATTACKER)
            stack.enter_context(silent_file_system(name))
        else:
            stack.enter_context(silent(name, "{kind}"))
    for shift in range(8):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(f"/tmp/.java_pid{{pid - 100 - shift}}")
        os.utime(f"/tmp/.java_pid{{pid - 100 - shift}}", times=(0, 0))
    left = [f"/tmp/.java_pid{{pid - 100 - shift}}" for shift in range(8)]
    result = python(SAY + '''
while any(map(os.path.exists, %r)):
    time.sleep(0.01)  # in a root without the tests
child = os.fork()
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
import socket
with socket.socket(socket.AF_UNIX) as client:
    client.connect(status.attach_path)
    client.sendall(bytes([49, 0]) + b"properties" + bytes(4))
    print(client.makefile("rb").read(1))
''' % left)
""",
        native=native,
    )
    assert found == ["7\nb'0'\n", 0]


@pytest.mark.parametrize("command", ["cmd", "attach"])
def test_a_client_of_a_process_whose_socket_never_answers(command: str) -> None:
    status, output, error = isolated(
        START
        + f"""
pid = sleeper(HONEST)
with silent(f"/tmp/.java_pid{{pid}}"):
    result = [*client("{command}", str(pid), *(["VM.version"] if "{command}" == "cmd" else [])), pid]
    result = [result[0], result[1], result[2].replace(str(pid), "PID")]
"""
    )
    assert (status, output) == (1, "")
    path = "/proc/PID/root/tmp/.java_pidPID"
    assert error == (
        f"vmscope: process PID is not asked: {path} is taken: a file system is mounted there"
        f" (umount -l {path}, as root)\n"
    )


def test_a_client_of_a_process_whose_socket_is_a_user_s_alone() -> None:
    """A file system without allow_other: the error says where and of whom."""
    status, output, error = isolated(
        START
        + """
source = attackers._libc.mount
attackers._libc = type("Libc", (), dict(
    mount=lambda a, b, c, d, e: source(a, b, c, d, e.replace(b",allow_other", b"")),
    prctl=attackers._libc.prctl, umount2=attackers._libc.umount2))
pid = sleeper(HONEST)
with silent(f"/tmp/.java_pid{pid}"):
    result = client("cmd", str(pid), "VM.version")
    result[2] = result[2].replace(str(pid), "PID")
"""
    )
    assert (status, output) == (1, "")
    assert error.startswith("vmscope: process PID is not asked: /proc/PID/root/tmp/.java_pidPID is taken")


def test_a_client_that_sweeps_past_an_old_folder_where_nobody_answers() -> None:
    """It asks a Python without a VM, and looks for what earlier clients left."""
    status, output, error = isolated(
        START
        + """
python = subprocess.Popen([sys.executable, "-c", "print(flush=True)\\nwhile True: pass"], stdout=subprocess.PIPE)
python.stdout.readline()
with silent("/tmp/vmscope-attach-4000000-1"):
    from vmscope.attach import script
    from vmscope.attach.target import Target
    pid = os.fork()
    if pid == 0:
        script.Script(Target(python.pid)).remove()
        os._exit(0)
    pidfd = os.pidfd_open(pid)
    done = bool(select.select([pidfd], [], [], PATIENCE)[0])
    os.kill(pid, signal.SIGKILL)
python.kill()
result = [done, sorted(name for name in os.listdir("/tmp") if name.startswith("vmscope-")), ""]
"""
    )
    assert status is True
    assert (output, error) == ([], "")


def test_a_note_where_nobody_answers() -> None:
    """For root's client, which makes one, and for the VM that gets a SIGQUIT."""
    found = isolated(
        START
        + """
from vmscope.attach.note import Note
from vmscope.attach.target import Target
from vmscope.errors import AccessDenied
pid = sleeper(HONEST)
with silent(f"/tmp/.attach_pid{pid}"):
    child = os.fork()
    if child == 0:
        try:
            with Note(Target(pid)):
                pass
        except AccessDenied as error:
            os._exit(7 if "mounted" in str(error) or "cross-device" in str(error).lower() else 8)
        os._exit(9)
    pidfd = os.pidfd_open(child)
    done = bool(select.select([pidfd], [], [], PATIENCE)[0])
    if not done:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if done else "it hangs"
result = [status, python(SAY + "import signal; os.kill(os.getpid(), signal.SIGQUIT); time.sleep(100)",
                         "/tmp/.attach_pid{}", native="1")]
"""
    )
    assert found == [7, ["", -3]]


@pytest.mark.parametrize("kind", ["tmpfs", "bind", "fuse of root's"])
def test_a_directory_that_root_has_mounted_is_used(native: str, kind: str) -> None:
    """As the volume of a container. One of FUSE is asked, and root's is the one that may keep it waiting."""
    found = isolated(
        START
        + f"""
os.mkdir("/tmp/hsperfdata_root", 0o755)
if "{kind}" == "tmpfs":
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", "/tmp/hsperfdata_root"], check=True)
elif "{kind}" == "bind":
    os.mkdir("/tmp/volume", 0o755)
    subprocess.run(["mount", "--bind", "/tmp/volume", "/tmp/hsperfdata_root"], check=True)
if "{kind}" == "fuse of root's":
    from vmscope import mounts
    with silent_file_system("/tmp/hsperfdata_root", 0):
        place = os.open("/tmp/hsperfdata_root", os.O_PATH)
        result = [mounts.answers(place), None]
else:
    result = python(SAY + "print(status.path == f'/tmp/hsperfdata_root/{{os.getpid()}}')")
""",
        native=native,
    )
    assert found == ([True, None] if kind == "fuse of root's" else ["True\n", 0])


def test_a_client_of_a_container_whose_tmp_never_answers() -> None:
    status, output, error = isolated(
        START
        + """
made = subprocess.Popen(["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /tmp; echo made; exec sleep 600"],
                        stdout=subprocess.PIPE)
made.stdout.readline()
ready, told = os.pipe()
fuse = os.fork()
if fuse == 0:
    attackers._libc.prctl(1, signal.SIGKILL, 0, 0, 0)
    os.setns(os.open(f"/proc/{made.pid}/ns/mnt", os.O_RDONLY), 0)
    with silent_file_system("/tmp"):
        os.write(told, b".")
        signal.pause()
os.read(ready, 1)
result = client("cmd", str(made.pid), "VM.version")
result[2] = result[2].replace(str(made.pid), "PID")
made.kill()
os.kill(fuse, signal.SIGKILL)
"""
    )
    assert (status, output) == (1, "")
    assert error.startswith(
        "vmscope: process PID is not asked: /proc/PID/root/tmp is on a file system that may never answer"
    )


def test_a_client_of_a_container_whose_tmp_is_a_link_to_where_nobody_answers() -> None:
    status, output, error = isolated(
        START
        + """
os.makedirs("/tmp/root/silent")
os.symlink("/tmp/root/silent", "/tmp/root/tmp")  # a path of ours: there the kernel goes from our root
ready, told = os.pipe()
with silent_file_system("/tmp/root/silent"):
    target = os.fork()
    if target == 0:
        attackers._libc.unshare(0x00020000)  # CLONE_NEWNS
        os.chroot("/tmp/root")
        os.write(told, b".")
        signal.pause()
    os.read(ready, 1)
    result = client("cmd", str(target), "VM.version")
result[2] = result[2].replace(str(target), "PID")
os.kill(target, signal.SIGKILL)
"""
    )
    assert (status, output) == (1, "")
    assert error.startswith("vmscope: process PID is not asked: /proc/PID/root/tmp is on a file system"), error


def test_a_program_on_a_user_s_file_system_is_not_root_s() -> None:
    """Nor is that asked, which would say what its user likes, or nothing."""
    found = isolated(
        START
        + """
os.chmod("/tmp", 0o755)
with silent("/tmp/home"):
    paths = ["/tmp/home/python3", "/tmp/home", "/tmp/program"]
    code = f"from vmscope.attach import remote; print(*map(remote._is_roots, {paths}))"
    open("/tmp/program", "w").close()
    os.chmod("/tmp/program", 0o755)
    result = python(code)
"""
    )
    assert found == ["False False True\n", 0]
