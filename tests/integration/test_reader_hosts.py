"""Reading real VMs: two JDKs, two users, containers, pids that two processes share, pids that are used again."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import textwrap
import time
from collections.abc import Callable
from typing import Any

import pytest

import vmscope
from tests import programs
from tests.conftest import StartJVM, StartPython, StartVMScope
from tests.oracle.isolated import isolated
from tests.support import JDK, JVM, Child, User
from vmscope.reader import candidates


@pytest.mark.parametrize("version", [17, 25])
def test_a_live_jvm(start_jvm: StartJVM, version: int) -> None:
    jdk = JDK.find(version)
    if jdk is None:
        pytest.skip(f"no JDK {version}")
    jvm = start_jvm("-XX:+UseSerialGC", "-Dreader.test=yes", jdk=jdk)
    with vmscope.vm(jvm.pid) as vm:
        assert (vm.pid, vm.kind, vm.state, vm.main) == (jvm.pid, "HotSpot", "live", "Main")
        assert vm.version.startswith(f"{version}.")
        assert "-Dreader.test=yes" in vm.vm_arguments
        assert vm.alive
        before = vm.counters["sun.gc.collector.1.invocations"].value
        jvm.collect(3)
        assert vm.counters["sun.gc.collector.1.invocations"].value == vm.values()["sun.gc.collector.1.invocations"]
        assert isinstance(before, int)
        after = vm.values()["sun.gc.collector.1.invocations"]
        assert isinstance(after, int)
        assert after >= before + 3
        assert jvm.pid in {found.pid for found in candidates()}
        jvm.kill()
        assert [vm.alive, vm.state] == [False, "stale"]


def test_jvms_that_are_just_starting(jdk: JDK) -> None:
    """Read from the first moment on: whole, or not there, or not accessible yet; never something wrong."""
    looks = early = 0
    for _ in range(4):
        with subprocess.Popen([jdk.tool("java"), "-Xshare:auto", "-version"], stderr=subprocess.DEVNULL) as child:
            while child.poll() is None:
                try:
                    with vmscope.vm(child.pid) as vm:
                        taken = vm.snapshot()
                        early += not taken.accessible
                        looks += 1
                        assert taken.values.get("sun.rt.createVmBeginTime", 1) != -1
                        assert [name for name in taken.values if not name.isprintable()] == []
                except vmscope.VMScopeError:
                    time.sleep(0.0005)  # it is written anew just now
    assert looks > 0


@pytest.fixture
def reader_of(start_python: StartPython) -> Callable[[User], Child]:
    """A Python process of a user that has vmscope's reader at hand and evaluates what it is sent."""

    def start(user: User) -> Child:
        code = programs.source("reader_hosts/start")
        return start_python(code, user=user, preload=["vmscope.runtime", "vmscope.reader", "vmscope.cli.ps"])

    return start


def test_another_users_vm(
    start_vmscope: StartVMScope, reader_of: Callable[[User], Child], private_user: User, jvm: JVM
) -> None:
    """Root reads it; that user sees its own only, and is told why for the others."""
    mine = start_vmscope()
    theirs = reader_of(private_user)
    with vmscope.vm(theirs.pid) as vm:
        assert (vm.user, vm.kind, vm.state) == (private_user.name, "CPython", "live")
        assert vm.values()["vmscope.implementation"] in ("c", "python")
    assert {theirs.pid, mine.pid, jvm.pid} <= {vm.pid for vm in vmscope.vms()}
    assert theirs.ask("[vm.pid for vm in reader.vms()]") == f"[{theirs.pid}]"
    listed = json.loads(theirs.ask("[found.pid for found in reader.candidates()]"))
    assert theirs.pid in listed  # and perhaps what other tests' VMs of this user left
    assert not {mine.pid, jvm.pid} & set(listed)
    for pid in (mine.pid, jvm.pid, os.getpid(), 1):
        refusal = theirs.ask(f"refusal({pid})")
        assert refusal == f"AccessDenied: Operation not permitted: process {pid} belongs to another user"
    assert theirs.ask(f"ps.main(['{mine.pid}'])") == "1"


# -- machines of the test's own -------------------------------------------------------------------

