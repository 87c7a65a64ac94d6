"""A started process: start, stop, status, private memory, saving, exit, the collector. On both forms."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import vmscope
from tests import programs, sandbox
from tests.conftest import StartPython, StartVMScope
from tests.sandbox import answers
from tests.support import JDK, User
from tests.wait import wait_for
from vmscope import native
from vmscope.errors import NoRegion
from vmscope.wire.decode import decode

TMP = "mount -t tmpfs -o mode=1777 tmpfs /tmp\n"
DIRECTORY = TMP + "mkdir -m 755 /tmp/hsperfdata_root\n"

pytestmark = pytest.mark.usefixtures("implementation")


def saved(path: Path) -> dict[str, int | str]:
    """The values in a saved region, which must be whole."""
    data = path.read_bytes()
    decoded = decode(data)
    assert decoded.prologue.accessible
    assert len(decoded.entries) == decoded.prologue.num_entries
    return decoded.values(data)


# -- start, status, stop --------------------------------------------------------------------------


def test_the_life_of_a_region(implementation: str) -> None:
    code = programs.source("runtime/life")
    idle = {"running": False, "own": False, "there": False, "capacity": 0, "used": False}
    live = {"running": True, "own": True, "there": True, "reason": "", "capacity": 32768, "used": True}
    stopped = {**idle, "reason": "vmscope.stop() was called"}
    wanted = [
        {**idle, "reason": "vmscope.start() was not called"},
        live,
        live,
        stopped,
        stopped,
        {**live, "capacity": 65536},
    ]
    assert answers(code) == [{**row, "implementation": implementation, "count": i} for i, row in enumerate(wanted)]


def test_status_shows_itself() -> None:
    (answer,) = answers("vmscope.start('-XX:-UsePerfData')\nanswer(text=repr(vmscope.status()))")
    lines = answer["text"].splitlines()
    assert lines[:2] == ["<vmscope.Status: running", "  region          no file: switched off by -XX:-UsePerfData"]
    assert lines[2].startswith("  socket          /tmp/.java_pid")
    assert lines[3] == "  options         -XX:-UsePerfData"
    assert lines[-1].endswith(">")
    assert [line for line in lines if len(line) > 80] == []


def test_a_bad_option_starts_nothing() -> None:
    code = """
        for options in (["-XX:+Nothing"], ["-XX:PerfDataMemorySize=1"]):
            try:
                vmscope.start(*options)
            except vmscope.VMScopeError as error:
                answer(error=type(error).__name__, running=vmscope.status().running)
        vmscope.start()
        answer(path=vmscope.status().path is not None)
    """
    failed = {"error": "OptionError", "running": False}
    assert answers(code) == [failed, failed, {"path": True}]


def test_a_program_that_took_a_standard_name() -> None:
    """The error comes out of start(), and leaves nothing behind."""
    code = """
        import gc
        vmscope.gauge("sun.gc.collector.0.time")
        try:
            vmscope.start()
        except vmscope.VMScopeError as error:
            answer(error=str(error), running=vmscope.status().running, callbacks=len(gc.callbacks),
                   left=os.path.exists(f"/tmp/hsperfdata_{_directory.user_name(os.geteuid())}/{os.getpid()}"))
    """
    error = "sun.gc.collector.0.time exists as a gauge and cannot be this counter"
    assert answers(code) == [{"error": error, "running": False, "callbacks": 0, "left": False}]


def test_the_second_start_shows_its_own_options(tmp_path: Path) -> None:
    code = """
        vmscope.start("-Dfirst=1", "-XX:PerfMaxStringConstLength=32")
        vmscope.stop()
        vmscope.start("-Dsecond=2", "-XX:PerfDataSaveFile=saved")
        vmscope.stop()
    """
    assert answers(code, "x" * 100, cwd=tmp_path) == []
    values = saved(tmp_path / "saved")
    assert values["java.rt.vmArgs"] == "-Dsecond=2 -XX:PerfDataSaveFile=saved"
    assert values["sun.rt.javaCommand"] == f"-c {'x' * 100}"


def test_options_of_the_environment_are_silent_in_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VMSCOPE_TOOL_OPTIONS", "-XX:PerfDataMemorySize=128k")
    assert answers("vmscope.start()\nanswer(capacity=vmscope.status().capacity)") == [{"capacity": 131072}]


def test_tmpdir_does_not_move_the_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.setenv(name, str(tmp_path))
    code = 'vmscope.start("-Djava.io.tmpdir=/x")\nanswer(path=vmscope.status().path)'
    (answer,) = answers(code)
    assert answer["path"].startswith("/tmp/hsperfdata_")
    assert list(tmp_path.iterdir()) == []


def test_a_started_process_as_its_reader_sees_it(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(
        "-XX:PerfDataSamplingInterval=5",
        code="""
