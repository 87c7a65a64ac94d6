"""`vmscope autostart`: what it writes, what it makes of a Python that starts, and that nothing of it ever shows."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import vmscope
from tests import sandbox
from tests.environment import Environment, is_published
from tests.support import JDK, User
from tests.wait import wait_for
from vmscope import native
from vmscope.cli.autostart import LINES, NAME

pytestmark = pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the extension is not built")

IDLE = "import sys; sys.stdin.read()"
# Waits until the region of this very process is there; what follows says what it found.
SEEN = """
import os, time, pwd
mine = f"/tmp/hsperfdata_{pwd.getpwuid(os.geteuid()).pw_name}/{os.getpid()}"
def seen(seconds=30):
    end = time.monotonic() + seconds
    while not os.path.exists(mine) and time.monotonic() < end:
        time.sleep(0.005)  # in a folder of its own it imports no tests.wait
    return os.path.exists(mine)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Autostart is on in it."""
    made = Environment(tmp_path_factory.mktemp("environment") / "venv")
    made.switch("on")
    return made


@pytest.fixture
def other(tmp_path: Path) -> Environment:
    """One for this test alone, autostart is off."""
    return Environment(tmp_path / "venv")


# -- the command ----------------------------------------------------------------------------------


def test_on_off_and_status(other: Environment) -> None:
    def table(state: str) -> str:
        version = ".".join(map(str, sys.version_info[:3]))
        where = f"{other.folder} (virtual environment, CPython {version})"
        return f"autostart    {state}\nfile         {other.file}\nenvironment  {where}\n"

    for command, state in zip(
        ["status", "off", "on", "status", "on", "off", "status"],
        ["off", "off", "on", "on", "on", "off", "off"],
        strict=True,
    ):
        assert other.vmscope("autostart", command) == (0, table(state), "")
        assert other.file.exists() == (state == "on")
        if state == "on":
            assert other.file.read_text() == LINES
        assert not [name for name in os.listdir(other.site) if name.startswith(f"{NAME}.")]


@pytest.mark.parametrize("arguments", [[], ["up"], ["on", "off"], ["--now"]])
def test_a_wrong_command_line(environment: Environment, arguments: list[str]) -> None:
    assert environment.vmscope("autostart", *arguments) == (
        2,
        "",
        "vmscope: autostart: say on, off or status (vmscope autostart --help)\n",
    )


def test_help(environment: Environment) -> None:
    status, output, errors = environment.vmscope("autostart", "--help")
    assert (status, errors) == (0, "")
    assert output.startswith("usage: vmscope autostart on | off | status\n")


@pytest.mark.parametrize("command", ["on", "off"])
def test_where_nothing_can_be_written(other: Environment, command: str) -> None:
    other.switch("on")
    mounts = f"mount --bind {other.site} {other.site}; mount -o remount,ro,bind {other.site}"
    code = f"sys.exit(subprocess.run([{other.python!r}, '-m', 'vmscope', 'autostart', {command!r}]).returncode)"
    run = subprocess.run(sandbox.command(code, mounts=mounts), capture_output=True, text=True, timeout=60)
    verb = {"on": "write", "off": "remove"}[command]
    hint = "use an account that may write there, or the vmscope of a virtual environment of yours"
    assert run.stderr == f"vmscope: autostart: cannot {verb} {other.file}: Read-only file system ({hint})\n"
    assert (run.returncode, run.stdout) == (1, "")


def test_where_vmscope_cannot_be_found_it_is_not_left_on(other: Environment) -> None:
    (other.site / "_paths.pth").unlink()
    source = str(Path(vmscope.__file__).parents[1])
    code = f"import sys; sys.path.append({source!r}); from vmscope.cli import main; sys.exit(main(['autostart', 'on']))"
    assert other.run("-c", code) == (
        1,
        "",
        f"vmscope: autostart: a Python of {other.folder} does not find vmscope when it starts "
        f"(install it there: {other.python} -m pip install vmscope)\n",
    )
    assert not other.file.exists()


def test_a_user_s_own_folder(tmp_path: Path) -> None:
    """The interpreter that makes environments stands for the system's, whose folder is not touched."""
    python = os.path.realpath(sys.executable)
    env = {"HOME": str(tmp_path), "PYTHONUSERBASE": str(tmp_path), "PATH": os.environ["PATH"]}

    def ask(*arguments: str) -> str:
        return subprocess.run([python, *arguments], env=env, capture_output=True, text=True, check=True).stdout

    folder = Path(ask("-c", "import site; print(site.getusersitepackages())").strip())
    shutil.copytree(Path(vmscope.__file__).parent, folder / "vmscope", ignore=shutil.ignore_patterns("__pycache__"))
    assert ask("-m", "vmscope", "autostart", "on").splitlines()[1] == f"file         {folder / NAME}"
    assert ask("-c", SEEN + "print(seen())") == "True\n"
    assert ask("-m", "vmscope", "autostart", "off").splitlines()[0] == "autostart    off"


