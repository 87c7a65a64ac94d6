"""Other VMs' regions: found by pid, by user, in the list of all; what is told where there is none."""

from __future__ import annotations

import sys

from tests.wait import wait_for

assert sys.platform == "win32"

import os
import time
from pathlib import Path

import pytest

from tests.windows.conftest import StartProgram
from vmscope import win32
from vmscope.errors import AccessModeError, InsecureDirectory, NoRegion, NoSuchProcess, RegionSizeError, StaleRegion
from vmscope.reader import attach, candidates, vm, vms
from vmscope.reader.discovery import by_pid
from vmscope.reader.process import exists, process


def test_a_region_is_read_by_pid_and_follows_its_program(start_program: StartProgram) -> None:
    program = start_program("vmscope.start('-Dkey=value')\ncount = vmscope.counter('shop.sales')")
    with vm(program.pid) as found:
        assert (found.pid, found.kind, found.main, found.state) == (program.pid, "CPython", "-c", "live")
        assert found.vm_arguments == "-Dkey=value"
        assert found.user == win32.user_name()
        wait_for(lambda: found.values().get("shop.sales") == 0, "the counter does not come")
        assert found.counters["shop.sales"].value == 0
        program.ask("count.add(7)")
        wait_for(lambda: found.counters["shop.sales"].value == 7, "the counter does not move")
        program.ask("vmscope.counter('shop.more').add(2)")
        wait_for(lambda: found.values().get("shop.more") == 2, "the new counter does not come")
        assert found.values()["sun.rt.jvmVersion"] == sys.hexversion


def test_a_counters_values_are_never_halves(start_program: StartProgram) -> None:
    code = (
        "vmscope.start('-XX:PerfDataSamplingInterval=1')\n"
        "state = vmscope.text('a.state', capacity=64)\n"
        "import threading\n"
        "def work():\n"
        "    while True:\n"
        "        for letter in 'abc':\n"
        "            state.set(letter * 60)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
    )
    program = start_program(code)
    seen = set()
    with vm(program.pid) as found:
        end = time.monotonic() + 3
        while time.monotonic() < end:
            seen.add(str(found.values().get("a.state", "")))
    assert {text for text in seen if text} <= {letter * 60 for letter in "abc"}


def test_all_vms_are_found(start_program: StartProgram) -> None:
    first, second = start_program(), start_program()
    found = vms()
    try:
        assert {first.pid, second.pid} <= {one.pid for one in found}
        assert [one for one in found if one.state != "live"] == []
    finally:
        for one in found:
            one.close()
    assert {first.pid, second.pid} <= set(by_pid())
    assert [one.pid for one in candidates()] != []


def test_the_user_may_be_named(start_program: StartProgram) -> None:
    program = start_program()
    attach(program.pid, user=win32.user_name()).close()
    with pytest.raises(NoRegion) as raised:
        attach(program.pid, user="nobody")
    assert "Windows error 3" in str(raised.value) or "Windows error 2" in str(raised.value)


def test_of_two_users_of_one_pid_the_newest_counts(folder: Path, start_program: StartProgram) -> None:
    for user in ("older", "newer"):
        (folder / f"hsperfdata_{user}").mkdir()
    program = start_program("os.environ['USERNAME'] = 'newer'\nvmscope.start()")
    old = folder / "hsperfdata_older" / str(program.pid)
    old.write_bytes(bytes(65536))
    os.utime(old, (1, 1))
    if old.stat().st_ctime > (folder / "hsperfdata_newer" / str(program.pid)).stat().st_ctime:
        old.unlink()
    attachment = attach(program.pid, tmp=str(folder))
    assert attachment.user == "newer"
    attachment.close()


def test_what_is_no_region_is_told_apart(folder: Path, start_program: StartProgram) -> None:
    program = start_program("")
    with pytest.raises(NoRegion, match="publishes no region"):
        vm(program.pid)
    with pytest.raises(AccessModeError, match="Unsupported access mode"):
        attach(program.pid, mode="rw")
    with pytest.raises(AccessModeError, match="Illegal access mode"):
        attach(program.pid, mode="x")
    directory = folder / f"hsperfdata_{win32.user_name()}"
    directory.mkdir()
    (directory / str(program.pid)).write_bytes(bytes(5000))
    with pytest.raises(RegionSizeError, match="has 5000 bytes"):
        attach(program.pid, tmp=str(folder))
    (directory / str(program.pid)).write_bytes(b"")
    with pytest.raises(NoRegion):
        attach(program.pid, tmp=str(folder))
    (directory / str(program.pid)).write_bytes(bytes(4096))
    with pytest.raises(NoRegion, match=r"there is no mapping hsperfdata_.*Windows error 2"):
        attach(program.pid, tmp=str(folder))
    program.kill()
    wait_for(lambda: not win32.runs(program.pid), "it ended")
    with pytest.raises(NoSuchProcess, match="Process not found"):
        vm(program.pid)


def test_a_mapping_smaller_than_its_file_is_refused(start_program: StartProgram) -> None:
    program = start_program()
    with pytest.raises(RegionSizeError, match="its mapping fewer"):
        attach(program.pid, size=1 << 20)
    attachment = attach(program.pid, size=4096)
    assert attachment.mapping.size == 4096
    attachment.close()


def test_a_link_in_the_directorys_place_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    place = os.environ.get("VMSCOPE_TEST_LINKS")
    if not place:
        pytest.skip("nobody made a link: VMSCOPE_TEST_LINKS names the folder with hsperfdata_linked in it")
    with pytest.raises(InsecureDirectory):
        attach(os.getpid(), user="linked", tmp=place)


def test_the_own_region_is_read_and_stays(start_program: StartProgram) -> None:
    program = start_program("vmscope.start()\nfrom vmscope.reader import attach")
    assert program.ask("attach(0).close(), attach('self', mode='nonsense').close()") == "(None, None)"
    assert program.ask("vmscope.vm('self').pid") == str(program.pid)
    assert program.ask("vmscope.status().running") == "True"


def test_who_ended_is_stale_for_who_reads_on(start_program: StartProgram) -> None:
    program = start_program()
    with vm(program.pid) as found:
        assert found.alive
        program.kill()
        wait_for(lambda: not found.alive, "it ended")
        assert found.values()["sun.rt.jvmVersion"] == sys.hexversion
    with pytest.raises((NoSuchProcess, NoRegion, StaleRegion)):
        vm(program.pid)


def test_a_saved_region_is_read(tmp_path: Path, start_program: StartProgram) -> None:
    saved = tmp_path / "saved"
    program = start_program(f"vmscope.start(r'-XX:PerfDataSaveFile={saved}')\nvmscope.counter('a.b').add(5)")
    program.end()
    for uri in (f"file:{saved}", "file:///" + str(saved).replace("\\", "/")):
        with vm(uri) as found:
            assert found.values()["a.b"] == 5


def test_processes_are_known_by_their_start(start_program: StartProgram) -> None:
    began = time.time_ns() // 1_000_000
    program = start_program()
    facts = process(program.pid)
    assert facts.alive
    assert began - 2_000 <= facts.start_time <= time.time_ns() // 1_000_000 + 2_000
    assert 0 <= facts.uptime_seconds < 60
    assert facts.rss > 1 << 20
    assert facts.threads >= 1
    with vm(program.pid) as found:
        assert found.values()["vmscope.process.startTicks"] == facts.start_ticks
    assert exists(program.pid)
    program.kill()
    wait_for(lambda: not exists(program.pid), "it ended")