count = vmscope.counter("test.count", units=vmscope.Units.EVENTS)
depth = vmscope.gauge("test.depth")
state = vmscope.text("test.state", capacity=8)
build = vmscope.constant("test.build", "2026.11")
""",
    )
    with vmscope.vm(child.pid) as vm:
        assert vm.kind == "CPython"
        values = vm.values
        wait_for(lambda: values().get("test.build") == "2026.11")
        child.ask("[count.add(3), depth.set(-7), state.set('open')]")
        wait_for(lambda: (values()["test.count"], values()["test.depth"], values()["test.state"]) == (3, -7, "open"))
        child.ask("state.set('ö' * 10)")
        wait_for(lambda: values()["test.state"] == "ö" * 4)
        assert child.ask("vmscope.stop()") == "None"
    assert not os.path.exists(f"/tmp/hsperfdata_{vm.user}/{child.pid}")
    assert child.ask("count.inc() or count.value") == "4"
    assert child.stop() == 0


def test_half_an_entry_is_never_seen(start_vmscope: StartVMScope) -> None:
    """A reader that looks without pause, while counters are added without pause."""
    child = start_vmscope(
        "-XX:PerfDataMemorySize=2m",
        "-XX:PerfDataSamplingInterval=1",
        code="""
import threading
def add():
    for i in range(8000):
        name, text = f"test.{i}." + "x" * (i * 7 % 60), f"text.{i}." + "y" * (i * 11 % 60)
        if i % 3:
            vmscope.counter(name).add(i + 1)
        else:
            vmscope.constant(name, text)