# -- what starts is visible -----------------------------------------------------------------------


def test_a_program_appears_and_goes(environment: Environment, jdk: JDK, tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(IDLE)
    with environment.start(str(script), "--port", "80") as process:
        wait_for(lambda: is_published(process.pid))
        lines = jdk.run("jps", "-lm").stdout.splitlines()
        assert f"{process.pid} {tmp_path}/shop --port 80" in lines
        assert process.communicate(timeout=10) == (b"", b"")
    assert process.returncode == 0
    assert not is_published(process.pid)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["-c", IDLE, "a", "b"], "-c a b"),
        (["-m", "code", "-q"], "code -q"),
        (["-I", "-c", IDLE], "-c"),
        (["-E", "-s", "-c", IDLE], "-c"),
        (["-X", "dev", "-W", "error", "-c", IDLE], "-c"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_it_is_called(environment: Environment, arguments: list[str], command: str) -> None:
    with environment.start(*arguments) as process:
        wait_for(lambda: is_published(process.pid))
        assert vmscope.vm(process.pid).values()["sun.rt.javaCommand"] == command
        process.communicate(timeout=10)


@pytest.mark.parametrize(
    ("arguments", "env"), [([], {"VMSCOPE": "0"}), (["-S"], {}), ([], {"VMSCOPE_TOOL_OPTIONS": "-XX:-UsePerfData"})]
)
def test_what_stays_invisible(environment: Environment, arguments: list[str], env: dict[str, str]) -> None:
    code = SEEN + "import sys; print(seen(0.3), 'vmscope.boot' in sys.modules)"
    known = "VMSCOPE_TOOL_OPTIONS" in env
    assert environment.run(*arguments, "-c", code, env=env) == (0, f"False {known}\n", "")


def test_options_come_from_the_environment(environment: Environment) -> None:
    code = SEEN + "seen(); import vmscope; print(vmscope.status().capacity, vmscope.status().flags.arguments)"
    env = {"VMSCOPE_TOOL_OPTIONS": "-XX:PerfDataMemorySize=128k"}
    assert environment.run("-c", code, env=env) == (0, "131072 ['-XX:PerfDataMemorySize=128k']\n", "")


def test_options_of_the_program_win_until_it_is_published(environment: Environment) -> None:
    code = (
        SEEN
        + """
import sys, vmscope
if sys.argv[1] == "after": seen()
vmscope.start("-XX:PerfDataMemorySize=128k")
print(vmscope.status().capacity, vmscope.status().path == mine)
time.sleep(0.1)  # a second start would come by now
print(vmscope.status().capacity)
"""
    )
    # A busy machine may take longer than the 20 ms until it is published: one start of several comes in time.
    starts = (environment.run("-c", code, "before") for _ in range(20))
    assert (0, "131072 True\n131072\n", "") in starts, "in none of 20 starts"
    assert environment.run("-c", code, "after") == (0, "65536 True\n65536\n", "")


def test_a_program_that_stops_it_stays_invisible(environment: Environment) -> None:
    code = SEEN + "import vmscope; vmscope.stop(); print(seen(0.2), vmscope.status().running)"
    assert environment.run("-c", code) == (0, "False False\n", "")
    code = SEEN + "seen(); import vmscope; vmscope.stop(); print(os.path.exists(mine)); vmscope.start(); print(seen())"
    assert environment.run("-c", code) == (0, "False\nTrue\n", "")


def test_vmscope_s_own_commands_are_no_vms_and_run_has_its_options(environment: Environment) -> None:
    with environment.start("-m", "vmscope", "ps", "--watch=0.2") as process:
        time.sleep(0.5)  # an autostart would come by now
        assert not is_published(process.pid)
        process.kill()
    code = (
        SEEN + "seen(); import vmscope; print(vmscope.status().capacity, vmscope.vm(0).values()['sun.rt.javaCommand'])"
    )
    for pause in ("", SEEN + "seen(); "):  # it runs before, and after, autostart has published it
        main = f"{pause}import sys; from vmscope.cli import main; sys.exit(main(sys.argv[1:]))"
        command = ["-c", main, "run", "-XX:PerfDataMemorySize=128k", "-c", code, "a"]
        assert environment.run(*command) == (0, "131072 -c a\n", "")


@pytest.mark.parametrize("before", [0.0, 0.015, 0.02, 0.025, 0.03, 0.04])
def test_an_end_at_any_moment_leaves_nothing(environment: Environment, before: float) -> None:
    """While the thread waits, imports, publishes, or has done so."""
    for _ in range(4):
        with environment.start("-c", f"import time; time.sleep({before})") as process:  # the moment at which it ends
            assert process.communicate(timeout=10) == (b"", b"")
        assert process.returncode == 0
        assert not is_published(process.pid)


@pytest.mark.parametrize("before", [0.0, 0.015, 0.02, 0.025, 0.03, 0.04])
def test_imports_at_the_same_moment(environment: Environment, before: float) -> None:
    # The moment of the import.
    code = f"import time; time.sleep({before}); import vmscope.counters.kinds, vmscope; vmscope.start()"
    code += "; c = vmscope.counter('shop.sales'); c.inc(); print(c.value, vmscope.status().running, vmscope.vm(0).kind)"
    for _ in range(4):
        assert environment.run("-c", code) == (0, "1 True CPython\n", "")


# -- what the program sees of it ------------------------------------------------------------------


def test_threading_knows_the_right_main_thread_and_no_other(environment: Environment) -> None:
    code = SEEN + (
        # The thread that publishes goes on meanwhile.
        "import sys; seen(); time.sleep(0.05); print('threading' in sys.modules); import threading\n"
        "print(threading.enumerate() == [threading.main_thread()] == [threading.current_thread()])\n"
        "print(len(sys._current_frames()))"
    )
    assert environment.run("-c", code) == (0, "False\nTrue\n1\n", "")


def test_its_destructors_run_on_its_own_threads(environment: Environment) -> None:
    """A program that makes garbage all the time; a collection on the other thread would show."""
    code = """
import _thread, time, gc
before, where = gc.get_threshold(), set()
class Node:
    def __init__(self): self.me = self
    def __del__(self): where.add(_thread.get_ident())
end = time.monotonic() + 0.2
while time.monotonic() < end:
    for _ in range(10): Node()
    time.sleep(0.0001)  # time for the thread that publishes
print(where == {_thread.get_ident()}, gc.get_threshold() == before, gc.isenabled())
"""
    for _ in range(3):
        assert environment.run("-c", code) == (0, "True True True\n", "")


def test_a_threshold_that_the_program_sets_stays(environment: Environment) -> None:
    code = """
import gc, sys, time
for i in range(300):
    gc.set_threshold(500 + i if sys.argv[1] == "new" else 0, 7, 7)
    time.sleep(0.0005)  # time for the thread that publishes
print(gc.get_threshold())
"""
    assert environment.run("-c", code, "new") == (0, "(799, 7, 7)\n", "")
    assert environment.run("-c", code, "none") == (0, "(0, 7, 7)\n", "")


def test_a_program_that_closes_every_descriptor(environment: Environment) -> None:
    """It must neither break what is read on the thread, nor have its own numbers taken or closed."""
    code = (
        SEEN
        + """
end = time.monotonic() + 0.15
while time.monotonic() < end:
    os.closerange(3, 64)
    fd = os.open("/proc/self/stat", os.O_RDONLY)
    assert fd == 3, fd
    assert os.read(fd, 4096).startswith(str(os.getpid()).encode())
    os.close(fd)
print(seen())
"""
    )
    for _ in range(3):
        assert environment.run("-c", code) == (0, "True\n", "")


def test_forks_at_every_moment(environment: Environment) -> None:
    """Without a warning of os.fork; no child hangs, not even one that imports vmscope itself."""
    code = (
        SEEN
        + """
children = []
end = time.monotonic() + 0.12
while time.monotonic() < end:
    pid = os.fork()
    if pid == 0:
        if len(children) % 2:
            import vmscope
            vmscope.start()
            assert vmscope.status().running
            vmscope.stop()
        os._exit(0)
    children.append(pid)
    time.sleep(0.001)  # forks at several distances
print({os.waitpid(pid, 0)[1] for pid in children}, seen())
"""
    )
    for _ in range(3):
        assert environment.run("-W", "error", "-c", code) == (0, "{0} True\n", "")


@pytest.mark.parametrize("when", ["at once", "when it is published"])
def test_children_have_regions_of_their_own(environment: Environment, when: str) -> None:
    code = (
        SEEN
        + """
import sys
if sys.argv[1] != "at once": seen()
pid = os.fork()
mine = f"{os.path.dirname(mine)}/{os.getpid()}"
print(seen(), flush=True)
if pid:
    os.waitpid(pid, 0)
    print(seen(), os.path.exists(f"{os.path.dirname(mine)}/{pid}"), flush=True)
"""
    )
    assert environment.run("-W", "error", "-c", code, when) == (0, "True\nTrue\nTrue False\n", "")


def test_sub_interpreters_start_nothing(environment: Environment) -> None:
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    code = (
        SEEN
        + f"""
import {name} as interpreters
made = interpreters.create()
interpreters.run_string(made, "import time, sys; time.sleep(0.1); assert 'vmscope.runtime' not in sys.modules")  # none
print(seen(), len(os.listdir("/proc/self/task")))
interpreters.destroy(made)
"""
    )
    threads = "the main one, the mirror, the sampler and the two of the listener, as without"
    assert environment.run("-c", code) == (0, "True 5\n", ""), threads


def test_a_bare_fork_harms_nobody(environment: Environment) -> None:
    """fork(2) called from C tells nobody: the child's threads are gone, and the parent's file is not the child's."""
    code = """
import ctypes, os, sys, time
took = []
while not took or (min(took) >= 0.5 and len(took) < 8):  # who waits for what is gone, waits for it each time
    pid = ctypes.CDLL(None).fork()
    if pid == 0:
        sys.exit(7)
    began = time.monotonic()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    took.append(time.monotonic() - began)
print(status, min(took) < 0.5)
"""
    assert environment.run("-c", code) == (0, "7 True\n", "")


# -- whatever goes wrong --------------------------------------------------------------------------

# An autostart comes in that time.
HOST = "import sys, time; print('out'); print('err', file=sys.stderr); time.sleep(0.15)"
UNHARMED = (0, "out\n", "err\n")


def package(folder: Path) -> Path:
    """A copy of the package that a test may damage."""
    target = folder / "source" / "vmscope"
    shutil.copytree(Path(vmscope.__file__).parent, target, ignore=shutil.ignore_patterns("__pycache__", "*.c", "*.h"))
    return target


WORDS = """
import os, sys, warnings
sys.stderr.write("heard")
os.write(1, b"heard")
os.write(2, b"heard")
warnings.warn("heard")
"""

# What to do: remove (None) or write into the files of a pattern.
DAMAGE: dict[str, dict[str, str | None]] = {
    "an empty folder": {"*": None},
    "no __init__.py": {"__init__.py": None},
    "no boot.py": {"boot.py": None},
    "no runtime.py": {"runtime.py": None},
    "no memory": {"memory/*": None},
    "no native": {"native/*": None},
    "no extension": {"native/*.so": None},
    "no twin either": {"native/*.so": None, "native/[!_]*.py": None},
    "an extension that is no library": {"native/*.so": "text"},
    "no Python at boot": {"boot.py": "def ("},
    "no Python later": {"runtime.py": "def ("},
    "null bytes": {"own_threads.py": "\0\0\0"},
    "an error at boot": {"boot.py": "1 / 0"},
    "another version": {"runtime.py": "VM = None"},
    "words later": {"runtime.py": WORDS},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_package(tmp_path: Path, damage: str) -> None:
    source = package(tmp_path)
    environment = Environment(tmp_path / "venv", source=source.parent)
    environment.switch("on")
    for pattern, text in DAMAGE[damage].items():
        for path in source.glob(pattern):
            if text is not None:
                path.write_text(text)
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    assert environment.run("-c", HOST) == UNHARMED
    shutil.rmtree(source)
    assert environment.run("-c", HOST) == UNHARMED


PROBLEM = (
    SEEN
    + """
import vmscope
seen()
print(vmscope.status().problems, vmscope.vm(os.getpid()).values()["vmscope.problem"], sep="\\n")
"""
)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("-XX:Nonsense", "Nonsense"),
        ("'", "quot"),
        ("@/nonexistent", "/nonexistent"),
        ("-XX:PerfDataMemorySize=0", "PerfDataMemorySize"),
        ("\udcff", "udcff"),
        ("-pyagent:missing", "agent missing: no module is called missing"),
        ("-agentpath:/nowhere/libshop.so", "/nowhere/libshop.so"),
        ("-pyagent:json", "it has no agent_on_load"),
        ("-pyagent:this_ends", "raised SystemExit: 5"),
    ],
)
def test_a_bad_option_is_a_problem_and_changes_no_program(environment: Environment, options: str, problem: str) -> None:
    """The process is published all the same, and says in its region what does not work."""
    (environment.site / "this_ends.py").write_text("def agent_on_load(vm, options): raise SystemExit(5)")
    variables = {"VMSCOPE_TOOL_OPTIONS": options}
    assert environment.run("-c", HOST, env=variables) == UNHARMED
    status, output, errors = environment.run("-c", PROBLEM, env=variables)
    assert (status, errors) == (0, "")
    lines = output.splitlines()
    assert problem in lines[0]
    assert problem in lines[1]