HOST = """
# In an empty /tmp and a pid namespace of its own, which is the host here.
from vmscope import errors, reader


def started(*command):
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = b""
    while not (b"password:" in said or b"ready" in said):
        more = os.read(child.stdout.fileno(), 4096)
        assert more, said
        said += more
    return child


JAVA = [
    facts.get("java"),
    "-XX:+UseSerialGC",
    "-Xmx32m",
    "-Xlog:disable",
    "-Xlog:all=off",
    "sun.security.tools.keytool.Main",
    "-importpass",
    "-keystore",
    "/nonexistent/none.p12",
]
PYTHON = [
    sys.executable,
    "-c",
    "import sys, vmscope; vmscope.start(); print('ready', vmscope.status().reason, flush=True); sys.stdin.read()",
]


def container(command, tmp="", pid=None):
    # pid: the namespace's own process of that number, by starting others before it
    # a sub-directory, since JDK 17's jps takes directories of one inode number for the same
    setup = f"mount -t tmpfs none /mnt; mkdir -m 1777 /mnt/tmp; mount --bind /mnt/tmp {tmp};" if tmp else ":;"
    setup += f"echo {pid - 1} > /proc/sys/kernel/ns_last_pid;" if pid else ""
    # two commands, so that the shell does not become the program
    return started(
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        setup + '"$@"; exit $?',
        "sh",
        *command,
    )


def inside(child):
    # the host pid of the program in a container, which is the child of the shell that unshare started
    shell = int(open(f"/proc/{child.pid}/task/{child.pid}/children").read().split()[0])
    return int(open(f"/proc/{shell}/task/{shell}/children").read().split()[0])


def seen(**options):
    rows = []
    for vm in reader.vms(**options):
        with vm:
            rows.append([vm.pid, vm.nspid, vm.state, vm.kind, vm.path])
    return rows


def refusal(target):
    try:
        reader.vm(target).close()
    except errors.VMScopeError as error:
        return [type(error).__name__, str(error)]
    return None
"""


def on_host(code: str, **facts: object) -> Any:
    return isolated(HOST + textwrap.dedent(code), **facts)


@pytest.mark.parametrize("kind", ["JAVA", "PYTHON"])
def test_two_containers_share_a_tmp_and_a_pid(jdk: JDK, kind: str) -> None:
    """One file, the first one's: it is found under its host pid, and nobody else is taken for its writer."""
    found = on_host(
        f"""
        program = {kind}
        here = process(50)                  # the host's own process of that number
        time.sleep(0.05)                    # starts are told apart by clock ticks of 10 ms
        first = container(program, pid=50)
        second = container(program, pid=50)
        one, two = inside(first), inside(second)
        result = dict(
            pids=[here.pid, one, two], listed=[c.pid for c in reader.candidates()], seen=seen(),
            all=seen(stale=True), one=refusal(one), two=refusal(two), here=refusal(50),
            jps=run(facts["jps"], "-q")[1].split(),
        )
        """,
        java=jdk.tool("java"),
        jps=jdk.tool("jps"),
    )
    here, one, two = found["pids"]
    assert here == 50
    path = "/tmp/hsperfdata_root/50"
    kind_name = "HotSpot" if kind == "JAVA" else "CPython"
    assert found["listed"] == [50]  # what jps lists, and takes for the host's process
    assert "50" in found["jps"]
    assert found["seen"] == found["all"] == [[one, 50, "live", kind_name, path]]
    assert found["one"] is None
    for pid in (two, here):
        name, text = found["two" if pid == two else "here"]
        assert name == "StaleRegion"
        assert f"not of process {pid}" in text
        assert f"is {one} here" in text


def test_a_container_with_a_tmp_of_its_own(jdk: JDK) -> None:
    """Found through /proc, under the host pid, like jps does; a file of that number out here is no match."""
    found = on_host(
        """
        boxes = [container(JAVA, tmp="/tmp", pid=60), container(PYTHON, tmp="/tmp", pid=60)]
        pids = [inside(box) for box in boxes]
        publish(pids[0], corpus.load("17.0.15-debian-g1"))      # left by an earlier process of that number
        result = dict(
            pids=pids, seen=seen(), refused=[refusal(pid) for pid in pids],
            read=[[reader.vm(pid).nspid, reader.vm(pid).main, len(reader.vm(pid).values()) > 20] for pid in pids],
            listed=[[c.pid, c.nspid, c.container] for c in reader.candidates()],
            jps=sorted(run(facts["jps"])[1].split(chr(10))), ps=ours("ps", "--json")[1],
        )
        """,
        java=jdk.tool("java"),
        jps=jdk.tool("jps"),
    )
    java, python = found["pids"]
    assert [row[:4] for row in found["seen"]] == [[java, 60, "live", "HotSpot"], [python, 60, "live", "CPython"]]
    assert [row[4] for row in found["seen"]] == [f"/proc/{pid}/root/tmp/hsperfdata_root/60" for pid in (java, python)]
    assert found["refused"] == [None, None]
    assert found["read"] == [[60, "Main", True], [60, "-c", True]]
    assert [python, 60, True] in found["listed"]
    assert any(line.startswith(f"{python} ") for line in found["jps"]), found["jps"]
    assert [row["pid"] for row in json.loads(found["ps"])] == [java, python]


