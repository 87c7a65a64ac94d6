"""Recordings of live programs: what begins and ends them, where they are kept, and what a fork leaves of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, StartPython, StartVMScope
from tests.oracle.raw_attach import ask
from tests.support import JDK, Child
from tests.wait import wait_for

pytestmark = pytest.mark.usefixtures("no_chunks_left")

WORK = "import os, threading\n"


def jcmd(child: Child, text: str) -> str:
    status, body = ask(child.pid, "jcmd", text)
    assert status == "0", body
    return body


def repository(child: Child) -> Path:
    found = re.search(r"Repository path: (.*)", jcmd(child, "JFR.configure"))
    assert found is not None
    return Path(found[1])


def events(path: Path, jdk: JDK) -> dict[str, int]:
    run = jdk.run("jfr", "summary", str(path))
    assert run.returncode == 0, run.stderr
    return {name: int(count) for name, count in re.findall(r"^ (\w+\.\w+)\s+(\d+)\s+\d+ *$", run.stdout, re.M)}


def test_a_recording_ends_by_itself(start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK) -> None:
    child = start_vmscope(code=WORK)
    path = tmp_path / "out.jfr"
    assert str(path) in jcmd(child, f"JFR.start duration=1s filename={path}")
    wait_for(path.exists, "no file")
    wait_for(lambda: jcmd(child, "JFR.check").startswith("No available"), "it goes on")
    assert events(path, jdk)["jdk.JVMInformation"] == 1
    assert repository(child) == Path("N/A"), "the folder goes with the last recording"


def test_a_recording_that_waits_begins_by_itself(start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK) -> None:
    child = start_vmscope(code=WORK)
    jcmd(child, f"JFR.start delay=1s name=later maxage=1h filename={tmp_path}/out.jfr")
    assert jcmd(child, "JFR.check") == "Recording 1: name=later maxage=1h (delayed)\n"
    wait_for(lambda: "(running)" in jcmd(child, "JFR.check"), "it does not begin")
    assert "Stopped recording" in jcmd(child, "JFR.stop name=1")
    assert events(tmp_path / "out.jfr", jdk)


def test_each_recording_begins_where_it_was_started(start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK) -> None:
    child = start_vmscope(code=WORK)
    jcmd(child, "JFR.start name=first")
    jcmd(child, "JFR.start name=second")
    for name in ("second", "first"):
        assert "Dumped" in jcmd(child, f"JFR.dump name={name} filename={tmp_path}/{name}.jfr")
    first, second = (events(tmp_path / f"{name}.jfr", jdk) for name in ("first", "second"))
    assert first["jdk.Metadata"] == second["jdk.Metadata"] + 2, "a chunk before the other began, and one of its dump"
    jcmd(child, "JFR.stop name=first")
    assert "second" in jcmd(child, "JFR.check")
    assert len([*repository(child).iterdir()]) <= 3, "chunks of the first alone are gone"


def test_the_end_of_the_program_dumps_what_asks_for_it(start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK) -> None:
    child = start_vmscope(f"-XX:StartFlightRecording:filename={tmp_path}/a-%p.jfr,name=a", "-XX:StartFlightRecording")
    jcmd(child, f"JFR.start name=b filename={tmp_path}/b.jfr duration=1h")
    folder = repository(child)
    assert folder.stat().st_mode & 0o777 == 0o700
    child.stop()
    assert events(tmp_path / f"a-{child.pid}.jfr", jdk)
    assert events(tmp_path / "b.jfr", jdk)
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"a-{child.pid}.jfr", "b.jfr"]
    assert not folder.exists()


@pytest.mark.parametrize("settings", ["default", "none"])
def test_a_signal_that_ends_the_program_dumps_too(
    start_python: StartPython, tmp_path: Path, jdk: JDK, settings: str
) -> None:
    option = f"-XX:StartFlightRecording:filename={tmp_path}/out.jfr,settings={settings}"
    child = start_python(
        f"import signal, vmscope\nvmscope.start({option!r})\nprint('ready', flush=True)\nsignal.pause()"
    )
    folder = repository(child)
    child.process.send_signal(signal.SIGTERM)
    assert child.process.wait() == -signal.SIGTERM
    assert events(tmp_path / "out.jfr", jdk)
    assert not folder.exists()


def test_a_forked_child_has_no_recordings(start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK) -> None:
    code = "import os, sys\nfrom vmscope.commands import execute\ndef fork():\n pid = os.fork()\n if pid:\n"
    code += "  return os.waitpid(pid, 0)[1]\n execute('JFR.check', sys.stdout)\n sys.stdout.flush()\n sys.exit()\n"
    child = start_vmscope(f"-XX:StartFlightRecording:filename={tmp_path}/out.jfr", code=code)
    folder = repository(child)
    jcmd(child, f"JFR.dump filename={tmp_path}/before.jfr")
    before = {each.name for each in folder.iterdir()}
    child.send("fork()")
    child.read_until(b"No available recordings.")
    child.read_until(b"\n0\n")
    assert before
    assert {each.name for each in folder.iterdir()} >= before
    assert [each.name for each in tmp_path.iterdir()] == ["before.jfr"]
    assert "(running)" in jcmd(child, "JFR.check")
    assert "Stopped" in jcmd(child, "JFR.stop name=1")
    assert events(tmp_path / "out.jfr", jdk)


def test_a_recording_in_memory(start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK) -> None:
    child = start_vmscope(code=WORK)
    jcmd(child, "JFR.start name=ring disk=false")
    assert repository(child) == Path("N/A")
    assert "Dumped" in jcmd(child, f"JFR.dump name=ring filename={tmp_path}/one.jfr")
    jcmd(child, "JFR.start name=disk")  # and goes on beside one with files
    assert repository(child).is_dir()
    assert "Dumped" in jcmd(child, f"JFR.dump name=ring filename={tmp_path}/two.jfr")
    one, two = (events(tmp_path / f"{name}.jfr", jdk) for name in ("one", "two"))
    assert two["jdk.Metadata"] > one["jdk.Metadata"]


def test_what_cannot_be_written_is_not_lost(start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK) -> None:
    child = start_vmscope(code=WORK)
    jcmd(child, "JFR.start name=a")
    reply = jcmd(child, f"JFR.stop name=a filename={tmp_path}/none/out.jfr")
    assert reply == (f'Could not write recording "a" to file. {tmp_path}/none/out.jfr\n\nThe recording goes on.\n')
    assert "Stopped" in jcmd(child, f"JFR.stop name=a filename={tmp_path}/out.jfr")
    assert events(tmp_path / "out.jfr", jdk)


@pytest.mark.skipif(not ROOT, reason="needs root to mount a file system")
def test_a_full_disk_leaves_nothing_half_done(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    child = start_vmscope(code=WORK)
    jcmd(child, "JFR.start name=a")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", str(tmp_path)], check=True)
    try:
        assert jcmd(child, f"JFR.dump name=a filename={tmp_path}/out.jfr") == (
            f"Dump failed. Could not copy recording data. {tmp_path}/out.jfr: No space left on device\n"
        )
        assert os.listdir(tmp_path) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_an_option_that_cannot_be_is_a_problem(start_vmscope: StartVMScope) -> None:
    child = start_vmscope("-XX:StartFlightRecording=filename=/nonexistent/a/b.jfr")
    assert "not able to write to file /nonexistent/a/b.jfr" in child.ask("str(vmscope.status()).replace(chr(10), ' ')")
    assert jcmd(child, "JFR.check").startswith("No available")


def test_stop_ends_recordings(start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK) -> None:
    child = start_vmscope(f"-XX:StartFlightRecording:filename={tmp_path}/out.jfr")
    folder = repository(child)
    child.ask("vmscope.stop()")
    assert events(tmp_path / "out.jfr", jdk)
    assert not folder.exists()


def test_threading_is_left_for_the_program_to_import(tmp_path: Path, jdk: JDK) -> None:
    """Imported on a thread of vmscope's it would take that for the main one; threads that start later are recorded."""
    code = "import sys\nprint('ready', flush=True)\nfor line in sys.stdin: print(eval(line), flush=True)"
    with Child([sys.executable, "-m", "vmscope", "run", "-c", code]) as child:
        child.read_until(b"ready\n")
        records_threads(child, tmp_path, jdk)


def records_threads(child: Child, tmp_path: Path, jdk: JDK) -> None:
    jcmd(child, "JFR.start name=first settings=profile")
    assert child.ask("'threading' in sys.modules") == "False"
    assert child.ask("__import__('threading').current_thread() is __import__('threading').main_thread()") == "True"
    start = "(lambda thread: (thread.start(), thread.join()))(__import__('threading').Thread(target=int))"

    def started() -> int:
        child.ask(start)
        jcmd(child, f"JFR.dump name=first filename={tmp_path}/out.jfr")
        return events(tmp_path / "out.jfr", jdk)["jdk.ThreadStart"]

    wait_for(started, "no thread is recorded")
    jcmd(child, "JFR.stop name=first")
    assert child.ask("__import__('threading').Thread.start.__module__") == "threading", "it is left as it was"
