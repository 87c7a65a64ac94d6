"""Whose a region is: live, stale or foreign, by start time, lock and mapping."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import programs
from tests.conftest import ROOT, StartPython
from tests.published import cpython, hotspot, publish, region
from tests.support import Child
from tests.wait import wait_for
from vmscope.reader import VM, Candidate, attachment, ownership, vms
from vmscope.reader.ownership import FileLocks
from vmscope.reader.process import process, read_file

HOLDER = programs.source("reader_ownership/holder")


@pytest.fixture
def child(start_python: StartPython) -> Child:
    return start_python(HOLDER)


def state(path: Path, pid: int, nspid: int | None = None) -> tuple[str, int | None]:
    with VM(attachment.open_candidate(Candidate(pid, nspid or pid, "someone", str(path), False))) as vm:
        return vm.state, vm.pid


def long_ago() -> int:
    return time.time_ns() // 1_000_000 - 3_600_000


def test_a_python_vm_is_known_by_its_start(tmp_path: Path, child: Child) -> None:
    assert state(publish(tmp_path, child.pid, cpython(child.pid)), child.pid) == ("live", child.pid)
    ticks = process(child.pid).start_ticks
    for other in (ticks - 1, ticks + 1, 1):
        path = publish(tmp_path, child.pid, cpython(child.pid, ticks=other))
        assert state(path, child.pid) == ("stale", child.pid)


def test_a_process_that_has_become_another_program_is_no_vm(tmp_path: Path) -> None:
    """Whoever called exec, C code too: pid and start time stay, the stack begins elsewhere."""
    code = "import ctypes, os; os.write(1, b'\\n'); os.read(0, 1); ctypes.CDLL(None).execlp(b'cat', b'cat', None)"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-u", "-c", code], stdin=pipe, stdout=pipe, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        path = publish(tmp_path, child.pid, cpython(child.pid, stack=process(child.pid).stack_start))
        assert state(path, child.pid) == ("live", child.pid)
        child.stdin.write(b"\nanswer\n")
        assert child.stdout.readline() == b"answer\n"
        assert state(path, child.pid) == ("stale", child.pid)


def test_a_jvm_begins_soon_after_its_process(tmp_path: Path, child: Child) -> None:
    """And its program lies in the home that it tells. Both together are enough, alone neither is."""
    begin = process(child.pid).start_time
    program = os.readlink(f"/proc/{child.pid}/exe")
    home = program[: program.rindex("/bin/")]
    for place in (home, home + "/jre"):
        for delay in (0, 100, 1500):
            path = publish(tmp_path, child.pid, hotspot(begin + delay, home=place))
            assert state(path, child.pid) == ("live", child.pid)
    for place, delay in ((home, 10_000), (home, -10_000), (home[:-1], 0), ("/opt/jdk", 0)):
        path = publish(tmp_path, child.pid, hotspot(begin + delay, home=place))
        assert state(path, child.pid) == ("stale", child.pid)


@pytest.mark.parametrize("hours", [-1, 1])
def test_the_process_has_the_lock(tmp_path: Path, child: Child, hours: int) -> None:
    """A JVM that began much later than its process, or whose clock has been set since."""
    path = publish(tmp_path, child.pid, hotspot(process(child.pid).start_time + hours * 3_600_000))
    assert state(path, child.pid) == ("stale", child.pid)
    child.ask(f"lock({str(path)!r})")
    assert state(path, child.pid) == ("live", child.pid)


def test_the_process_has_the_file_mapped(tmp_path: Path, child: Child) -> None:
    """A JVM of the time before the lock."""
    path = publish(tmp_path, child.pid, hotspot(long_ago()))
    assert state(path, child.pid) == ("stale", child.pid)
    child.ask(f"map({str(path)!r})")
    assert state(path, child.pid) == ("live", child.pid)
    path.unlink()
    path = publish(tmp_path, child.pid, hotspot(long_ago()))  # the same name, another file
    assert state(path, child.pid) == ("stale", child.pid)


def test_a_lock_that_some_other_process_holds(tmp_path: Path, child: Child) -> None:
    """Its pid is not the file's name, here or in a namespace of its own: whose it is cannot be told."""
    path = publish(tmp_path, os.getpid(), hotspot(long_ago()))
    child.ask(f"lock({str(path)!r})")
    assert state(path, os.getpid()) == ("foreign", os.getpid())
    # the same file, if its name is the holder's pid where the holder lives
    assert state(path, os.getpid(), nspid=child.pid) == ("live", child.pid)