def test_a_bad_agent_does_not_keep_a_good_one_away(environment: Environment) -> None:
    (environment.site / "good_agent.py").write_text("def agent_on_load(vm, options): print('loaded', options)")
    variables = {"VMSCOPE_TOOL_OPTIONS": "-pyagent:good_agent=a -pyagent:missing -pyagent:good_agent=b"}
    code = "import vmscope; print(vmscope.status().agent_errors, vmscope.status().problems)"
    assert environment.run("-c", code, env=variables) == (
        0,
        "loaded a\nloaded b\n1 ('agent missing: no module is called missing',)\n",
        "",
    )


def test_a_region_that_cannot_be_saved_harms_no_program(environment: Environment) -> None:
    assert environment.run("-c", HOST, env={"VMSCOPE_TOOL_OPTIONS": "-XX:PerfDataSaveFile=/nowhere/x"}) == UNHARMED


def test_logging_that_shows_everything(environment: Environment) -> None:
    # An autostart comes in that time.
    code = "import logging, time; logging.basicConfig(level=0); time.sleep(0.15); import vmscope; vmscope.stop()"
    for options in ("", "-XX:PerfDataSaveFile=/nowhere/x"):
        assert environment.run("-c", code, env={"VMSCOPE_TOOL_OPTIONS": options}) == (0, "", "")


