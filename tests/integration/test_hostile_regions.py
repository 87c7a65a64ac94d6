"""Root's tools among the regions of a user who wants to hold them up, with the VMs of one who does not.

Each test is root of a machine of its own, on which the users' processes are real ones.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.attackers import can_be_silent
from tests.oracle.isolated import isolated

START = """
from tests.attackers import *
from tests import attackers
honest = honest_vm()
def listed(*arguments):
    ran = ours("ps", "--json", *arguments)
    assert (ran.status, ran.error) == (0, ""), ran
    return {row["pid"]: row for row in json.loads(ran.output)}
"""

CPU, MEMORY = (
    6.0,
    100 << 20,
)  # seconds, bytes; of the processor some hundredths, and 13 MB, are taken on an idle machine


@pytest.mark.parametrize(
    "kind", ["sparse", "dense", "restless", "long_name", "long_main", "half", "broken", "version_1", "starting"]
)
def test_a_region_that_is_made_to_hold_up(kind: str) -> None:
    """Every tool comes back soon, has read no more than there is, and shows the honest VM as it is."""
    found = isolated(
        START
        + f"""
evil = [process_of(ATTACKER, attackers.{kind}) for _ in range(3 if "{kind}" != "dense" else 1)]
commands = [["ps"], ["ps", "--json"], ["stat", str(honest)], *(["stat", str(pid)] for pid in evil),
            ["counters", str(evil[0])], ["counters", str(honest)]]
if "{kind}" != "starting":
    commands += [["jps", "-l"], ["jcmd", "-l"], ["jstat", "-gc", str(evil[0])]]
result = dict(honest=honest, evil=evil, ran=[ours(*command) for command in commands])
"""
    )
    rows = {row["pid"]: row for row in json.loads(found["ran"][1][1])}
    assert set(rows) == {found["honest"], *found["evil"]}
    assert (rows[found["honest"]]["kind"], rows[found["honest"]]["reason"]) == ("CPython", None)
    assert rows[found["honest"]]["user"] == "nobody"
    for status, output, error, cpu, memory in found["ran"]:
        assert status in (0, 1)
        assert error.count("\n") <= 1
        assert cpu < CPU, (status, output[:300], error)
        assert memory < MEMORY, (status, output[:300], error)
    assert max(map(len, found["ran"][0][1].splitlines())) < 120_000


def test_a_row_says_why() -> None:
    """Of a VM of which nothing can be read there is what the system knows, and the reason."""
    found = isolated(
        START
        + """
evil = process_of(ATTACKER, attackers.broken)
commands = [["ps"], ["ps", "--json"], ["stat", str(evil)], ["stat", "--json", str(evil)], ["counters", str(evil)]]
result = dict(honest=honest, evil=evil, ran=[ours(*command)[:3] for command in commands])
"""
    )
    (status, table, _), (_, rows, _), (stat_status, line, _), (_, stat_json, _), counters = found["ran"]
    reason = f"unknown type code: 0 (offset 44): /tmp/hsperfdata_attacker/{found['evil']}"
    assert status == 0
    head, *lines = table.splitlines()
    assert head.split()[-1] == "REASON"
    (evil,) = (line.split() for line in lines if line.split()[0] == str(found["evil"]))
    assert evil[:4] == [str(found["evil"]), "1001", "-", "-"]
    assert evil[5] == "1"  # its threads
    assert "unknown type code" in " ".join(evil)
    by_pid = {row["pid"]: row for row in json.loads(rows)}
    assert by_pid[found["honest"]]["reason"] is None
    assert by_pid[found["evil"]]["reason"] in (reason, reason.partition(": /tmp")[0])
    assert by_pid[found["evil"]]["threads"] == 1
    assert stat_status == 1
    assert line.splitlines()[0].split()[-1] == "REASON"
    assert "unknown type code" in line
    assert json.loads(stat_json)["threads"] == 1
    assert "unknown type code" in json.loads(stat_json)["reason"]
    assert (counters[0], counters[1]) == (1, "")
    assert "unknown type code" in counters[2]


def test_files_that_are_none() -> None:
    """Fifos, sockets, links, leases, files that are as large as can be, and that change their size."""
    found = isolated(
        START
        + """
import fcntl, signal, socket
def body():
    folder = "/tmp/hsperfdata_attacker"
    os.mkdir(folder)
    os.mkfifo(f"{folder}/{os.getpid()}")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{folder}/{os.getppid()}")
    os.mkdir(f"{folder}/77")
    os.symlink("/dev/zero", f"{folder}/78")
    os.symlink("/proc/self/mem", f"{folder}/79")
    os.symlink("/", "/tmp/hsperfdata_root1")
    os.symlink("/proc/self/task", "/tmp/hsperfdata_root2")
def huge():
    publish(region(identity(), used=2**31 - 1, count=2**31 - 1), size=1 << 30)
def larger():
    publish(region(identity(), used=2**31 - 1, count=2**31 - 1), size=1 << 44)
def leased():
    fd = publish(region(identity()), lock=False)
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
def changing():
    fd = publish(region(identity()))
    if os.fork() == 0:
        attackers._libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        while True:
            for size in (4096, 0, 8192, 100 << 20):
                os.ftruncate(fd, size)
for each in (body, huge, larger, leased, changing):
    process_of(ATTACKER, each)
result = dict(honest=honest, ran=[[listed()[honest]["kind"], *ours("jps"), *ours("jcmd", "-l")] for _ in range(8)])
"""
    )
    for kind, *ran in found["ran"]:
        assert kind == "CPython"
        assert [ran[0], ran[5]] == [0, 0]
        assert re.search(rf"^{found['honest']} ", ran[1], re.MULTILINE)
        assert ran[3] < CPU
        assert ran[4] < MEMORY


def test_files_under_the_pid_of_another_users_vm() -> None:
    """They are not taken for it, by no tool, however new they are."""
    found = isolated(
        START
        + """