def test_a_process_that_ended(tmp_path: Path, start_python: StartPython) -> None:
    child = start_python(HOLDER)
    path = publish(tmp_path, child.pid, cpython(child.pid))
    child.ask(f"lock({str(path)!r})")
    with VM(attachment.open_candidate(Candidate(child.pid, child.pid, "someone", str(path), False))) as vm:
        assert [vm.alive, vm.state] == [True, "live"]
        child.process.kill()
        wait_for(lambda: not process(child.pid).alive)
        assert [vm.alive, vm.state] == [False, "stale"]  # a zombie
        child.kill()
        assert not vm.alive
        assert state(path, child.pid) == ("stale", child.pid)
        assert vms(tmp=str(tmp_path)) == []
        (found,) = vms(tmp=str(tmp_path), stale=True)
        assert (found.pid, found.state, found.main) == (child.pid, "stale", "app")
        found.close()


def test_a_region_of_no_known_kind(tmp_path: Path, child: Child) -> None:
    path = publish(tmp_path, child.pid, region({"some.counter": 1}))
    assert state(path, child.pid) == ("stale", child.pid)
    child.ask(f"lock({str(path)!r})")
    assert state(path, child.pid) == ("live", child.pid)


@pytest.mark.skipif(not ROOT, reason="needs root to give files to other users")
def test_nobody_publishes_in_another_users_name(tmp_path: Path, start_python: StartPython, child: Child) -> None:
    path = publish(tmp_path, child.pid, cpython(child.pid), mode=0o644)
    os.chown(path, 65534, 65534)
    assert state(path, child.pid) == ("stale", child.pid)
    other = start_python(HOLDER)
    other.ask("os.setresuid(65534, 65534, 65534)")
    path = publish(tmp_path, other.pid, cpython(other.pid), mode=0o644)
    os.chown(path, 65534, 65534)
    assert state(path, other.pid) == ("live", other.pid)  # though /proc says root, since it has changed its user
    os.chown(path, 1, 1)
    assert state(path, other.pid) == ("stale", other.pid)
    os.chown(path, 0, 0)
    assert state(path, other.pid) == ("live", other.pid)  # root made it, before it became another


def test_the_lock_table_is_read_once_and_only_if_needed(
    tmp_path: Path, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []

    def watched(path: str, limit: int) -> bytes:
        reads.append(path)
        return read_file(path, limit)

    monkeypatch.setattr(ownership, "read_file", watched)
    publish(tmp_path, child.pid, cpython(child.pid))
    program = os.readlink(f"/proc/{os.getpid()}/exe")
    start = process(os.getpid()).start_time
    publish(tmp_path, os.getpid(), hotspot(start, home=program[: program.rindex("/bin/")]))
    found = vms(tmp=str(tmp_path))
    assert len(found) == 2
    for vm in found:
        vm.close()
    assert reads == []
    for pid in (1, 2, os.getppid()):
        publish(tmp_path, pid, cpython(child.pid, ticks=99))
    for vm in vms(tmp=str(tmp_path)):
        vm.close()
    assert reads == ["/proc/locks"]


LOCK_TABLE = b"""\
1: FLOCK  ADVISORY  WRITE 4711 fe:00:262145 0 EOF
1: -> FLOCK  ADVISORY  WRITE 4712 fe:00:262145 0 EOF
2: POSIX  ADVISORY  WRITE 4713 fe:00:262145 0 EOF
3: FLOCK  ADVISORY  READ 4714 00:1c:77 0 EOF
4: FLOCK  ADVISORY  READ 4715 00:1c:77 0 EOF
5: LEASE  ACTIVE    READ 4716 00:1c:77 0 EOF
garbage
"""


def test_the_lock_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "read_file", lambda *_: LOCK_TABLE)
    locks = FileLocks()
    assert locks.holders(os.makedev(0xFE, 0), 262145) == [4711]
    assert locks.holders(os.makedev(0, 0x1C), 77) == [4714, 4715]
    assert locks.holders(0, 0) == []

    def refuse(*_: object) -> bytes:
        raise PermissionError

    monkeypatch.setattr(ownership, "read_file", refuse)
    assert FileLocks().holders(os.makedev(0xFE, 0), 262145) == []