@pytest.mark.parametrize(
    "mounts",
    [
        "mount -t tmpfs -o ro tmpfs /tmp",
        "mount -t tmpfs -o size=4k,nr_inodes=2 tmpfs /tmp",
        "mount -t tmpfs tmpfs /tmp; ln -s /etc /tmp/hsperfdata_root",
        "mount -t tmpfs tmpfs /proc",
        "mount -t tmpfs tmpfs /dev",
    ],
)
def test_a_hostile_machine(tmp_path_factory: pytest.TempPathFactory, mounts: str) -> None:
    folder = Path("/var/tmp") / f"vmscope-{os.getpid()}-{time.monotonic_ns()}"  # not hidden by the mounts
    try:
        environment = Environment(folder)
        environment.switch("on")
        if "/tmp" in mounts and vmscope.__file__.startswith("/tmp"):
            pytest.skip("the package itself would be hidden")
        unshare = sandbox.command("")
        shell = ["sh", "-ec", f'{mounts}; exec "$0" -c "$1"', environment.python, HOST]
        command = [*unshare[: unshare.index(sys.executable)], *shell]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "VMSCOPE": "1"})
        assert (run.returncode, run.stdout, run.stderr) == UNHARMED
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors(environment: Environment, closing: str) -> None:
    code = SEEN + "import sys; sys.exit(17 if seen() else 18)"
    command = ["sh", "-c", f'"$0" -c "$1" {closing}', environment.python, code]
    run = subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, "VMSCOPE": "1"})
    assert (run.returncode, run.stdout, run.stderr) == (17, b"", b"")


