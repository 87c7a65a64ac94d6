"""Crashes: the region is saved, its file is gone, and the process ends as it would have without vmscope."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from tests import programs
from tests.support import JDK
from vmscope import native
from vmscope.wire.decode import decode

pytestmark = pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="Python code cannot run after a fault")

START = programs.source("fatal/start")

CRASHES = {
    "null": ("ctypes.string_at(0)", signal.SIGSEGV),
    "released": ("libc.memset(None, 0, 8)", signal.SIGSEGV),
    "sigsegv": ("faulthandler._sigsegv()", signal.SIGSEGV),
    "sigfpe": ("faulthandler._sigfpe()", signal.SIGFPE),
    "abort": ("os.abort()", signal.SIGABRT),
    "fatal-error": ("ctypes.pythonapi.Py_FatalError(b'a test')", signal.SIGABRT),
    "stack": ("faulthandler._stack_overflow()", signal.SIGSEGV),
    "sent-fpe": ("os.kill(os.getpid(), signal.SIGFPE)", signal.SIGFPE),
    "sent-ill": ("os.kill(os.getpid(), signal.SIGILL)", signal.SIGILL),
    "sent-bus": ("os.kill(os.getpid(), signal.SIGBUS)", signal.SIGBUS),
    "sent-segv": ("os.kill(os.getpid(), signal.SIGSEGV)", signal.SIGSEGV),
    "thread": (
        "thread = threading.Thread(target=libc.memset, args=(None, 0, 8)); thread.start(); thread.join()",
        signal.SIGSEGV,
    ),
    "bus": (
        "import mmap; file = open('cut', 'w+b'); file.truncate(4096); memory = mmap.mmap(file.fileno(), 4096); "
        "file.truncate(0); memory[0]",
        signal.SIGBUS,
    ),
}

# The order in which faulthandler and vmscope start.
ORDERS = {
    "off": "start()",
    "before": "faulthandler.enable(); start()",
    "after": "start(); faulthandler.enable()",
}


class Crashed:
    """A child that ran to its end: `status` as of wait, `path` of its file, `saved` values or None."""

    def __init__(self, folder: Path, code: str, options: Sequence[str] = (), **environment: str) -> None:
        command = [sys.executable, *options, "-c", START + dedent(code)]
        run = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
        )
        self.status, self.stderr = run.returncode, run.stderr
        first, *self.lines = run.stdout.splitlines() or [""]
        pid, _, path = first.partition(" ")
        assert pid.isdecimal(), run.stderr
        self.pid, self.path = int(pid), Path(path)
        self.file = folder / f"saved-{pid}"

    @property
    def saved(self) -> dict[str, int | str]:
        data = self.file.read_bytes()
        assert len(data) == 65536
        region = decode(data)
        assert len(region.entries) == region.prologue.num_entries
        return region.values(data)

    def check(self, status: int) -> None:
        assert self.status == status, self.stderr
        assert not self.path.exists()
        assert self.saved["test.total"] == 42


@pytest.fixture(autouse=True)
def no_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The children inherit the limit; a test that wants a core raises it again."""
    monkeypatch.delenv("PYTHONFAULTHANDLER", raising=False)
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash(tmp_path: Path, crash: str, order: str) -> None:
    code, signum = CRASHES[crash]
    if (crash, order) == ("fatal-error", "before"):
        pytest.skip("faulthandler takes itself away then, and with it what came after it: the file stays")
    crashed = Crashed(tmp_path, f"{ORDERS[order]}\n{code}")
    crashed.check(-signum)
    expected = int(order != "off" or crash == "fatal-error")
    assert crashed.stderr.count("Fatal Python error") == expected
    elsewhere = crash == "thread" or crash.startswith("sent")  # a sent signal may find the program at its exit
    assert crashed.stderr.count("<module>") == expected or elsewhere


@pytest.mark.parametrize(("options", "environment"), [(["-X", "dev"], {}), ([], {"PYTHONFAULTHANDLER": "1"})])
def test_faulthandler_by_the_command_line(tmp_path: Path, options: list[str], environment: dict[str, str]) -> None:
    crashed = Crashed(tmp_path, "start()\nctypes.string_at(0)", options, **environment)
    crashed.check(-signal.SIGSEGV)
    assert crashed.stderr.count("Fatal Python error: Segmentation fault") == 1


