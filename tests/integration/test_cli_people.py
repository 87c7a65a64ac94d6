"""vmscope ps, stat and counters on live Python and Java VMs: tables, JSON, terminals, errors."""

from __future__ import annotations

import itertools
import json
import math
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Any

import pytest

import vmscope
from tests import corpus
from tests.conftest import StartPython, StartVMScope
from tests.support import JDK, JVM, Child, User
from tests.wait import wait_for

COMMAND = [sys.executable, "-m", "vmscope"]


def run(*arguments: str, status: int = 0) -> str:
    """What it prints. AssertionError when the status is another, or when it complains without reason."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    if status == 0:
        assert done.stderr == ""
        return done.stdout
    assert done.stderr.startswith("vmscope: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def on_terminal(*arguments: str, columns: int, env: Mapping[str, str] | None = None) -> str:
    """What it writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    ioctl(ours, TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    environment.update({"TERM": "xterm", **(env or {})})
    with subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, env=environment) as child:
        os.close(theirs)
        text = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            text += more
        assert child.wait(30) == 0
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


def wait_for_counter(pid: int, name: str, value: int) -> None:
    """Until the mirror has carried the value into the region."""
    with vmscope.vm(pid) as vm:
        wait_for(lambda: vm.values().get(name) == value, lambda: f"{name}: {vm.values().get(name)}, not {value}")


def rows(*arguments: str) -> dict[int, dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("ps", "--json", *arguments))
    return {row["pid"]: row for row in found}


# -- ps -------------------------------------------------------------------------------------------


def test_ps_lists_python_and_java(start_vmscope: StartVMScope, jvm: JVM) -> None:
    child = start_vmscope(code="vmscope.counter('ps.test')")
    lines = run("ps", str(child.pid), str(jvm.pid)).splitlines()
    assert lines[0].split() == ["PID", "USER", "KIND", "VERSION", "UPTIME", "THR", "RSS", "CPU%", "MAIN"]
    by_pid = {int(line.split()[0]): line.split() for line in lines[1:]}
    assert sorted(by_pid) == sorted([child.pid, jvm.pid])
    assert by_pid[child.pid][2].rstrip("*") == "CPython"
    assert by_pid[child.pid][-1] == "-c"
    assert by_pid[jvm.pid][2] == "HotSpot"
    assert by_pid[jvm.pid][-1] == "Main"
    assert lines[1:] == sorted(lines[1:], key=lambda line: int(line.split()[0]))
    end_of_pid = lines[0].index("PID") + 3
    assert [line for line in lines[1:] if not (line[end_of_pid - 1].isdigit() and line[end_of_pid] == " ")] == []


def test_ps_as_json(start_vmscope: StartVMScope, jvm: JVM) -> None:
    child = start_vmscope()
    found = rows()
    mine, java = found[child.pid], found[jvm.pid]
    assert mine["kind"] == "CPython"
    assert mine["state"] == java["state"] == "live"
    assert mine["version"] == "{}.{}.{}".format(*sys.version_info[:3])
    assert java["kind"] == "HotSpot"
    assert mine["path"].endswith(f"/{child.pid}")
    for row in (mine, java):
        assert row["threads"] >= 1
        assert 1 << 20 < row["rss"] < 1 << 40
        assert 0 <= row["cpu"] < 600
        assert 0 < row["uptime"] < 86400
    assert list(found) == sorted(found)


@pytest.mark.parametrize("key", ["uptime", "threads", "rss", "cpu"])
def test_ps_sorts_the_largest_first(start_vmscope: StartVMScope, jvm: JVM, key: str) -> None:
    start_vmscope()
    values = [row[key] for row in rows(f"--sort={key}").values()]
    assert len(values) >= 2
    assert values == sorted(values, reverse=True)
    names = [row["main"] for row in rows("--sort=main").values()]
    assert names == sorted(names)


