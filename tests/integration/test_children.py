"""Children that are VMs and are killed: while their parent lives, it removes what they have left, and nothing else."""

from __future__ import annotations

import json
import os
import signal
from textwrap import dedent

import pytest

from tests import programs, sandbox
from tests.attack.stepper import Stepper, thread
from tests.support import Child
from tests.wait import wait_for
from vmscope import native

pytestmark = pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin watches no children")

CODE = programs.source("children/program")
OWN_TMP = "mount -t tmpfs -o mode=1777 tmpfs /tmp\n"


def alone(code: str) -> dict[str, object]:
    """In a /tmp of its own."""
    found: dict[str, object] = json.loads(sandbox.run(CODE + dedent(code), mounts=OWN_TMP, timeout=110))
    return found


def test_a_hundred_leave_nothing() -> None:
    """While the parent lives, and before it waits for them; their statuses stay for it."""
    found = alone("""
        vmscope.start()
        assert (descriptors("pidfd"), descriptors("eventpoll")) == (0, 0)
        pids = born(100)
        watched(100)
        for pid in pids:
            kill(pid)
        wait_for(lambda: not any(left(pid) for pid in pids))
        watched(0)
        wait_for(lambda: descriptors("eventpoll") == 0)
        answer(statuses=sorted({reaped(pid) for pid in pids}), own=len(left(os.getpid())))
    """)
    assert found == {"statuses": [9], "own": 2}


def test_one_that_is_waited_for_while_it_is_looked_at() -> None:
    """Between two system calls of the parent's thread."""
    serve = "vmscope.start()\nprint('ready', flush=True)\nfor line in sys.stdin: print(eval(line), flush=True)\n"
    with Child(sandbox.command(CODE + serve, mounts=OWN_TMP)) as parent:
        parent.read_until(b"ready\n")
        pid = int(parent.ask("born(1)[0]"))
        parent.ask("watched(1)")
        stepper = Stepper(thread(parent.pid, "vmscope listene"), also="waitid")
        os.kill(pid, signal.SIGKILL)
        looks = 0
        for call in stepper:
            looks += call.name == "waitid"
            if looks == 2:  # it knows that the child has ended, and has found the region
                assert parent.ask(f"reaped({pid})") == "9"
                break
        wait_for(lambda: parent.ask(f"left({pid})") == "[]")
        assert parent.stop() == 0


def test_those_that_nobody_waits_for() -> None:
    """Their pids are free again at once."""
    alone("""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        vmscope.start()
        (pid,) = born(1)
        watched(1)
        kill(pid)
        wait_for(lambda: not left(pid))
        answer()
    """)


def test_another_program_s_start() -> None:
    """No fork of Python's."""
    alone("""
        vmscope.start()
        child = subprocess.Popen([sys.executable, "-c", "import signal, vmscope; vmscope.start(); signal.pause()"])
        wait_for(lambda: len(left(child.pid)) == 2)
        watched(1)
        child.kill()
        wait_for(lambda: not left(child.pid))
        answer(status=child.wait())
    """)


def test_after_forks_of_the_parent_s() -> None:
    """They end the thread that watches, and one child is killed meanwhile."""
    found = alone("""
        vmscope.start()
        first, second, third = born(3)
        watched(3)
        for _ in range(20):
            reaped(fork(lambda: None))
        kill(first)
        for _ in range(20):
            reaped(fork(lambda: None))
        wait_for(lambda: not left(first))
        watched(2)
        def work():
            wait_for(lambda: len(left(os.getpid())) == 2)
            with open("/tmp/seen", "w") as file:
                file.write(str(descriptors("pidfd")))
            signal.pause()
        inherited = born(1, work)
        kill(second)
        wait_for(lambda: not left(second) and os.path.exists("/tmp/seen") and open("/tmp/seen").read())
        kill(third)
        wait_for(lambda: not left(third))
        answer(seen=open("/tmp/seen").read(), own=[os.readlink(f"/proc/self/fd/{n}") for n in range(3, 64)
               if os.path.lexists(f"/proc/self/fd/{n}")].count("anon_inode:[pidfd]"))
        kill(*inherited)
    """)
    assert found == {"seen": "0", "own": 0}