def test_no_more_threads(private_user: User, tmp_path: Path) -> None:
    """A process that may start none: as another user, because root may always."""
    code = f"""
import ctypes, os, resource, sys
os.setgroups([])
os.setresgid({private_user.gid}, {private_user.gid}, {private_user.gid})
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
os.setresuid({private_user.uid}, {private_user.uid}, {private_user.uid})
try:
    from vmscope.boot import autostart
    autostart()
except Exception as error:
    print(type(error).__name__, error.errno)
"""
    run = subprocess.run(
        [sys.executable, "-c", "import vmscope.boot\n" + code], capture_output=True, text=True, timeout=60
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "BlockingIOError 11\n", "")


def test_an_interrupt_is_the_program_s(environment: Environment) -> None:
    with environment.start("-c", "import time; print('ready', flush=True); time.sleep(30)") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.1)  # an autostart comes in that time
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
        assert errors.endswith(b"KeyboardInterrupt\n")
        assert process.returncode == -signal.SIGINT
    assert not is_published(process.pid)


def test_an_interactive_one(environment: Environment) -> None:
    """On a terminal, where input is waited for without the GIL."""
    master, slave = os.openpty()
    process = subprocess.Popen(
        [environment.python, "-q"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "dumb", "VMSCOPE": ""},
    )
    os.close(slave)
    try:
        wait_for(lambda: is_published(process.pid))
        assert vmscope.vm(process.pid).values()["sun.rt.javaCommand"] == "python"
        os.write(master, b"exit(3)\n")
        assert process.wait(10) == 3
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert not is_published(process.pid)