thread = threading.Thread(target=add)
""",
    )
    (path,) = Path("/tmp").glob(f"hsperfdata_*/{child.pid}")
    seen: set[str] = set()
    sizes: set[int] = set()
    with path.open("rb", buffering=0) as file:
        child.ask("thread.start()")
        deadline = time.monotonic() + 30
        while len(seen) < 8000 and time.monotonic() < deadline:
            data = os.pread(file.fileno(), 2 << 20, 0)
            values = native.read(data, 32, sys.byteorder == "big")
            (num_entries,) = struct.unpack_from("=i", data, 28)
            assert num_entries <= len(values)
            sizes.add(len(values))
            for name in values.keys() - seen:
                if name.startswith("test."):
                    seen.add(name)
                    i = int(name.split(".")[1])
                    assert name == f"test.{i}." + "x" * (i * 7 % 60)
                    value = values[name]
                    assert value in (0, i + 1) if i % 3 else value == f"text.{i}." + "y" * (i * 11 % 60)
    assert len(seen) == 8000
    assert len(sizes) > 1, "the reader was there while they were added"
    assert child.ask("thread.join() or vmscope.status().overflow") == "0"


@pytest.mark.parametrize("size", ["1k", "32k", "64k", "16m"])
def test_the_jdks_tools_read_every_size(jdk: JDK, start_vmscope: StartVMScope, size: str) -> None:
    options = f"-XX:PerfDataMemorySize={size}", "-XX:PerfDataMemoryLimit=1k"  # it does not grow
    child = start_vmscope(*options, code="vmscope.counter('test.size').add(42)")
    asked = {"1k": 4096, "32k": 32768, "64k": 65536, "16m": 1 << 24}[size]
    assert child.ask("vmscope.status().capacity") == str(asked)
    assert f"{child.pid} -c" in jdk.run("jps", "-l").stdout.splitlines()
    jstat = jdk.run("jstat", "-gcutil", str(child.pid))
    assert (jstat.returncode, jstat.stderr) == (0, "")
    assert jstat.stdout.split()[:6] == ["S0", "S1", "E", "O", "M", "CCS"]
    assert len(jstat.stdout.splitlines()) == 2
    wait_for(lambda: size == "1k" or vmscope.vm(child.pid).values().get("test.size") == 42)
    jcmd = jdk.run("jcmd", str(child.pid), "PerfCounter.print")
    assert jcmd.returncode == 0, jcmd.stderr
    printed = jcmd.stdout.splitlines()
    assert "sun.os.hrt.frequency=1000000000" in printed
    assert ("test.size=42" in printed) == (size != "1k"), "which the standard counters fill"
    assert f'java.rt.vmArgs="{" ".join(options)}"' in printed


# -- private memory -------------------------------------------------------------------------------

PRIVATE = programs.source("runtime/private")


def private(mounts: str = TMP, before: str = "", options: tuple[str, ...] = ()) -> Any:
    """What PRIVATE answers: all kinds count while it runs, after the stop, and from zero in a forked child."""
    start = f"from vmscope.wire.decode import decode\nos.chdir('/mnt')\nOPTIONS = {options!r}\n"
    code = start + dedent(before) + dedent(PRIVATE)
    answer = json.loads(sandbox.run(code, mounts=f"{mounts}\nmount -t tmpfs tmpfs /mnt"))
    assert answer["path"] is None
    assert answer["running"] == [2, 1, -3, "x", 7]
    assert answer["stopped"] == [3, 2, -3, "x", 7]
    assert answer["child"] == 5
    return answer


NO_USER = """
import pwd
def nobody(uid):
    raise KeyError(uid)