def test_ps_on_a_terminal(start_vmscope: StartVMScope) -> None:
    child = start_vmscope()
    narrow = on_terminal("ps", str(child.pid), columns=40)
    assert narrow.startswith("\x1b[1m")
    assert [
        line for line in narrow.splitlines() if len(line.removeprefix("\x1b[1m").removesuffix("\x1b[0m")) > 40
    ] == []
    assert "…" in narrow
    wide = on_terminal("ps", str(child.pid), columns=200)
    assert "…" not in wide
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal("ps", str(child.pid), columns=200, env=plain)
    assert "…" in on_terminal("ps", str(child.pid), columns=200, env={"COLUMNS": "30"})
    assert "\x1b" not in run("ps", str(child.pid))


def test_ps_watches(start_vmscope: StartVMScope) -> None:
    child = start_vmscope()
    with Child([*COMMAND, "ps", "--watch=0.1", str(child.pid)]) as watching:
        for _ in range(3):
            watching.read_until(b"MAIN\n")
            assert watching.readline().split()[0] == str(child.pid)
        watching.process.send_signal(signal.SIGINT)
        assert watching.process.wait(20) == 0


def test_ps_of_what_is_no_vm(start_vmscope: StartVMScope) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            text = run("ps", str(process.pid), status=1)
        finally:
            process.kill()
    assert f"process {process.pid} publishes no region" in text
    assert "there is no process 2147483647" in run("ps", "2147483647", status=1)
    child = start_vmscope()
    done = subprocess.run([*COMMAND, "ps", str(child.pid), "2147483647"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 2  # the one that there is
    assert done.stderr.count("\n") == 1


def test_ps_shows_stale_regions_when_asked(start_python: StartPython, private_user: User) -> None:
    """In another user's directory, where no other test's VM cleans up."""
    code = "import sys, vmscope\nvmscope.start()\nprint('ready', flush=True)\nsys.stdin.read()"
    child = start_python(code, user=private_user, preload=["vmscope.runtime"])
    assert rows()[child.pid]["state"] == "live"
    child.kill()
    assert child.pid not in rows()
    row = rows("--all")[child.pid]
    assert (row["state"], row["rss"], row["user"]) == ("stale", None, private_user.name)
    lines = run("ps", "--all").splitlines()
    assert lines[0].split()[3] == "STATE"
    (line,) = [line for line in lines if line.split()[0] == str(child.pid)]
    assert line.split()[3:8] == ["stale", row["version"], "-", "-", "-"]
    assert "Process not found" in run("ps", str(child.pid), status=1)
    os.unlink(row["path"])


@pytest.mark.parametrize(
    "arguments", [["ps", "-x"], ["ps", "word"], ["ps", "--sort=size"], ["stat"], ["stat", "1", "2", "3", "4"]]
)
def test_bad_command_lines(arguments: list[str]) -> None:
    assert "--help" in run(*arguments, status=2) or "use one of" in run(*arguments, status=2)


@pytest.mark.parametrize(
    "arguments", [["ps", "-h"], ["stat", "1", "--help"], ["counters", "1", "-h", "x"], ["run", "-h"], ["cmd", "--help"]]
)
def test_help_is_shown_wherever_it_is_asked_for(arguments: list[str]) -> None:
    assert run(*arguments).startswith(f"usage: vmscope {arguments[0]} ")


def test_help_after_a_program_is_the_program_s() -> None:
    assert run("run", "-c", "import sys; print(sys.argv[1:])", "--help") == "['--help']\n"


# -- stat -----------------------------------------------------------------------------------------


def test_stat_of_python(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(code="import gc; gc.disable()")
    for generation in (0, 1, 1, 2, 2, 2):
        child.ask(f"gc.collect({generation})")
    before = [int(child.ask(f"gc.get_stats()[{generation}]['collections']")) for generation in range(3)]
    wait_for_counter(child.pid, "sun.gc.collector.1.invocations", before[2])
    line = json.loads(run("stat", "--json", str(child.pid)))
    assert [line[f"generation_{generation}_collections"] for generation in range(3)] == before
    assert [generation for generation in range(3) if line[f"generation_{generation}_seconds"] <= 0] == []
    assert 0 <= line["gc_share"] < 1
    assert line["threads"] >= 1
    header, values = (text.split() for text in run("stat", str(child.pid)).splitlines())
    assert header == "UPTIME GEN0 TIME GEN1 TIME GEN2 TIME GC% THR RSS CPU% MAIN".split()
    assert [int(values[position]) for position in (1, 3, 5)] == before
    assert values[7].endswith("%")


def test_threads_are_the_programs(start_vmscope: StartVMScope) -> None:
    """Those of vmscope are not counted."""
    child = start_vmscope(code="import threading; over = threading.Event()")

    def wait_for_threads(number: int) -> None:
        with vmscope.vm(child.pid) as vm:  # the twin's sampler looks at a program that does something
            wait_for(lambda: child.ask("sum(range(10**6))") and vm.values()["java.threads.live"] == number)
        line = json.loads(run("stat", "--json", str(child.pid)))
        assert (rows()[child.pid]["threads"], line["threads"]) == (number, number)

    wait_for_threads(1)
    child.ask("[threading.Thread(target=over.wait).start() for _ in range(3)]")
    wait_for_threads(4)
    child.ask("over.set()")
    wait_for_threads(1)


def test_stat_of_a_jvm(jvm: JVM) -> None:
    jvm.collect(2)
    line = json.loads(run("stat", "--json", str(jvm.pid)))
    gcutil = jvm.jdk.run("jstat", "-gc", str(jvm.pid)).stdout.splitlines()
    theirs = dict(zip(gcutil[0].split(), gcutil[1].split(), strict=True))
    assert line["full_collections"] == float(theirs["FGC"])
    assert line["young_collections"] == float(theirs["YGC"])
    assert line["full_seconds"] == pytest.approx(float(theirs["FGCT"]), abs=0.001)
    assert line["old_bytes"] / 1024 == pytest.approx(float(theirs["OU"]), abs=0.1)
    assert line["meta_bytes"] / 1024 == pytest.approx(float(theirs["MU"]), abs=0.1)
    used = sum(float(theirs[name]) for name in ("EU", "S0U", "S1U", "OU"))
    capacity = sum(float(theirs[name]) for name in ("EC", "S0C", "S1C", "OC"))
    assert line["heap_bytes"] / 1024 == pytest.approx(used, rel=0.05)
    assert line["heap_capacity_bytes"] / 1024 == pytest.approx(capacity, abs=0.5)
    header, values = (text.split() for text in run("stat", str(jvm.pid)).splitlines())
    assert header == "UPTIME YOUNG TIME FULL TIME CONC TIME GC% EDEN OLD META HEAP OF THR RSS CPU% MAIN".split()
    assert len(values) == len(header)


def test_stat_samples_at_intervals(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(code="import time")
    begin = time.monotonic()
    with Child([*COMMAND, "stat", "--json", str(child.pid), "300ms", "4"]) as watching:
        first = json.loads(watching.readline())
        end = time.monotonic() + 0.5
        child.ask(f"[None for _ in iter(lambda: time.monotonic() < {end}, False)] and 1")  # half a second of work
        others = [json.loads(watching.readline()) for _ in range(3)]
        assert watching.process.wait(20) == 0
    assert time.monotonic() - begin >= 0.9
    ages = [line["uptime_seconds"] for line in (first, *others)]
    assert [(earlier, later) for earlier, later in itertools.pairwise(ages) if not (0.2 < later - earlier < 3)] == []
    shares = [line["cpu_share"] for line in others]
    assert max(shares) > 0.1  # one core, as far as this machine is free
    assert max(shares) < 1.5


def test_stat_ends_with_its_vm(start_vmscope: StartVMScope) -> None:
    child = start_vmscope()
    with Child([*COMMAND, "stat", str(child.pid), "0.1"]) as watching:
        header = watching.readline()
        assert header.split()[0] == "UPTIME"
        first = watching.readline()
        assert first.index("-c") == header.index("MAIN")  # the columns stand still from line to line
        child.kill()
        assert watching.process.wait(20) == 0


def test_stat_of_a_saved_region(tmp_path: Path) -> None:
    paths = corpus.write(tmp_path)
    line = json.loads(run("stat", "--json", f"file:{paths['17.0.15-debian-serial']}"))
    assert line["young_collections"] > 0
    assert line["threads"] is None
    assert line["cpu_share"] is None
    assert line["uptime_seconds"] > 0


def test_a_second_pid_is_not_taken_as_an_interval() -> None:
    error = run("stat", "4711", "4712", status=2)
    assert error == (
        "vmscope: stat takes an interval after the PID, not 4712 "
        "(write 4711,4712 for both VMs, 4712s for an interval)\n"
    )


# -- counters -------------------------------------------------------------------------------------


def test_counters(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(code="c = vmscope.counter('people.count', units=vmscope.Units.BYTES); c.add(1234567)")
    wait_for_counter(child.pid, "people.count", 1234567)
    assert run("counters", str(child.pid), "people") == "COUNTER       VALUE\npeople.count  1,234,567 bytes\n"
    assert json.loads(run("counters", "--json", str(child.pid), "people.*")) == {"people.count": 1234567}
    everything = json.loads(run("counters", "--json", str(child.pid)))
    assert everything["java.property.java.vm.name"] == "CPython"
    assert list(everything) == sorted(everything)
    shown = run("counters", str(child.pid)).splitlines()
    assert len(shown) == len(everything) + 1
    error = run("counters", str(child.pid), "people.nobody", status=1)
    assert error.startswith(f"vmscope: no counter of {child.pid} is called people.nobody")


def test_floats_are_numbers_for_us_and_bits_for_the_jdk(start_vmscope: StartVMScope, jdk17: JDK) -> None:
    child = start_vmscope(
        code="""
c = vmscope.counter('people.sold').labels(what='tea')
c.add(1200)
c.add(0.5)
g = vmscope.float_gauge('people.load', units=vmscope.Units.BYTES)
g.set(-0.25)
vmscope.float_gauge('people.most').set(float('inf'))
"""
    )
    wait_for_counter(child.pid, "people.most#f64", bits(math.inf))
    assert json.loads(run("counters", "--json", str(child.pid), "people")) == {
        "people.load": -0.25,
        "people.most": "inf",
        "people.sold": 0,
        'people.sold{what="tea"}': 1200.5,
    }
    shown = run("counters", str(child.pid), "people")
    assert re.search(r"^people\.load +-0\.25 bytes$", shown, re.MULTILINE)
    assert re.search(r'^people\.sold{what="tea"} +1,200\.5$', shown, re.MULTILINE)
    printed = jdk17.run("jcmd", str(child.pid), "PerfCounter.print").stdout
    assert f"people.load#f64={bits(-0.25)}\n" in printed
    assert f'people.sold{{what="tea"}}=1200\npeople.sold{{what="tea"}}#f64={bits(0.5)}\n' in printed
    assert (
        f"people.load#f64={bits(-0.25)}\n"
        in jdk17.run("jstat", "-J-Djstat.showUnsupported=true", "-snap", str(child.pid)).stdout
    )


def bits(number: float) -> int:
    return int(struct.unpack("q", struct.pack("d", number))[0])


def test_labels_that_are_numbers_stand_by_size(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(
        code="""
d = vmscope.histogram("people.delay", bounds=[0.5, 2.5, 10])
c = vmscope.counter("people.codes")
for code in ("nan", "10", "2", "none"):
    c.labels(code=code).inc()
d.observe(3)
"""
    )
    wait_for_counter(child.pid, "people.delay.sum", 3_000_000_000)
    shown = [line.split()[0] for line in run("counters", str(child.pid), "people.*").splitlines()[1:]]
    assert shown == [
        "people.codes",
        *(f'people.codes{{code="{code}"}}' for code in ("2", "10", "nan", "none")),
        *(f'people.delay.bucket{{le="{bound}"}}' for bound in ("0.5", "2.5", "10.0", "+Inf")),
        "people.delay.sum",
    ]


def test_a_time_behind_watch_is_not_taken_as_a_pid() -> None:
    error = run("counters", "--watch", "2", "12345", status=2)
    assert error == "vmscope: counters takes a counter's name, not 12345 (write --watch=2)\n"
    error = run("counters", "4711", "12345", status=2)
    assert error == "vmscope: counters takes a counter's name, not 12345 (write 4711,12345 for both VMs)\n"


def test_counters_of_a_jvm_agree_with_jcmd(jvm: JVM) -> None:
    ours = json.loads(run("counters", "--json", str(jvm.pid)))
    theirs = {}
    for line in jvm.jdk.run("jcmd", str(jvm.pid), "PerfCounter.print").stdout.splitlines()[1:]:
        name, _, value = line.partition("=")
        theirs[name] = value[1:-1] if value.startswith('"') else int(value)
    added = {name for name in theirs if name.startswith("sun.perfdata.")}  # by the JDK's reader, not by the VM
    assert set(theirs) - added == set(ours)
    still = [name for name in ours if isinstance(ours[name], str) or "apacity" in name or "createVm" in name]
    assert len(still) > 50
    assert {name: ours[name] for name in still} == {name: theirs[name] for name in still}


def test_counters_watches_what_moves(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(code="c = vmscope.counter('people.moving'); vmscope.gauge('people.still')")
    wait_for_counter(child.pid, "people.still", 0)
    with Child([*COMMAND, "counters", "--watch=0.8", str(child.pid), "people"]) as watching:
        assert watching.read_until(b"VALUE\n").split() == [b"COUNTER", b"A", b"SECOND", b"VALUE"]
        watching.read_until(b"people.still")
        child.ask("c.add(1000)")
        second = watching.read_until(b"people.still").decode()
        while "people.moving" not in second or "+" not in second:
            second = watching.read_until(b"people.still").decode()
        rate = float(second[second.index("+") :].split()[0].replace(",", ""))
        assert 0 < rate < 1400
        watching.process.send_signal(signal.SIGINT)
        assert watching.process.wait(20) == 0


def test_errors_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "nothing"
    path.write_bytes(b"nothing of the kind" * 300)
    for command in ("stat", "counters"):
        assert "there is no process 2147483647" in run(command, "2147483647", status=1)
        assert "no region" in run(command, f"file:{path}", status=1)
        assert "File not found" in run(command, f"file:{path}x", status=1)
        assert "no VM is called 'no/such/word'" in run(command, "no/such/word", status=1)
        for nothing in ("", ",", "2147483647,"):
            assert "takes a pid, or the name of a program, not ''" in run(command, nothing, status=2)


@pytest.mark.parametrize(
    "words",
    [
        *(["ps"], ["stat", "PID"], ["counters", "PID"], ["cmd", "PID", "VM.version"], ["attach", "PID"], ["help"]),
        *(["jps"], ["jstat", "-gc", "PID"], ["jcmd", "PID", "VM.version"], ["autostart", "status"], ["ps", "--help"]),
    ],
    ids=" ".join,
)
def test_output_that_cannot_be_written(start_vmscope: StartVMScope, words: list[str]) -> None:
    pid = str(start_vmscope().pid)
    command = [*COMMAND, *(word.replace("PID", pid) for word in words)]
    ours, theirs = os.pipe()
    os.close(ours)  # the reader has gone
    for redirection, reason in (
        (">/dev/full", "No space left on device"),
        (">&-", "it is closed"),
        ("", "Broken pipe"),
    ):
        shell = ["sh", "-c", f'"$@" {redirection}', "sh", *command]
        done = subprocess.run(shell, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        expected = f"vmscope: standard output cannot be written: {reason}\n"
        assert (done.returncode, done.stderr) == (1, expected), redirection
    os.close(theirs)


def test_a_reader_that_closes_the_pipe(start_vmscope: StartVMScope) -> None:
    child = start_vmscope()
    done = subprocess.run(
        ["sh", "-c", '"$@" | head -n 1', "sh", *COMMAND, "counters", str(child.pid)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.split(), done.stderr) == (["COUNTER", "VALUE"], "")


def test_what_does_not_work_in_a_vm_is_its_reason(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(
        code="from vmscope import runtime\nruntime.VM.note_problem('the agent shop cannot be loaded')"
    )
    reason = wait_for(lambda: json.loads(run("ps", "--json", str(child.pid)))[0]["reason"])
    assert reason == "the agent shop cannot be loaded"
    line = run("ps", str(child.pid)).splitlines()
    assert line[0].split()[-1] == "REASON"
    assert line[1].endswith("  the agent shop cannot be loaded")