def test_one_whose_own_child_goes_on() -> None:
    alone("""
        vmscope.start()
        def work():
            fork()
            signal.pause()
        (pid,) = born(1, work)
        children = lambda: open(f"/proc/{pid}/task/{pid}/children").read().split()
        wait_for(lambda: len(children()) == 1)
        (own,) = map(int, children())
        wait_for(lambda: len(left(own)) == 2)
        kill(pid)
        wait_for(lambda: not left(pid))
        assert len(left(own)) == 2
        kill(own)
        answer()
    """)


def test_what_is_not_the_child_s_stays() -> None:
    """Under its names: what another process has locked, as a VM of another pid namespace; a link; a plain file."""
    found = alone("""
        vmscope.start()
        pids = born(3)
        watched(3)
        held = []
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            for path in left(pid):
                os.unlink(path)
        for pid in pids[:2]:
            with open(f"/tmp/.java_pid{pid}", "w"):
                pass
        held.append(os.open(f"{FOLDER}/{pids[0]}", os.O_CREAT | os.O_RDWR))
        fcntl.flock(held[0], fcntl.LOCK_EX)
        os.symlink("/tmp/victim", f"{FOLDER}/{pids[1]}")
        listening = socket.socket(socket.AF_UNIX)  # somebody answers there
        listening.bind(f"/tmp/.java_pid{pids[2]}")
        listening.listen()
        for pid in pids:
            kill(pid)
        (last,) = born(1)
        watched(1)
        kill(last)
        wait_for(lambda: not left(last))
        before = [len(left(pid)) for pid in pids]
        os.close(held[0])  # now it is nobody's
        wait_for(lambda: not os.path.exists(f"{FOLDER}/{pids[0]}"))
        answer(before=before, after=[len(left(pid)) for pid in pids])
    """)
    assert found == {"before": [2, 2, 1], "after": [1, 2, 1]}


def test_who_is_no_child_is_not_watched() -> None:
    found = alone("""
        vmscope.start()
        code = (
            "import os, socket, sys, time\\n"
            "if os.fork():\\n"
            "    os._exit(0)\\n"
            "from tests.wait import wait_for\\n"
            "wait_for(lambda: os.getppid() != int(sys.argv[2]))\\n"
            "client = socket.socket(socket.AF_UNIX)\\n"
            "client.connect('/tmp/.java_pid' + sys.argv[1])\\n"
            "client.sendall(b'1\\\\0childstarted' + bytes(4))\\n"
            "print(client.recv(100), flush=True)\\n"
            "sys.stdin.read()\\n"
        )
        code = code.replace("int(sys.argv[2])", "parent").replace("if os.fork", "parent = os.getpid()\\nif os.fork")
        child = subprocess.Popen([sys.executable, "-c", code, str(os.getpid())],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said = child.stdout.readline().decode()
        with connect(os.getpid()) as client, client.execute("getversion") as reply:
            b"".join(reply)  # the thread has gone on since
        answer(said=said, pidfds=descriptors("pidfd"))
        child.communicate()
    """)
    assert found == {"said": "b'0\\n'\n", "pidfds": 0}


def test_clients_take_no_watch_from_children() -> None:
    """Who is connected has more than the half of all descriptors; the children have fewer."""
    alone("""
        import resource
        vmscope.start()
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        clients = [socket.socket(socket.AF_UNIX) for _ in range(40)]
        for client in clients:
            client.connect(f"/tmp/.java_pid{os.getpid()}")
            client.sendall(b"1")
        pids = born(3)
        watched(3)
        for pid in pids:
            kill(pid)
        wait_for(lambda: not any(left(pid) for pid in pids))
        answer()
    """)


def test_descriptors_are_left_for_clients() -> None:
    """Of few, half at most are the children's. What the others leave goes at the parent's end."""
    found = alone("""
        import resource
        vmscope.start()
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        pids = born(60)
        with connect(os.getpid()) as client, client.execute("getversion") as reply:
            status = reply.status
            b"".join(reply)
        wait_for(lambda: descriptors("pidfd") > 0)  # it looks at its children when it comes to it
        pidfds = descriptors("pidfd")
        for pid in pids:
            kill(pid)
            reaped(pid)
        watched(0)
        wait_for(lambda: sum(len(left(pid)) for pid in pids) <= 2 * (60 - pidfds))
        vmscope.stop()
        answer(status=status, few=0 < pidfds <= 32, left=[pid for pid in pids if os.path.lexists(f"{FOLDER}/{pid}")])
    """)
    assert found == {"status": 0, "few": True, "left": []}