pwd.getpwuid = nobody
"""

LOCKED = """
held = open(f"/tmp/hsperfdata_root/{os.getpid()}", "w")
fcntl.flock(held, fcntl.LOCK_EX)
"""


@pytest.mark.parametrize(
    ("mounts", "before", "reason", "level"),
    [
        (TMP, NO_USER, "no passwd entry was found for user id 0", "DEBUG"),
        (TMP + "mkdir -m 777 /tmp/hsperfdata_root", "", "can be written by others", "DEBUG"),
        (TMP + "mkdir /tmp/x; ln -s x /tmp/hsperfdata_root", "", "is a symbolic link", "DEBUG"),
        (
            DIRECTORY,
            "open('/tmp/x', 'w'); os.link('/tmp/x', f'/tmp/hsperfdata_root/{os.getpid()}')",
            "is a file of 2 hard links",
            "DEBUG",
        ),
        (DIRECTORY, LOCKED, "is in use by another VM", "DEBUG"),
        ("mount -t tmpfs -o size=48k tmpfs /tmp", "", "No space left on device", "WARNING"),
        (TMP + "mount -o remount,ro /tmp", "", "/tmp is read-only", "DEBUG"),
        (
            TMP + "mkdir /tmp/etc; cp /etc/passwd /tmp/etc",
            "os.chroot('/tmp'); os.chdir('/')",
            "/tmp does not exist",
            "",  # the module that logs cannot be imported any more
        ),
    ],
    ids=["no user", "insecure", "symlink", "hard link", "locked", "full", "read-only", "no tmp"],
)
def test_private_memory(mounts: str, before: str, reason: str, level: str) -> None:
    answer = private(mounts, before)
    assert reason in answer["reason"]
    assert answer["used"] > 0
    records = [[level, "vmscope", f"no shared region: {answer['reason']}"]]
    if answer["attach_reason"]:
        records.insert(0, ["DEBUG", "vmscope", f"no socket to attach to: {answer['attach_reason']}"])
    assert answer["records"] == (records if level else [])
    values = answer["saved"]
    assert (values["test.early"], values["test.gauge"], values["test.text"]) == (2, -3, "x")
    assert values["sun.os.hrt.ticks"] > 0


def test_shared_memory_switched_off() -> None:
    answer = private(options=("-XX:+PerfDisableSharedMem",))
    assert answer["reason"] == "switched off by -XX:+PerfDisableSharedMem"
    assert answer["used"] > 0
    assert answer["records"] == []
    assert answer["saved"]["test.early"] == 2


def test_no_region_at_all() -> None:
    answer = private(options=("-XX:-UsePerfData",))
    assert answer["reason"] == "switched off by -XX:-UsePerfData"
    assert answer["used"] == 0
    assert answer["records"] == []
    assert answer["saved"] is None


def test_no_memory() -> None:
    limit = """
        import logging, resource
        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (256 << 20), resource.RLIM_INFINITY))
    """
    answer = private(before=limit, options=("-XX:PerfDataMemorySize=1g",))
    assert answer["reason"] == "no memory for the region"
    assert answer["used"] == 0
    assert answer["saved"] is None


def test_no_thread(private_user: User, start_python: StartPython) -> None:
    """A region that nothing keeps current would lie: there is none."""
    child = start_python(
        programs.source("runtime/no_thread"),
        user=private_user,
        preload=["resource", "vmscope.runtime"],
    )
    reason = "no thread can be started to keep the region current: Resource temporarily unavailable"
    line = child.readline()
    assert line.replace("can't start new thread", "Resource temporarily unavailable") == f"None 1 [] {reason}"
    assert child.stop() == 0


# -- logging --------------------------------------------------------------------------------------


def test_what_is_logged() -> None:
    code = """
        import logging
        logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s %(message)s", level=logging.DEBUG)
        vmscope.start()
        print(vmscope.status().path)
    """
    logged, path = sandbox.plain(code).splitlines()
    assert re.fullmatch(rf"DEBUG vmscope region {path}: 65536 bytes, \d+ in use", logged)


@pytest.mark.parametrize("logging", ["", "import logging", "import logging; logging.getLogger('vmscope')"])
def test_nothing_is_printed(logging: str) -> None:
    """Not even by logging's last resort: sandbox.run looks at stderr."""
    code = f"{logging}\nvmscope.start('-XX:PerfDataSaveFile=/nowhere/x')\nvmscope.stop()"
    assert sandbox.run(code, mounts="mount -t tmpfs -o size=48k tmpfs /tmp") == ""


def test_logging_is_not_imported() -> None:
    code = "import sys, vmscope; vmscope.start(); vmscope.stop(); print('logging' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout == "False\n"