def test_jstat_reads_what_was_saved(tmp_path: Path, jdk: JDK) -> None:
    crashed = Crashed(tmp_path, "start()\nctypes.string_at(0)")
    run = jdk.run("jstat", "-snap", f"file://{crashed.file}")
    assert run.returncode == 0
    assert "test.total=42" in run.stdout.splitlines()


@pytest.mark.parametrize("order", ORDERS)
def test_a_core(tmp_path: Path, order: str) -> None:
    if Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core":
        pytest.skip("cores of this machine go elsewhere")
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        pytest.skip("no cores here")
    code = f"import resource; resource.setrlimit(resource.RLIMIT_CORE, ({hard}, {hard}))\n{ORDERS[order]}\n"
    pid = os.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.dup2(os.open("out", os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(1, 2)
        os.execv(sys.executable, [sys.executable, "-c", START + code + "ctypes.string_at(0)"])
    status = os.waitpid(pid, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGSEGV
    assert os.WCOREDUMP(status)
    assert [core.stat().st_size > 0 for core in tmp_path.glob("core*")] == [True]
    assert (tmp_path / f"saved-{pid}").stat().st_size == 65536


def test_nothing_is_saved_unasked(tmp_path: Path) -> None:
    code = "vmscope.start()\nprint(os.getpid(), vmscope.status().path, flush=True)\nctypes.string_at(0)"
    crashed = Crashed(tmp_path, code)
    assert crashed.status == -signal.SIGSEGV
    assert not crashed.path.exists()
    assert list(tmp_path.iterdir()) == []


def test_private_memory_is_saved(tmp_path: Path) -> None:
    crashed = Crashed(tmp_path, "start('-XX:+PerfDisableSharedMem')\nctypes.string_at(0)")
    assert crashed.status == -signal.SIGSEGV
    assert crashed.saved["test.total"] == 42


def test_the_last_update_is_saved(tmp_path: Path) -> None:
    """Not the state of the mirror's last visit."""
    code = """
    start("-XX:PerfDataSamplingInterval=60000")
    vmscope.gauge("test.last").set(-7)
    vmscope.text("test.text").set("grün")
    ctypes.string_at(0)
    """
    crashed = Crashed(tmp_path, code)
    crashed.check(-signal.SIGSEGV)
    assert (crashed.saved["test.last"], crashed.saved["test.text"]) == (-7, "grün")


# -- several at once, and faults on the way -------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_eight_threads_crash_at_once(tmp_path: Path, order: str) -> None:
    code = f"""
    {ORDERS[order]}
    barrier = threading.Barrier(8)
    def crash():
        barrier.wait()
        libc.memset(None, 0, 8)
    for _ in range(8):
        threading.Thread(target=crash).start()
    """
    for _ in range(5):
        Crashed(tmp_path, code).check(-signal.SIGSEGV)


def test_a_crash_while_others_count_and_make_counters(tmp_path: Path) -> None:
    """The image is whole: no entry is half there."""
    code = """
    start("-XX:PerfDataMemorySize=64k", "-XX:PerfDataMemoryLimit=64k")
    def make():
        for i in range(100_000):
            vmscope.text(f"test.{threading.get_ident()}.{i}").set("x" * (i % 60))
    for _ in range(2):
        threading.Thread(target=make, daemon=True).start()
    time.sleep(0.01)  # the threads are in the middle
    libc.memset(None, 0, 8)
    """
    Crashed(tmp_path, code).check(-signal.SIGSEGV)


GONE = """
from vmscope import native

text = vmscope.text("test.gone", capacity=32000)


def take_away():
    words = ctypes.c_void_p.from_address(id(text) + native.TextSlot.__basicsize__ - 8).value
    text.set("x" * 32000)
    page = (words + 4095) & ~4095
    assert ctypes.string_at(page, 8) == b"x" * 8
    libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(4096), 0)
"""


def test_a_fault_while_saving_does_not_stop_the_rest(tmp_path: Path) -> None:
    """A text whose memory is gone: the refresh faults too, and the dump still comes."""
    code = """
    faulthandler.enable()
    start("-XX:PerfDataSamplingInterval=60000")
    time.sleep(0.3)  # the sampler's first visit is over
    take_away()
    ctypes.string_at(0)
    """
    crashed = Crashed(tmp_path, GONE + dedent(code))
    assert crashed.status == -signal.SIGSEGV
    assert not crashed.path.exists()
    assert crashed.file.stat().st_size == 65536
    assert crashed.stderr.count("Fatal Python error: Segmentation fault") == 1
    assert "string_at" in crashed.stderr


def test_a_fault_on_the_mirrors_own_thread(tmp_path: Path) -> None:
    crashed = Crashed(tmp_path, GONE + "start()\ntake_away()\ntime.sleep(20)")
    assert crashed.status == -signal.SIGSEGV
    assert not crashed.path.exists()
    assert crashed.file.stat().st_size == 65536


def test_a_signal_that_the_main_thread_holds_back(tmp_path: Path, handlers: str) -> None:
    """It waits for the main thread, although the mirror's would take it."""
    code = """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGFPE])
    os.kill(os.getpid(), signal.SIGFPE)
    time.sleep(0.2)  # a blocked signal would have its effect by now
    print(os.path.exists(here), flush=True)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGFPE])
    """
    crashed = Crashed(tmp_path, installed(handlers, signal.SIGFPE, 1) + dedent(code))
    crashed.check(7)
    assert crashed.lines == ["True", f"handler {int(signal.SIGFPE)} -1 0 {crashed.pid} 0"]


def test_a_pipe_that_nobody_reads(tmp_path: Path) -> None:
    code = (
        "vmscope.start(f'-XX:PerfDataSaveFile=pipe')\nprint(os.getpid(), vmscope.status().path, flush=True)\nos.abort()"
    )
    os.mkfifo(tmp_path / "pipe")
    crashed = Crashed(tmp_path, code)
    assert crashed.status == -signal.SIGABRT
    assert not crashed.path.exists()


def test_a_stack_overflow_after_autostart(tmp_path: Path) -> None:
    """Which starts on a thread of its own; the alternate stack is the main thread's all the same."""
    code = """
    thread = threading.Thread(target=start); thread.start(); thread.join()
    time.sleep(0.1)  # the thread has armed the handler
    faulthandler._stack_overflow()
    """
    Crashed(tmp_path, code).check(-signal.SIGSEGV)


def test_another_file_of_that_name_stays(tmp_path: Path) -> None:
    code = """
    start()
    path = vmscope.status().path
    os.unlink(path)
    open(path, "w").close()
    ctypes.string_at(0)
    """
    crashed = Crashed(tmp_path, code)
    try:
        assert crashed.status == -signal.SIGSEGV
        assert crashed.path.stat().st_size == 0
    finally:
        crashed.path.unlink()


# -- what was there before ------------------------------------------------------------------------

HANDLERS = """
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

static const char *path;
static char *page;

static void tell(int signum, int code, long address, int sender) {
    char line[200];
    int length = snprintf(line, sizeof line, "handler %d %d %ld %d %d\\n", signum, code, address, sender,
                          access(path, F_OK) == 0);
    if (write(1, line, length) < 0) _exit(9);
}
static void plain(int signum) { tell(signum, 0, 0, 0); _exit(7); }
static void detailed(int signum, siginfo_t *info, void *context) {
    (void)context;
    tell(signum, info->si_code, info->si_code > 0 ? (long)info->si_addr : 0, info->si_code > 0 ? 0 : info->si_pid);
    _exit(7);
}
static void repair(int signum, siginfo_t *info, void *context) {
    (void)context;
    tell(signum, info->si_code, (char *)info->si_addr - page, 0);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
void install(int signum, const char *file, int kind) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    path = strdup(file);
    if (kind == 0) action.sa_handler = plain;
    else { action.sa_sigaction = kind == 1 ? detailed : repair; action.sa_flags = SA_SIGINFO; }
    sigaction(signum, &action, NULL);
}
void touch(void) {
    if (page == NULL) page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else mprotect(page, 4096, PROT_NONE);
    page[5] = 1;
}
int crash_in_child(void) {
    int pid = fork();
    if (pid == 0) abort();
    return pid;
}
"""


@pytest.fixture(scope="module")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """`install(signum, path, kind)`: a handler in C; it tells what it got, and whether `path` is there."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("handlers")
    (folder / "exception_handlers.c").write_text(HANDLERS)
    command = [compiler, "-shared", "-fPIC", "-o", "handlers.so", "exception_handlers.c"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (
        f"helper = ctypes.CDLL({str(folder / 'handlers.so')!r})\nhere = f'/tmp/hsperfdata_{{USER}}/{{os.getpid()}}'\n"
    )


def installed(handlers: str, signum: int, kind: int) -> str:
    user = "import pwd; USER = pwd.getpwuid(os.geteuid()).pw_name\n"
    return user + handlers + f"helper.install({int(signum)}, here.encode(), {kind})\nstart()\n"


def test_a_plain_handler_of_the_program(tmp_path: Path, handlers: str) -> None:
    crashed = Crashed(tmp_path, installed(handlers, signal.SIGSEGV, 0) + "ctypes.string_at(0)")
    crashed.check(7)
    assert crashed.lines == [f"handler {int(signal.SIGSEGV)} 0 0 0 0"]


def test_a_handler_gets_the_fault_as_it_was(tmp_path: Path, handlers: str) -> None:
    crashed = Crashed(tmp_path, installed(handlers, signal.SIGSEGV, 1) + "ctypes.string_at(24)")
    crashed.check(7)
    assert crashed.lines == [f"handler {int(signal.SIGSEGV)} 1 24 0 0"]  # 1: SEGV_MAPERR


def test_a_handler_gets_the_sender(tmp_path: Path, handlers: str) -> None:
    code = """
    import subprocess
    sender = subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -FPE {os.getpid()}"])
    print(sender.pid, flush=True)
    time.sleep(20)
    """
    crashed = Crashed(tmp_path, installed(handlers, signal.SIGFPE, 1) + dedent(code))
    crashed.check(7)
    sender, handler = crashed.lines
    assert handler == f"handler {int(signal.SIGFPE)} 0 0 {sender} 0"


def test_a_handler_that_repairs_goes_on_to_do_so(tmp_path: Path, handlers: str) -> None:
    """The first fault costs the region its file; after that the program's handler is alone, and nothing is hidden."""
    code = """
    helper.touch(); helper.touch()
    status = vmscope.status()
    print(status.path, status.fatal_path, status.reason)
    vmscope.stop(); start()
    helper.touch()
    print(vmscope.status().path == here, os.path.exists(here), vmscope.status().fatal_path)
    """
    crashed = Crashed(tmp_path, installed(handlers, signal.SIGSEGV, 2) + dedent(code))
    crashed.check(0)
    told = f"handler {int(signal.SIGSEGV)} 2 5 0"
    assert [line for line in crashed.lines if line.startswith("handler")] == [f"{told} 0", f"{told} 0", f"{told} 1"]
    others = [line for line in crashed.lines if not line.startswith("handler")]
    assert others[0].startswith("None False a fatal signal took the file away")
    assert others[-1] == "True True True"


def test_a_handler_in_python(tmp_path: Path) -> None:
    code = """
    signal.signal(signal.SIGABRT, lambda *_: sys.exit(3))
    start()
    os.kill(os.getpid(), signal.SIGABRT)
    time.sleep(20)
    """
    Crashed(tmp_path, code).check(3)


def test_an_ignored_signal_changes_nothing(tmp_path: Path) -> None:
    code = """
    signal.signal(signal.SIGFPE, signal.SIG_IGN)
    start()
    os.kill(os.getpid(), signal.SIGFPE)
    print(os.path.exists(vmscope.status().path), vmscope.status().fatal_path)
    """
    crashed = Crashed(tmp_path, code)
    crashed.check(0)
    assert crashed.lines == ["True True"]


def test_who_comes_later_has_the_signal(tmp_path: Path) -> None:
    code = """
    start()
    signal.signal(signal.SIGABRT, lambda *_: print(os.path.exists(vmscope.status().path), flush=True))
    os.kill(os.getpid(), signal.SIGABRT)
    """
    crashed = Crashed(tmp_path, code)
    crashed.check(0)
    assert crashed.lines == ["True"]


CAUGHT = """
def caught():
    \"\"\"The fatal signals that have a handler.\"\"\"
    line = next(line for line in open("/proc/self/status") if line.startswith("SigCgt"))
    return [number for number in (4, 6, 7, 8, 11) if int(line.split()[1], 16) >> number - 1 & 1]
"""


def test_stop_puts_the_handlers_back(tmp_path: Path) -> None:
    code = """
    before = caught()
    start()
    print(before, caught())
    vmscope.stop()
    print(caught())
    """
    crashed = Crashed(tmp_path, CAUGHT + dedent(code))
    crashed.check(0)
    assert crashed.lines == ["[] [4, 6, 7, 8, 11]", "[]"]


@pytest.mark.parametrize(
    "steps",
    [
        "start(); faulthandler.enable(); vmscope.stop(); start()",
        "faulthandler.enable(); start(); vmscope.stop(); start()",
        "start(); faulthandler.enable(); vmscope.stop(); faulthandler.disable(); start(); faulthandler.enable()",
        "start(); vmscope.stop(); faulthandler.enable(); start(); vmscope.stop()",
        "start(); faulthandler.enable(); vmscope.stop()",
    ],
)
def test_starts_and_stops_around_faulthandler(tmp_path: Path, steps: str) -> None:
    """However they are mixed: one dump, one end."""
    crashed = Crashed(tmp_path, f"{steps}\nctypes.string_at(0)")
    crashed.check(-signal.SIGSEGV)
    assert crashed.stderr.count("Fatal Python error") == 1


def test_many_starts_and_stops(tmp_path: Path) -> None:
    code = """
    start()
    for _ in range(100):
        vmscope.stop()
        vmscope.start("-XX:PerfDataSaveFile=saved-%p")
    ctypes.string_at(0)
    """
    Crashed(tmp_path, code).check(-signal.SIGSEGV)


# -- fork -----------------------------------------------------------------------------------------


def test_a_crash_in_a_forked_child(tmp_path: Path) -> None:
    """It saves and unlinks its own, and leaves its parent's alone."""
    code = """
    start()
    counter = vmscope.counter("test.total")
    pid = os.fork()
    if pid == 0:
        while not (os.path.exists(vmscope.status().path or "") and vmscope.status().fatal_path):
            time.sleep(0.01)  # in a folder of its own it imports no tests.wait
        counter.add(7)
        ctypes.string_at(0)
    print(pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(os.path.exists(vmscope.status().path), vmscope.status().fatal_path)
    print(os.path.exists(vmscope.status().path.replace(str(os.getpid()), str(pid))))
    """
    crashed = Crashed(tmp_path, code)
    crashed.check(0)
    pid, status = crashed.lines[0].split()
    assert int(status) == -signal.SIGSEGV
    assert crashed.lines[1:] == ["True True", "False"]
    data = (tmp_path / f"saved-{pid}").read_bytes()
    assert decode(data).values(data)["test.total"] == 7


def test_a_crash_right_after_fork(tmp_path: Path) -> None:
    code = """
    start()
    pid = os.fork()
    if pid == 0:
        os.abort()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), os.path.exists(vmscope.status().path))
    """
    crashed = Crashed(tmp_path, code)
    crashed.check(0)
    assert crashed.lines == [f"{-signal.SIGABRT} True"]
    assert [path.name for path in tmp_path.iterdir()] == [crashed.file.name]


def test_a_crash_in_a_child_that_python_does_not_know(tmp_path: Path, handlers: str) -> None:
    code = """
    start()
    pid = helper.crash_in_child()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), os.path.exists(vmscope.status().path))
    print(vmscope.status().fatal_path)
    """
    crashed = Crashed(tmp_path, "USER = ''\n" + handlers + dedent(code))
    crashed.check(0)
    assert crashed.lines == [f"{-signal.SIGABRT} True", "True"]


# -- beside the guard of mappings -----------------------------------------------------------------

GUARDED = programs.source("fatal/guarded")


def test_a_guarded_fault_is_no_crash(tmp_path: Path) -> None:
    code = """
    start()
    for _ in range(100):
        read()
    print(os.path.exists(vmscope.status().path), vmscope.status().fatal_path, flush=True)
    os.kill(os.getpid(), signal.SIGBUS)
    """
    crashed = Crashed(tmp_path, GUARDED + dedent(code))
    crashed.check(-signal.SIGBUS)
    assert crashed.lines == ["True True"]


def test_starts_and_stops_while_others_read_under_guard(tmp_path: Path) -> None:
    code = """
    end = time.monotonic() + 1
    def loop():
        while time.monotonic() < end:
            read()
    threads = [threading.Thread(target=loop) for _ in range(3)]
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        vmscope.start()
        assert vmscope.status().fatal_path, vmscope.status()
        vmscope.stop()
    for thread in threads:
        thread.join()
    print(os.getpid(), flush=True)
    assert caught() == []
    start()
    os.kill(os.getpid(), signal.SIGBUS)
    """
    crashed = Crashed(tmp_path, CAUGHT + GUARDED + dedent(code))
    assert crashed.status == -signal.SIGBUS, crashed.stderr
    assert crashed.saved["test.total"] == 42