@pytest.mark.parametrize("kind", ["JAVA", "PYTHON"])
def test_a_pid_that_is_used_again(jdk: JDK, kind: str) -> None:
    """A VM is killed and its pid goes to another process: the file that it left is not that one's."""
    found = on_host(
        f"""
        vm = started(*{kind})
        before = seen()
        vm.kill(); vm.wait()
        dead = [seen(), refusal(vm.pid)]
        again = process(vm.pid)
        result = dict(pid=vm.pid, before=before, dead=dead, after=seen(), all=seen(stale=True),
                      refused=refusal(vm.pid), ps=ours("ps", str(vm.pid)), stat=ours("stat", str(vm.pid)))
        """,
        java=jdk.tool("java"),
    )
    pid = found["pid"]
    assert [row[:3] for row in found["before"]] == [[pid, pid, "live"]]
    assert found["dead"] == [[], ["NoSuchProcess", f"Process not found: there is no process {pid}"]]
    assert found["after"] == []
    assert [row[:3] for row in found["all"]] == [[pid, pid, "stale"]]
    name, text = found["refused"]
    assert name == "StaleRegion"
    assert f"process {pid} did not write /tmp/hsperfdata_root/{pid}: the writer has ended" in text
    for command in ("ps", "stat"):
        status, output, error = found[command]
        assert (status, output) == (1, "")
        assert error.startswith(f"vmscope: {text} (")
        assert error.count("\n") == 1


def test_a_vm_out_of_sight(jdk: JDK) -> None:
    """From within a container, the host's VMs of a shared tmp are files whose writers cannot be seen."""
    found = on_host(
        """
        outer = started(*PYTHON)
        code = ("import json; from vmscope import reader;"
                "print(json.dumps([[v.pid, v.state] for v in reader.vms(stale=True)]))")
        inner = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code],
                               capture_output=True, text=True)
        result = dict(pid=outer.pid, inner=json.loads(inner.stdout), outer=seen())
        """
    )
    assert found["inner"] == [[found["pid"], "stale"]]
    assert [row[:3] for row in found["outer"]] == [[found["pid"], found["pid"], "live"]]


THEIRS = programs.source("reader_hosts/theirs")


def test_a_directory_with_another_user_s_name(jdk17: JDK) -> None:
    """Anybody may have the directory of root's name: whose a VM is tells its file. The JDK's tools show no user."""
    found = on_host(
        """
        subprocess.run(["chmod", "1777", "/tmp"], check=True)
        theirs = started(sys.executable, "-c", facts["theirs"])
        roots = started(*JAVA)  # a JVM of root's makes its own file there
        jdk, pid = facts["jdk"], str(theirs.pid)
        result = {
            "pids": [theirs.pid, roots.pid],
            "users": {row["pid"]: row["user"] for row in json.loads(ours("ps", "--json")[1])},
            "owners": [os.stat(f"/tmp/hsperfdata_root/{each.pid}").st_uid for each in (theirs, roots)],
            "jps": [ours("jps", "-q"), run(f"{jdk}/jps", "-q")],
            "jstat": [ours("jstat", "-gcutil", pid), run(f"{jdk}/jstat", "-gcutil", pid)],
        }
        for each in (theirs, roots):
            each.kill()
        """,
        java=jdk17.tool("java"),
        jdk=str(jdk17.bin),
        theirs=THEIRS,
    )
    theirs, roots = found["pids"]
    assert found["owners"] == [65534, 0]
    assert found["users"] == {str(theirs): pwd.getpwuid(65534).pw_name, str(roots): "root"}
    for name in ("jps", "jstat"):
        mine, jdks = found[name]
        assert mine[0] == jdks[0] == 0
        assert mine[2] == jdks[2] == ""
    assert found["jstat"][0][1].splitlines()[0] == found["jstat"][1][1].splitlines()[0]
    assert {theirs, roots} <= set(map(int, found["jps"][0][1].split())) & set(map(int, found["jps"][1][1].split()))