@pytest.mark.parametrize("options", [[], ["-X", "faulthandler"]], ids=["plain", "faulthandler"])
def test_a_crash_is_what_it_always_is(other: Environment, options: list[str]) -> None:
    """Its status, and what faulthandler says of it; but no file is left."""
    armed = """
import ctypes, sys
print(seen(3), os.getpid(), flush=True)
native, end = sys.modules.get("vmscope.native"), time.monotonic() + 30
def ready():  # and the thread that made the region has left Python
    return native is None or (native.is_armed() and len(sys._current_frames()) == 1)
while not ready() and time.monotonic() < end:
    time.sleep(0.005)  # the same
ctypes.string_at(0)
"""
    without, having = other.both(*options, "-c", SEEN + armed)
    assert without[0] == having[0] == -signal.SIGSEGV
    assert without[1].startswith("False ")
    assert having[1].startswith("True ")
    assert re.sub("0x[0-9a-f]+", "", having[2]) == re.sub("0x[0-9a-f]+", "", without[2])
    assert not is_published(int(having[1].split()[1]))


# -- where it runs --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["1", "0"], ids=["c", "python"])
def test_a_folder_of_somebody_else_s(environment: Environment, tmp_path: Path, form: str) -> None:
    """`python -c` and its like look for modules in the working directory first: nothing of ours is imported from there,
    nor is anything searched for that this version of Python lacks. (The twin imports ctypes for the first fork.)"""
    mark = tmp_path / "imported"
    names = {*sys.stdlib_module_names, "vmscope", "_native", "_interpreters", "_xxsubinterpreters"}
    for name in names - {"linecache"}:  # that CPython 3.13 itself imports for -c
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\nraise ImportError\n")
    code = f"""{SEEN}
print(seen(), flush=True)
if {form} and not os.fork():
    mine = f"{{os.path.dirname(mine)}}/{{os.getpid()}}"
    print(seen(), flush=True)
elif {form}:
    os.wait()
"""
    said = "True\nTrue\n" if form == "1" else "True\n"
    assert environment.run("-c", code, cwd=tmp_path, env={"VMSCOPE_NATIVE": form}) == (0, said, "")
    assert not mark.exists(), mark.read_text()
