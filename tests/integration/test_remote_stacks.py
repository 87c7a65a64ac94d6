"""Stacks of CPythons that were not prepared, read from outside: every version, every refusal, and processes that lie.

VMSCOPE_SHARES sets for how many seconds shares are measured (10).
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import interpreters, programs
from tests.support import JVM, Child, User, python_command
from tests.wait import wait_for
from vmscope import native
from vmscope.errors import AccessDenied, NoSuchProcess, NotReadable, ReadTimeout

if sys.platform == "linux":
    from vmscope.interpreters import Profile, Stacks, Thread, profile_unprepared
    from vmscope.interpreters._layouts import FIELDS, TOLD
    from vmscope.interpreters.interpreter import Interpreter
    from vmscope.interpreters.stacks import in_time

SECONDS = float(os.environ.get("VMSCOPE_SHARES", "10"))
MINORS = (11, 12, 13, 14, 15)
PRELOAD = "vmscope.cli.stack", "vmscope.interpreters", "vmscope.terminal", "vmscope.errors._readers", "unicodedata"
pytestmark = pytest.mark.skipif(not hasattr(native, "RemoteStacks"), reason="the extension reads them, on Linux")


def program(name: str) -> str:
    return str(programs.FOLDER / f"remote_stacks/{name}.py")


@pytest.fixture(params=MINORS, ids=lambda minor: f"3.{minor}")
def python(request: pytest.FixtureRequest) -> str:
    return interpreters.find(request.param)


def started(command: list[str]) -> Child:
    child = Child(command)
    child.read_until(b"ready")
    child.readline()
    return child


def vmscope(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vmscope", *args], capture_output=True, text=True, timeout=60, check=False
    )


def named(threads: list[Thread], name: str) -> Thread:
    [thread] = [each for each in threads if each.name == name]
    return thread


def functions(thread: Thread) -> list[str]:
    return [frame.function for frame in thread.frames]


# -- what is shown --------------------------------------------------------------------------------


def test_threads_that_stand_still(python: str) -> None:
    with started([python, program("threads")]) as child, Stacks(child.pid) as stacks:
        # Their last call is of Condition.wait: it is there a moment after `ready`.
        wait_for(lambda: all("Event.wait" in functions(each) for each in stacks.take()[1:]), "they do not wait")
        threads = stacks.take(local_variables=True)
        assert stacks.version.startswith(python.rpartition("python")[2] if "python3." in python else "3.")
        assert [each.name for each in threads] == [
            "MainThread", "wörker\x1b[2J", "deep", "generator", "awaits", "calls",
        ]  # fmt: skip
        assert [each.main for each in threads] == [True, False, False, False, False, False]
        assert {each.native_id for each in threads} == {int(each) for each in os.listdir(f"/proc/{child.pid}/task")}
        assert [each for each in threads if each.gil or each.running or each.lost or each.cut] == []
        main, shop, deep, generator, awaits, calls = threads
        assert functions(main) == ["main", "<module>"]
        assert main.frames[0].file == program("threads")
        source = Path(program("threads")).read_text().splitlines()
        assert source[main.frames[0].line - 1].strip() == "sys.stdin.readline()"
        below = functions(shop)[functions(shop).index("waits") :]
        assert below[:2] == ["waits", "Shop.work"]
        assert Counter(functions(deep))["deep"] == 901
        assert Counter(functions(generator))["generate"] == 31
        assert Counter(functions(awaits))["awaits"] == 31
        assert Counter(functions(calls))["calls_back"] == 21
        assert functions(calls)[-1] == "Thread._bootstrap"
        [frame] = [each for each in shop.frames if each.function == "waits"]
        assert dict(frame.locals or ()) == {
            "number": "-5", "text": repr("é\n"), "word": repr("é\né\n"), "items": "list of 1", "nothing": "None",
        }  # fmt: skip
        [frame] = [each for each in deep.frames if each.function == "waits"]
        assert dict(frame.locals or ())["number"] == str(2**40)
        child.send("")
        assert child.stop() == 0


def test_a_busy_one_has_the_gil(python: str) -> None:
    with started([python, program("shares"), "three"]) as child, Stacks(child.pid) as stacks:
        wait_for(lambda: stacks.take()[0].gil, "it does not begin")
        taken = [stacks.take() for _ in range(50)]
        assert sum(threads[0].gil for threads in taken) >= 45
        assert [threads for threads in taken if threads[1].gil] == []
        assert {functions(threads[0])[-1] for threads in taken} == {"<module>"}


def test_the_command(tmp_path: Path) -> None:
    """Its text cannot steer a terminal, and its JSON has all of it."""
    file = tmp_path / "sho\x1b[2Jp.py"
    source = Path(program("threads")).read_text()
    file.write_text(source)
    line = source.splitlines().index("    sys.stdin.readline()") + 1
    with started([sys.executable, str(file)]) as child:
        run = vmscope("stack", str(child.pid))
        assert (run.returncode, run.stderr) == (0, "")
        lines = run.stdout.splitlines()
        version = ".".join(map(str, sys.version_info[:3]))
        assert lines[0].startswith(f"{child.pid}: CPython {version}, 6 threads: {sys.executable} ")
        assert lines[2] == f'"MainThread" {child.pid}: idle'
        assert lines[3].startswith("    main (")
        assert lines[3].endswith(f"sho\\x1b[2Jp.py:{line})")
        assert any(line.startswith('"wörker\\x1b[2J" ') for line in lines), lines
        assert "\x1b" not in run.stdout
        with_locals = vmscope("stack", "--locals", str(child.pid)).stdout
        assert "        text = 'é\\n'\n" in with_locals
        assert "number" not in run.stdout
        found = json.loads(vmscope("stack", "--json", str(child.pid)).stdout)
        assert (found["pid"], found["version"]) == (child.pid, version)
        assert found["threads"][1]["name"] == "wörker\x1b[2J"
        assert found["threads"][0]["frames"][0] == {"function": "main", "file": str(file), "line": line}
        assert found["statistics"]["lost"] == 0


def test_wrong_words() -> None:
    for words in ([], ["0"], ["shop"], ["1", "2"], ["--frames", "1"]):
        run = vmscope("stack", *words)
        assert (run.returncode, run.stdout) == (2, "")
        assert "vmscope stack --help shows" in run.stderr


# -- shares ---------------------------------------------------------------------------------------


def shares(profile: Profile, names: set[str]) -> dict[str, float]:
    counts: Counter[str] = Counter()
    for stack in profile.stacks:
        for function, _, _ in stack.frames:
            if function in names:
                counts[function] += stack.samples
                break
    return {name: counts[name] / max(counts.total(), 1) for name in names}


@pytest.mark.timeout(60 + SECONDS * 2)
def test_shares_of_three_functions(python: str) -> None:
    with started([python, program("shares"), "three"]) as child:
        found = profile_unprepared(child.pid, SECONDS, 0.005)
    share = shares(found, {"first", "second", "third"})
    print(share, found.statistics)
    assert found.end == "time"
    assert abs(share["first"] - 0.6) < 0.06
    assert abs(share["second"] - 0.3) < 0.06
    assert abs(share["third"] - 0.1) < 0.04
    rounds = found.statistics["rounds"]
    assert found.statistics["lost"] <= rounds // 50
    idle = [stack for stack in found.stacks if stack.frames[0][0] == "Condition.wait"]
    assert sum(stack.samples for stack in idle if not stack.running) >= rounds * 0.9
    assert {thread.name for thread in found.threads} >= {"MainThread"}


@pytest.mark.timeout(60 + SECONDS * 2)
def test_busy_and_idle(python: str) -> None:
    """Each has half of the time, and who idles neither runs nor has the GIL."""
    with started([python, program("shares"), "half"]) as child:
        found = profile_unprepared(child.pid, SECONDS, 0.005)
    counts: Counter[tuple[str, bool]] = Counter()
    for stack in found.stacks:
        names = [function for function, _, _ in stack.frames]
        if "busy" in names or "idle" in names:
            counts["busy" if "busy" in names else "idle", stack.gil] += stack.samples
    print(counts, found.statistics)
    assert counts["busy", True] >= 0.9 * counts.total() * 0.4
    assert counts["idle", True] <= 0.05 * counts.total()


def test_many_threads() -> None:
    """Each is counted in each round, though those that stand still are read once."""
    code = (
        "import threading\nstop = threading.Event()\n"
        "for _ in range(200):\n    threading.Thread(target=stop.wait, daemon=True).start()\n"
        "print('ready', flush=True)\nwhile True: pass"
    )
    with started([sys.executable, "-c", code]) as child:
        found = profile_unprepared(child.pid, 2, 0.01)
    counts: Counter[int] = Counter()
    for stack in found.stacks:
        counts[stack.thread] += stack.samples
    rounds, reads = found.statistics["rounds"], found.statistics["reads"]
    assert len(counts) == 201
    assert min(counts.values()) >= rounds * 0.9
    assert reads <= 201 * 3 + 2 * rounds


def test_ctrl_c_keeps_what_there_is() -> None:
    code = (
        "import signal, sys; from vmscope.interpreters import profile_unprepared as profile\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whoever runs the tests may ignore it
        "found = profile(int(sys.argv[1]), 600, 0.01, started=lambda: print('ready', flush=True))\n"
        "print(found.end, sum(stack.samples for stack in found.stacks) > 0)"
    )
    with started([sys.executable, program("shares"), "three"]) as child:
        with started([sys.executable, "-c", code, str(child.pid)]) as profiler:
            os.kill(profiler.pid, signal.SIGINT)
            said = profiler.readline()
            assert said.split()[0] == "stop"


# -- a program that changes -----------------------------------------------------------------------


def test_what_changes_is_read_again_and_counted(python: str) -> None:
    with started([python, program("changes")]) as child:
        found = profile_unprepared(child.pid, 3, 0.002)
    known = {"push", "run", "make", "<module>", "generate", "<genexpr>", "<string>"} | {f"made_{n}" for n in range(97)}
    unknown = Counter[str]()
    for stack in found.stacks:
        for function, file, _ in stack.frames:
            if file == program("changes") and function not in known:
                unknown[function] += stack.samples
    statistics = found.statistics
    print(statistics, unknown)
    assert not unknown
    assert sum(stack.samples for stack in found.stacks) > 100
    assert statistics["lost"] <= statistics["reads"] * 0.2


def test_dead_in_mid_read() -> None:
    with started([sys.executable, program("shares"), "three"]) as child:
        killer = threading.Timer(0.5, child.process.kill)  # when some stacks have been read
        found = profile_unprepared(child.pid, 60, 0.01, started=killer.start)
        killer.join()
    assert found.end == "process"


def test_dead_before_it_is_read() -> None:
    with started([sys.executable, program("shares"), "three"]) as child:
        with Stacks(child.pid) as stacks:
            child.kill()
            with pytest.raises(NoSuchProcess, match="ended"):
                stacks.take()
        with pytest.raises(NoSuchProcess):
            Stacks(child.pid)


# -- who is refused -------------------------------------------------------------------------------


def test_another_user(private_user: User) -> None:
    with started([sys.executable, program("shares"), "three"]) as child:
        code = f"from vmscope.cli import main; print(main(['stack', '{child.pid}']))"
        with Child(python_command(code, user=private_user, preload=PRELOAD), merge_stderr=True) as asking:
            assert asking.rest().decode() == (
                f"vmscope: Permission denied: process {child.pid} belongs to another user "
                "(run this as its user or as root)\n1\n"
            )


def test_root_reads_those_of_others(private_user: User) -> None:
    code = "print('ready', flush=True); input()"
    with started(python_command(code, user=private_user)) as child, Stacks(child.pid) as stacks:
        assert functions(stacks.take()[0]) == ["<module>"]


@pytest.mark.parametrize(
    ("scope", "said", "advice"),
    [
        ("0", "", "CAP_SYS_PTRACE"),
        ("1", " (kernel.yama.ptrace_scope is 1)", "CAP_SYS_PTRACE"),
        ("3", " (kernel.yama.ptrace_scope is 3)", "no process may"),
    ],
)
def test_without_the_right_to_trace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scope: str, said: str, advice: str
) -> None:
    from vmscope.interpreters import memory

    file = tmp_path / "ptrace_scope"
    file.write_text(f"{scope}\n")
    monkeypatch.setattr(memory, "_PTRACE_SCOPE", str(file))
    error = memory.denied(os.getpid())
    assert str(error) == f"Permission denied: this user may not read the memory of process {os.getpid()}{said}"
    assert isinstance(error, AccessDenied)
    if os.geteuid() == 0:
        assert advice in error.hint


def test_yama_names_the_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from vmscope.interpreters import memory

    file = tmp_path / "ptrace_scope"
    file.write_text("1\n")
    monkeypatch.setattr(memory, "_PTRACE_SCOPE", str(file))
    monkeypatch.setattr(memory, "user_ids", lambda pid: [4711] * 4)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    hint = memory.denied(os.getpid()).hint
    assert hint == "run this as root, or set kernel.yama.ptrace_scope to 0: sudo sysctl kernel.yama.ptrace_scope=0"


def test_what_is_no_cpython(jvm: JVM) -> None:
    with pytest.raises(NotReadable, match=f"process {jvm.pid} is a JVM") as caught:
        Stacks(jvm.pid)
    assert caught.value.hint == "vmscope cmd PID Thread.print shows a JVM's threads"
    with Child(["sleep", "600"]) as child:
        wait_for(lambda: b"sleep" in Path(f"/proc/{child.pid}/cmdline").read_bytes())
        with pytest.raises(NotReadable, match="is not a CPython"):
            Stacks(child.pid)
    with pytest.raises(NoSuchProcess):
        Stacks(2**22 + 1)


def test_a_version_that_is_too_old() -> None:
    program = interpreters.find(10)
    with started([program, "-c", "print('ready', flush=True); input()"]) as child:
        with pytest.raises(NotReadable, match="whose stacks cannot be read from outside") as caught:
            Stacks(child.pid)
        assert caught.value.hint == "those of CPython 3.11 to 3.15 can"


def test_a_container() -> None:
    """In another pid and mount namespace, with a /proc and a /tmp of its own: its pids are others than ours."""
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("needs root and unshare")
    inside = 'mount -t tmpfs none /tmp && exec "$0" "$1"'
    command = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside]
    with started([*command, os.path.realpath(sys.executable), program("threads")]) as child:
        pid = int(Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text())
        with Stacks(pid) as stacks:
            threads = stacks.take()
        assert named(threads, "MainThread").native_id == pid
        assert {each.native_id for each in threads} == {int(each) for each in os.listdir(f"/proc/{pid}/task")}
        assert [each for each in threads if each.state == "?"] == []


# -- processes that lie ---------------------------------------------------------------------------


def lying(python: str, *changes: str) -> Child:
    return started([python, program("lies"), *changes])


def told_word(minor: int, name: str) -> int:
    return TOLD[3, minor][name]


@pytest.fixture(params=(13, 14, 15), ids=lambda minor: f"3.{minor}")
def minor(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.mark.parametrize("value", [1 << 40, 2**64 - 8, 65535 * 8, 3])
@pytest.mark.parametrize("name", ["state_next", "frame_previous", "code_size", "interpreter_threads", "string_ascii"])
def test_offsets_that_cannot_be(minor: int, name: str, value: int) -> None:
    with lying(interpreters.find(minor), "runtime", f"{told_word(minor, name)}={value}") as child:
        with (
            pytest.raises(NotReadable, match=r"wrong things|changed|not known|no threads"),
            Stacks(child.pid) as stacks,
        ):
            in_time(child.pid, stacks.take)


def test_a_build_without_a_gil(minor: int) -> None:
    with lying(interpreters.find(minor), "runtime", "16=1") as child:
        with pytest.raises(NotReadable, match="is a CPython without a GIL"):
            Stacks(child.pid)


def test_no_cookie(minor: int) -> None:
    with lying(interpreters.find(minor), "runtime", "0=0") as child:
        with pytest.raises(NotReadable, match="in a way that is not known"):
            Stacks(child.pid)


def test_a_list_without_an_end(python: str) -> None:
    fields = FIELDS[3, minor_of(python)]
    with lying(python, "state", f"{fields['state_next']}=self") as child, Stacks(child.pid) as stacks:
        with pytest.raises(NotReadable, match="changed whenever they were read"):
            in_time(child.pid, stacks.take)


def test_memory_that_never_answers() -> None:
    """The kernel asks the process for a page, and waits without an end: whoever reads gives up."""
    offset = str(FIELDS[3, sys.version_info[1]]["state_next"])
    with Child([sys.executable, program("silent"), platform.machine(), offset]) as child:
        if child.readline() == "none":
            pytest.skip("needs userfaultfd")
        with Stacks(child.pid) as stacks:
            with pytest.raises(ReadTimeout, match="could not be read within 1 s"):
                in_time(child.pid, stacks.take, 1)
            with pytest.raises(RuntimeError, match="another thread reads it"):
                stacks.take()
        child.kill()
        wait_for(lambda: is_free(stacks), "the read does not end with the process")


def is_free(stacks: Stacks) -> bool:
    try:
        stacks.reader.close()
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("value", [2**63 - 1, 2**64 - 1, 1 << 32])
def test_names_of_any_length(python: str, value: int) -> None:
    """It is read as far as a name may be long; what is not there is not read."""
    fields = FIELDS[3, minor_of(python)]
    with lying(python, "name", f"{fields['string_length']}={value}") as child, Stacks(child.pid) as stacks:
        [thread] = in_time(child.pid, stacks.take)
        assert thread.lost or len(thread.frames[0].function) <= 1000


def minor_of(python: str) -> int:
    return next(minor for minor in MINORS if interpreters.find(minor) == python)


@pytest.fixture
def forged() -> Iterator[tuple[Child, int]]:
    with Child([sys.executable, program("forged")]) as child:
        child.read_until(b"ready ")
        yield child, int(child.readline())


@pytest.mark.timeout(300)
def test_memory_that_is_made_up(forged: tuple[Child, int]) -> None:
    """Whatever stands there, it ends, soon, and with an error or a stack that says so."""
    child, base = forged
    for seed in range(40):
        child.ask(str(seed))
        fields = {**FIELDS[3, MINORS[seed % 5]], "minor": MINORS[seed % 5], "runtime": base, "code_type": base}
        stacks = native.RemoteStacks(child.pid, fields)
        try:
            for _, _, _, _, frames, _, _, _, _ in stacks.take():
                assert len(frames) <= 1024
        except BlockingIOError:
            pass
        stacks.close()


@pytest.mark.parametrize("change", [{"state_next": 1 << 20}, {"code_size": 7}, {"gil_locked": -8}, {"minor": 3}])
def test_layouts_that_cannot_be(change: dict[str, int]) -> None:
    fields = {**FIELDS[3, 13], "minor": 13, "runtime": 4096, "code_type": 4096, **change}
    with pytest.raises((ValueError, OverflowError)):
        native.RemoteStacks(os.getpid(), fields)


def test_it_is_closed() -> None:
    with started([sys.executable, program("shares"), "three"]) as child:
        interpreter = Interpreter(child.pid)
        stacks = native.RemoteStacks(child.pid, interpreter.fields)
        interpreter.close()
        open_before = len(os.listdir("/proc/self/fd"))
        stacks.close()
        stacks.close()
        assert len(os.listdir("/proc/self/fd")) == open_before - 2
        with pytest.raises(RuntimeError, match="it is closed"):
            stacks.take()