def body():
    for user in ("attacker", "a", "zz"):
        publish(region(identity("stolen.py")), user=user, name=str(honest), lock=user == "a")
process_of(ATTACKER, body)
commands = [["ps"], ["stat", str(honest)], ["counters", str(honest), "sun.rt.javaCommand"], ["jps", "-l"],
            ["jcmd", "-l"], ["jstat", "-gc", str(honest)], ["jcmd", str(honest), "PerfCounter.print"]]
result = dict(honest=honest, ran=[ours(*command)[:3] for command in commands])
"""
    )
    for status, output, error in found["ran"]:
        assert (status, error) == (0, ""), found["ran"]
        assert "stolen" not in output
    assert found["ran"][0][1].split()[9:12] == [str(found["honest"]), "nobody", "CPython"]


def test_a_hard_link_to_another_users_region() -> None:
    """Shows nothing as the linker's, where the system lets him link at all."""
    found = isolated(
        START
        + """
with open("/proc/sys/fs/protected_hardlinks") as file:
    protected = file.read().strip()
vm = next(iter(listed().values()))
def body():
    os.mkdir("/tmp/hsperfdata_0attacker")
process_of(ATTACKER, body)
os.link(vm["path"], f"/tmp/hsperfdata_0attacker/{honest}")      # as he may where protected_hardlinks is 0
result = [listed()[honest]["user"], vm["user"]]
"""
    )
    assert found[0] == found[1] != "0attacker"


def test_very_many_names() -> None:
    """A hundred directories of one user's, of a thousand names each: what is honest is all there."""
    found = isolated(
        START
        + """
def body():
    publish(region(identity()), user="000", name="1")
    for folder in range(100):
        os.makedirs(f"/tmp/hsperfdata_{folder:03}", exist_ok=True)
        for name in range(1_000):
            os.link("/tmp/hsperfdata_000/1", f"/tmp/hsperfdata_{folder:03}/{name + 100_000}")
process_of(ATTACKER, body)
result = dict(honest=honest, rows=list(listed()), ran=ours("ps"))
"""
    )
    assert found["rows"] == [found["honest"]]
    assert found["ran"][3] < CPU / 2
    assert found["ran"][4] < MEMORY


# -- a file system that never answers -------------------------------------------------------------

needs_fuse = pytest.mark.skipif(not can_be_silent(), reason="needs root and /dev/fuse")
SILENT = """
import contextlib
def tools(*pids):
    with contextlib.ExitStack() as stack:
        for path in paths:
            stack.enter_context(silent_file_system(path))
        commands = [["ps", "--json"], ["jps", "-l"], ["jcmd", "-l"], ["stat", str(honest)], ["counters", str(honest)]]
        commands += [["stat", str(pid)] for pid in pids]
        return [ours(*command, timeout=40)[:3] for command in commands]
"""


def check_silence(found: dict[str, object]) -> None:
    ran = found["ran"]
    assert isinstance(ran, list)
    rows = {row["pid"]: row for row in json.loads(ran[0][1])}
    assert rows[found["honest"]]["kind"] == "CPython"
    assert [status for status, _, _ in ran[:5]] == [0] * 5
    assert [output for _, output, _ in ran[1:3] if str(found["honest"]) not in output] == []
    for status, output, error in ran[5:]:
        assert (status, output) == (1, "")
        assert error.startswith("vmscope: ")


@needs_fuse
def test_a_directory_on_a_file_system_that_never_answers() -> None:
    check_silence(
        isolated(
            START
            + SILENT
            + """
paths = ["/tmp/hsperfdata_attacker", "/tmp/hsperfdata_more"]
for path in paths:
    os.mkdir(path)
    os.chown(path, ATTACKER, ATTACKER)
evil = process_of(ATTACKER, lambda: None)
result = dict(honest=honest, ran=tools(evil))
"""
        )
    )


@needs_fuse
def test_a_file_on_a_file_system_that_never_answers() -> None:
    check_silence(
        isolated(
            START
            + SILENT
            + """
evil = process_of(ATTACKER, attackers.sparse)
paths = [f"/tmp/hsperfdata_attacker/{evil}"]
result = dict(honest=honest, ran=tools(evil))
"""
        )
    )


@needs_fuse
@pytest.mark.parametrize("place", ["/tmp", "/tmp/hsperfdata_attacker"])
def test_a_container_with_a_file_system_that_never_answers(place: str) -> None:
    check_silence(
        isolated(
            START
            + SILENT
            + f"""
os.mkdir("/tmp/hsperfdata_attacker")
made = subprocess.Popen(
    ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /tmp; mkdir -p {place}; echo made; sleep 600"],
    stdout=subprocess.PIPE)
made.stdout.readline()
import signal
fuse = os.fork()
if fuse == 0:
    attackers._libc.prctl(1, signal.SIGKILL, 0, 0, 0)
    os.setns(os.open(f"/proc/{{made.pid}}/ns/mnt", os.O_RDONLY), 0)
    with silent_file_system("{place}"):
        os.write(2, b"")
        open("/dev/shm/ready", "w").close()
        signal.pause()
from tests.wait import wait_for
wait_for(lambda: os.path.exists("/dev/shm/ready"))
paths = []
try:
    result = dict(honest=honest, ran=tools(made.pid))
finally:
    os.unlink("/dev/shm/ready")
    made.kill()
    os.kill(fuse, 9)
"""
        )
    )