# -- saving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["-XX:+PerfDataSaveToFile"], "hsperfdata_{pid}"),
        (["-XX:PerfDataSaveFile=here"], "here"),
        (["-XX:PerfDataSaveFile=a%p-b%p%%"], "a{pid}-b{pid}%"),
        (["-XX:PerfDataSaveFile=%%p%%%p"], "%p%{pid}"),
        (["-XX:+PerfDataSaveToFile", "-XX:PerfDataSaveFile=here"], "here"),
        (["-XX:-PerfDataSaveToFile", "-XX:PerfDataSaveFile=here"], "here"),
    ],
)
def test_saving_at_exit(options: list[str], name: str, tmp_path: Path) -> None:
    code = f"""
        vmscope.start(*{options!r}, "-XX:PerfDataMemorySize=16k")
        counter = vmscope.counter("test.count")
        answer(pid=os.getpid())
        counter.add(12)
        os.chdir("/")
    """
    (answer,) = answers(code, cwd=tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name == name.format(pid=answer["pid"])
    assert path.stat().st_size == 16384
    assert path.stat().st_mode & 0o777 == 0o600
    assert saved(path)["test.count"] == 12


@pytest.mark.parametrize("kind", ["pipe", "terminal", "nothing"])
def test_a_region_is_saved_to_what_has_no_offsets(kind: str, tmp_path: Path, implementation: str) -> None:
    """A named pipe, /dev/stdout and /dev/null, as HotSpot writes them."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = {"pipe": str(pipe), "terminal": "/dev/stdout", "nothing": "/dev/null"}[kind]
    code = f"import vmscope; vmscope.start('-XX:PerfDataSaveFile={path}', '-XX:PerfDataMemorySize=256k')"
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with open(end, "rb") as reader:
        program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        got = b""
        while kind == "pipe" and program.poll() is None:
            got += reader.read() or b""
        got += reader.read() or b""
        output, errors = program.communicate(timeout=60)
    assert (program.returncode, errors) == (0, b"")
    assert len(got + output) == (0 if kind == "nothing" else 256 << 10)
    if kind != "nothing":
        assert decode(got + output).prologue.used > 1000


def test_a_reader_that_goes_does_not_end_the_process_that_saves(tmp_path: Path, implementation: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = f"""
        import signal
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        vmscope.start("-XX:PerfDataSaveFile={pipe}", "-XX:PerfDataMemorySize=1m")
        fd = os.open({str(pipe)!r}, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(fd, True)
        import threading
        def go():
            while not os.read(fd, 1):
                pass
            os.close(fd)
        threading.Thread(target=go).start()
        vmscope.stop()
        sys.exit(3)
    """
    if implementation == "python":
        code = code.replace("SIG_DFL", "SIG_IGN")  # the twin leaves the signal as it is
    process = subprocess.run(sandbox.plain_command(code), capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (3, "")


def test_a_process_that_has_another_user_by_now_ends_in_silence(shared_folder: Path, implementation: str) -> None:
    """It may no longer unlink what it made, and saves where it may."""
    if os.geteuid() != 0:
        pytest.skip("another user: root only")
    code = f"""
        os.chdir({str(shared_folder)!r})
        vmscope.start("-XX:+PerfDataSaveToFile")
        os.setuid(12345)
        sys.exit(3)
    """
    command = sandbox.plain_command(code)
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stdout, process.stderr) == (3, "", "")
    (path,) = shared_folder.iterdir()
    assert path.stat().st_uid == 12345


def test_nothing_is_saved_unasked(tmp_path: Path) -> None:
    answers("vmscope.start()", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_fails_is_logged_and_harms_nothing(tmp_path: Path) -> None:
    code = f"""
        import atexit, logging
        logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s %(message)s")
        atexit.register(lambda: print(os.path.exists(path)))
        vmscope.start("-XX:PerfDataSaveFile={tmp_path}/missing/x")
        path = vmscope.status().path
        sys.exit(7)
    """
    process = subprocess.run(sandbox.plain_command(code), capture_output=True, text=True, timeout=60)
    assert (process.stderr, process.returncode) == ("", 7)
    warning = f"WARNING vmscope the region cannot be saved to {tmp_path}/missing/x: No such file or directory"
    first, second = process.stdout.splitlines()
    assert first == warning
    assert second == "False", "the region's own file went all the same"


def test_the_jdks_jstat_reads_a_saved_region(jdk: JDK, tmp_path: Path) -> None:
    code = """
        import gc
        vmscope.start("-XX:PerfDataSaveFile=saved")
        for i in range(3):
            gc.collect()
    """
    answers(code, cwd=tmp_path)
    jstat = jdk.run("jstat", "-gcutil", f"file://{tmp_path}/saved")
    assert (jstat.returncode, jstat.stderr) == (0, "")
    header, values = (line.split() for line in jstat.stdout.splitlines())
    full = saved(tmp_path / "saved")["sun.gc.collector.1.invocations"]
    assert int(dict(zip(header, values, strict=True))["FGC"]) == full
    assert isinstance(full, int)
    assert full >= 3


# -- the end --------------------------------------------------------------------------------------

ENDS = programs.source("runtime/ends")


UNDER_ASYNCIO = """
import asyncio
async def main():
    import asyncio
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(15, print)
    loop.remove_signal_handler(15)
asyncio.run(main())
os.kill(os.getpid(), 15)
"""


@pytest.mark.parametrize(
    ("end", "status", "left"),
    [
        ("pass", 0, False),
        ("sys.exit(3)", 3, False),
        ("raise ValueError", 1, False),
        ("import signal; signal.raise_signal(signal.SIGINT)", -signal.SIGINT, False),
        ("import signal; signal.signal(15, lambda *x: sys.exit(4)); os.kill(os.getpid(), 15)", 4, False),
        ("import threading; threading.Thread(target=time.sleep, args=[0.1]).start()", 0, False),
        ("import _thread; _thread.start_new_thread(time.sleep, (60,))", 0, False),
        ("vmscope.stop(); os._exit(5)", 5, False),
        ("os._exit(5)", 5, False),
        ("import signal; os.kill(os.getpid(), 15)", -signal.SIGTERM, "python"),
        ("import signal; signal.signal(15, signal.SIG_DFL); os.kill(os.getpid(), 15)", -signal.SIGTERM, "python"),
        ("from signal import *; signal(1, signal(1, print)); raise_signal(1)", -signal.SIGHUP, "python"),
        (UNDER_ASYNCIO, -signal.SIGTERM, "python"),
        ("os.kill(os.getpid(), 9)", -signal.SIGKILL, True),
        ("os.abort()", -signal.SIGABRT, "python"),
        ("os.execv('/bin/true', ['true'])", 0, False),
        ("os.execlp('true', 'true')", 0, False),
        ("os.execve(os.open('/bin/true', os.O_RDONLY), ['true'], {})", 0, False),
        ("import ctypes; ctypes.CDLL(None).execv(b'/bin/true', (ctypes.c_char_p * 2)(b'true', None))", 0, True),
    ],
)
def test_how_a_process_ends(end: str, status: int, left: bool | str, implementation: str) -> None:
    """A file that could not be unlinked is cleaned away by the next VM that starts.

    The twin cannot act on a fatal signal, and takes SIGTERM under `vmscope run` alone.
    """
    code = dedent(ENDS) + dedent(f"""
        import resource
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.mkdir("/tmp/hsperfdata_root", 0o755)
        first = child({end!r})
        answer(first=first, second=child("pass"), tree=tree())
    """)
    answer = json.loads(sandbox.run(code, mounts=TMP))
    assert answer == {
        "first": [status, left in (True, implementation)],
        "second": [0, False],
        "tree": ["/tmp/hsperfdata_root"],
    }


def test_exec_that_fails_leaves_the_process_published(implementation: str) -> None:
    code = programs.source("runtime/exec_fails")
    assert json.loads(sandbox.run(dedent(code), mounts=TMP)) == {"path": True, "left": True}


def test_a_process_that_becomes_another_program_publishes_again() -> None:
    """exec keeps the pid, and the former program's file is not in the way."""
    code = """
        if os.environ.get("AGAIN"):
            vmscope.start()
            answer(path=vmscope.status().path, pid=os.getpid())
        else:
            vmscope.start()
            answer(path=vmscope.status().path, pid=os.getpid())
            os.environ["AGAIN"] = "1"
            os.execv(sys.executable, sys.orig_argv)
    """
    first, second = answers(code)
    assert first == second
    assert first["path"].endswith(f"/{first['pid']}")


def test_a_file_that_a_tmp_cleaner_removed() -> None:
    """What has come to stand in its place is neither written nor unlinked."""
    code = programs.source("runtime/removed_file")
    assert answers(code) == [{"count": 1, "there": "somebody else's"}]


@pytest.mark.parametrize(
    "what", ["os.unlink(path)", "os.truncate(path, 100)", "os.unlink(path); os.fork() or os._exit(0)"]
)
def test_a_file_that_is_lost_is_made_anew(what: str) -> None:
    """Removed or cut short by another program, which the mirror sees, also where it starts after a fork."""
    code = f"""
        vmscope.start()
        path = vmscope.status().path
        counter = vmscope.counter("test.count")
        {what}
        from tests.wait import wait_for
        wait_for(lambda: any("it was made anew" in problem for problem in vmscope.status().problems), vmscope.status)
        counter.add(7)
        with vmscope.vm("self") as vm:
            wait_for(lambda: vm.values()["test.count"] == 7)
            problem = vm.values()["vmscope.problem"]
        answer(same=vmscope.status().path == path, size=os.stat(path).st_size, problem=problem.partition(path)[2])
        vmscope.stop()
        answer(left=os.path.exists(path))
    """
    cause = "cut short" if "truncate" in what else "removed"
    found = {"same": True, "size": 65536, "problem": f" was {cause} by another program: it was made anew"}
    assert answers(code) == [found, {"left": False}]


@pytest.mark.parametrize("what", ["path, path + '.moved'", "os.path.dirname(path), '/tmp/moved'"])
def test_a_file_that_was_moved_away_is_made_anew(what: str, implementation: str) -> None:
    """Or its folder."""
    if implementation != "c":
        pytest.skip("the twin does not look at names")
    code = f"""
        vmscope.start()
        path = vmscope.status().path
        os.rename({what})
        end = time.monotonic() + 30
        while not any("it was made anew" in problem for problem in vmscope.status().problems):
            assert time.monotonic() < end, vmscope.status()
            time.sleep(0.01)  # the mirror notices it
        answer(same=vmscope.status().path == path, there=os.path.exists(path))
    """
    assert json.loads(sandbox.run(dedent(code), mounts=TMP)) == {"same": True, "there": True}  # in a /tmp of its own


def was_made_anew(pid: int, path: Path) -> bool:
    """Whether the region says so itself."""
    try:
        with vmscope.vm(pid) as vm:
            return vm.problem == f"{path} was removed by another program: it was made anew"
    except NoRegion:
        return False


def test_a_file_that_is_lost_while_nothing_runs(start_python: StartPython) -> None:
    """The program sleeps in C: another process finds it again."""
    code = "import vmscope; vmscope.start(); print(vmscope.status().path, flush=True); input()"
    child = start_python(code, ready=False)
    path = Path(child.readline())
    path.unlink()
    wait_for(lambda: was_made_anew(child.pid, path))


def test_a_file_that_is_lost_while_its_thread_opens_it(start_python: StartPython, implementation: str) -> None:
    if implementation == "c":
        pytest.skip("C is not stopped between these two steps")
    code = programs.source("runtime/lost_while_it_is_opened")
    child = start_python(code, ready=False)
    path = Path(child.readline())

    wait_for(lambda: was_made_anew(child.pid, path))
    child.send("")
    assert child.readline() == "True"


# -- the collector --------------------------------------------------------------------------------


def test_the_collectors_counts_are_cpythons_own(tmp_path: Path) -> None:
    code = programs.source("runtime/collector")
    (answer,) = answers(code, cwd=tmp_path)
    values = saved(tmp_path / "saved")
    for generation, row in enumerate(answer["stats"]):
        collector = (0, 2, 1)[generation]
        own = f"python.gc.generation.{generation}"
        assert values[f"sun.gc.collector.{collector}.name"] == f"generation {generation}"
        assert values[f"sun.gc.collector.{collector}.invocations"] == row["collections"]
        assert values[f"{own}.collected"] == row["collected"]
        assert values[f"{own}.uncollectable"] == row["uncollectable"]
    assert answer["stats"][2]["collections"] >= 6
    assert sum(row["collected"] for row in answer["stats"]) >= 190_000
    full = values["sun.gc.collector.1.time"]
    assert isinstance(full, int)
    assert abs(full - answer["times"][2]) < 0.05 * answer["times"][2]


def test_the_collector_is_followed_while_the_program_runs(start_vmscope: StartVMScope) -> None:
    child = start_vmscope("-XX:PerfDataSamplingInterval=5", code="import gc")
    name = "sun.gc.collector.1.invocations"
    with vmscope.vm(child.pid) as vm:
        values = vm.values
        wait_for(lambda: values()[name] == int(child.ask("gc.get_stats()[2]['collections']")))
        before = values()[name]
        assert isinstance(before, int)
        child.ask("[gc.collect() for i in range(10)]")
        wait_for(lambda: values()[name] == before + 10)
    assert child.ask("vmscope.stop() or gc.callbacks") == "[]"


# -- nothing of ours shows ------------------------------------------------------------------------


def test_what_a_program_sees_of_it(implementation: str) -> None:
    """No thread in threading, one descriptor, no signal handler, no warning."""
    code = """
        import signal, threading
        before = sorted(os.listdir("/proc/self/fd")), threading.enumerate(), threading.active_count()
        handlers = [signal.getsignal(number) for number in signal.valid_signals()]
        vmscope.start("-XX:PerfDataSamplingInterval=1")
        time.sleep(0.1)  # the threads have come by
        after = sorted(os.listdir("/proc/self/fd")), threading.enumerate(), threading.active_count()
        answer(descriptors=len(after[0]) - len(before[0]), threads=before[1:] == after[1:],
               signals=handlers == [signal.getsignal(number) for number in signal.valid_signals()])
    """
    (answer,) = answers(code)
    twin = 4 if sys.version_info >= (3, 13) else 5  # the file, before 3.13 the lock's mapping, the listener's
    assert answer == {"descriptors": 1 if implementation == "c" else twin, "threads": True, "signals": True}


def test_a_program_that_closes_every_descriptor(tmp_path: Path) -> None:
    """As daemons do. Nothing of ours is written into whatever gets the numbers next."""
    code = programs.source("runtime/closes_descriptors")
    assert answers(code, cwd=tmp_path) == [{"clean": True}, {"count": 20, "left": 0}]


def test_children_that_know_nothing_of_it_keep_nothing() -> None:
    """No descriptor and no lock: the region's file can be locked as soon as its owner has ended."""
    code = """
        vmscope.start()
        path = vmscope.status().path
        answer(pid=os.getpid())
        sleeper = subprocess.Popen(["sleep", "60"], stdin=-3, stdout=-3, stderr=-3)
        answer(sleeper=sleeper.pid, left=[name for name in os.listdir(f"/proc/{sleeper.pid}/fd") if int(name) > 2])
        os.kill(os.getpid(), 9)
    """
    process = subprocess.run(sandbox.plain_command(code), capture_output=True, text=True, timeout=60)
    first, second = map(json.loads, process.stdout.splitlines())
    try:
        assert process.returncode == -signal.SIGKILL
        assert second["left"] == []
        paths = [path for path in Path("/tmp").glob(f"hsperfdata_*/{first['pid']}") if path.exists()]
        for path in paths:  # none, where another VM that started has cleaned it away already
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
    finally:
        os.kill(second["sleeper"], signal.SIGKILL)


def test_ten_starts_and_stops_leave_nothing() -> None:
    code = """
        descriptors = len(os.listdir("/proc/self/fd"))
        for i in range(10):
            vmscope.start()
            vmscope.counter(f"test.{i}").inc()
            vmscope.stop()
        answer(descriptors=len(os.listdir("/proc/self/fd")) - descriptors,
               threads=len(os.listdir("/proc/self/task")),
               counts=[vmscope.counter(f"test.{i}").value for i in range(10)])
    """
    assert answers(code) == [{"descriptors": 0, "threads": 1, "counts": [1] * 10}]


def test_a_thread_may_start_it() -> None:
    code = """
        import threading
        thread = threading.Thread(target=vmscope.start)
        thread.start()
        thread.join()
        answer(path=vmscope.status().path is not None)
    """
    assert answers(code) == [{"path": True}]


def test_threads_that_start_and_stop_at_once() -> None:
    code = programs.source("runtime/threads_at_once")
    assert answers(code) == [{"reason": "", "there": True}, {"threads": 1}]
