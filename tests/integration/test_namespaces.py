"""Containers that share a /tmp: pids mean nothing across them, locks do."""

from __future__ import annotations

import json
import os
from textwrap import dedent
from typing import Any

import pytest

from tests import programs, sandbox
from tests.support import JDK

SHARED = "mount -t tmpfs -o mode=1777 tmpfs /mnt\nmkdir -m 755 /mnt/hsperfdata_root\n"

CONTAINERS = programs.source("namespaces/containers")


def run(code: str) -> list[dict[str, Any]]:
    """What `code` answers in a mount namespace, from which it starts containers."""
    return [json.loads(line) for line in sandbox.run(CONTAINERS + dedent(code), mounts=SHARED).splitlines()]


@pytest.fixture(params=[17, 25])
def java(request: pytest.FixtureRequest) -> str:
    jdk = JDK.find(request.param)
    if jdk is None or jdk.home.is_relative_to("/tmp"):
        pytest.skip(f"no JDK {request.param} outside /tmp")
    return jdk.tool("java")


def test_two_vms_of_the_same_pid() -> None:
    first, second, checks = run("""
        one, told = vm()
        answer(**told)
        before = region()
        two, told = vm()
        answer(**told)
        while_two_lives = region()
        end(two)
        after_two = region()
        end(one, 1)
        after_one = region()
        three, told = vm()
        answer(kept=before == while_two_lives == after_two, locked=before[1], left=after_one[1],
               third=told["path"], fresh=region()[1:], reason=told["reason"])
        end(three)
    """)
    assert first == {"pid": 1, "path": "/tmp/hsperfdata_root/1", "reason": ""}
    assert second["pid"] == 1
    assert second["path"] is None
    assert second["reason"].startswith("/tmp/hsperfdata_root/1 is in use by another VM of the same pid")
    assert checks == {
        "kept": True,
        "locked": True,
        "left": False,  # a file whose writer was killed, with pid 1 alive everywhere: only its successor may take it
        "third": "/tmp/hsperfdata_root/1",
        "fresh": [True, True],
        "reason": "",
    }


def test_end_of_the_second_leaves_the_first_ones_file() -> None:
    (checks,) = run("""
        one, _ = vm()
        before = region()
        two, _ = vm()
        two.stdin.close()
        two.wait(30)
        kept = region() == before
        one.stdin.close()
        one.wait(30)
        answer(kept=kept, status=[one.returncode, two.returncode], gone=region() is None)
    """)
    assert checks == {"kept": True, "status": [0, 0], "gone": True}


def test_jvm_first(java: str) -> None:
    told, checks = run(f"""
        one = jvm({java!r})
        before = region()
        two, told = vm()
        answer(**told)
        kept = region() == before
        end(two)
        answer(kept=kept, still=region() == before, locked=before[1], ours=before[2])
        end(one)
    """)
    assert told["path"] is None
    assert "in use by another VM of the same pid" in told["reason"]
    assert checks == {"kept": True, "still": True, "locked": True, "ours": False}


def test_jvm_second(java: str) -> None:
    told, checks = run(f"""
        one, told = vm()
        answer(**told)
        before = region()
        two = jvm({java!r})
        kept = region() == before
        end(two)
        answer(kept=kept, still=region() == before, locked=before[1], ours=before[2])
        end(one)
    """)
    assert told["path"] == "/tmp/hsperfdata_root/1"
    assert checks == {"kept": True, "still": True, "locked": True, "ours": True}


def test_jvm_that_was_killed_gives_way(java: str) -> None:
    told, checks = run(f"""
        end(jvm({java!r}), 1)
        left = region()
        two, told = vm()
        answer(**told)
        answer(left=left[1:], now=region()[1:])
        end(two)
    """)
    assert told["path"] == "/tmp/hsperfdata_root/1"
    assert checks == {"left": [False, False], "now": [True, True]}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to choose a pid")
def test_pid_that_is_dead_out_here_keeps_its_file(java: str) -> None:
    """Neither we nor a HotSpot that starts in another namespace takes it away, until its VM has ended."""
    (checks,) = run(f"""
        pid = 31_000
        while os.path.exists(f"/proc/{{pid}}"):
            pid += 1
        inner = f'''
            with open("/proc/sys/kernel/ns_last_pid", "w") as last:
                last.write("{{pid - 1}}")
            child = os.fork()
            if child == 0:
                vmscope.start()
                answer(pid=os.getpid(), path=vmscope.status().path)
                time.sleep(60)
            os.waitpid(child, 0)
        '''
        one = container(sandbox.command(inner, mounts=TMP, pid=True))
        told = json.loads(one.stdout.readline())
        assert told["pid"] == pid, told
        before = region(pid)
        with _directory.open_directory(tmp="/mnt") as directory:
            removed = _stale.clean(directory, os.getpid())
        java_version = f"{{TMP}}; exec {java} -version"
        subprocess.run(["unshare", "--mount", "sh", "-c", java_version], check=True, capture_output=True)
        two, other = vm()
        kept = region(pid) == before
        end(one, pid)
        with _directory.open_directory(tmp="/mnt") as directory:
            then = _stale.clean(directory, os.getpid())
        answer(path=told["path"] == f"/tmp/hsperfdata_root/{{pid}}", locked=before[1], removed=removed, kept=kept,
               then=then == [str(pid)], other=other["path"])
        end(two)
    """)
    assert checks == {
        "path": True,
        "locked": True,
        "removed": [],
        "kept": True,
        "then": True,
        "other": "/tmp/hsperfdata_root/1",
    }


def test_a_dump_is_named_as_seen_from_outside() -> None:
    (told,) = run("""
        child, _ = vm()
        pid = child.pid
        while True:  # the one that unshare has forked
            try:
                with open(f"/proc/{pid}/task/{pid}/children") as file:
                    pid = int(file.read().split()[0])
            except IndexError:
                break
        vmscope_cmd = [sys.executable, "-m", "vmscope", "cmd", str(pid), "GC.heap_dump"]
        done = subprocess.run([*vmscope_cmd, "/tmp/a.hprof"], capture_output=True, text=True)
        place, path = done.stdout.split()[-1], os.path.relpath("/tmp/b.hprof")
        relative = subprocess.run([*vmscope_cmd, "-gz=1", path], capture_output=True, text=True)
        agent = subprocess.run([*vmscope_cmd[:3], "attach", str(pid), "/tmp/none.so"], capture_output=True, text=True)
        answer(pid=pid, place=place, there=os.path.exists(place), here=os.path.exists("/tmp/a.hprof"),
               path=path, said=done.stdout + done.stderr, agent=agent.stderr,
               relative=relative.stdout + relative.stderr)
        end(child)
    """)
    assert told["place"] == f"/proc/{told['pid']}/root/tmp/a.hprof", told["said"]
    assert told["there"], told["said"]
    assert not told["here"]
    assert f"/proc/{told['pid']}/cwd/{told['path']}" in told["relative"]
    assert f"as /proc/{told['pid']}/root/tmp/none.so here" in told["agent"]
