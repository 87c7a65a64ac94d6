"""Starting vmscope in a Python that was not prepared: from outside since CPython 3.14, a clear word on others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from glob import glob
from pathlib import Path

import pytest

from tests import programs
from tests.conftest import StartPython
from tests.oracle.jdk_tools import vmscope
from tests.support import BECOME, PATIENCE, Child, User
from vmscope import errors
from vmscope.attach import remote, script
from vmscope.attach.target import Target

ROOT = Path(__file__).parents[2]

BUSY = programs.source("attach_remote/busy")
BLOCKED = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""

Start = Callable[..., Child]


@pytest.fixture(scope="session", params=["3.14", "3.15"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def python(version: str) -> str:
    """A CPython that can be asked from outside, with vmscope, as make pythons provides it."""
    path = ROOT / "build" / f"python-{version}" / "bin" / "python"
    if not path.exists():
        pytest.skip(f"no CPython {version} with vmscope: run make pythons")
    return str(path)


@pytest.fixture
def start(python: str) -> Iterator[Start]:
    """`start(code)`: such a Python that has never heard of vmscope; `installed`: one that could import it."""
    made: list[Child] = []

    def start(code: str, *options: str, installed: bool = False, env: dict[str, str] | None = None) -> Child:
        program = python if installed else os.path.realpath(python)
        child = Child([program, *options, "-c", code], env=env, merge_stderr=True)
        made.append(child)
        child.read_until(b"ready\n")
        return child

    yield start
    for child in made:
        child.kill()
        assert not glob(f"/tmp/vmscope-attach-{child.pid}-*")


@pytest.mark.parametrize("installed", [False, True], ids=["bare", "installed"])
@pytest.mark.parametrize("client", ["this version", "its version"])
def test_a_running_program(python: str, version: str, start: Start, client: str, installed: bool) -> None:
    """Its own vmscope or ours, asked by a client of its version or of another: it is started, and nothing is said."""
    child = start(BUSY, installed=installed)
    pid = str(child.pid)
    asking = sys.executable if client == "this version" else python
    run = subprocess.run(
        [asking, "-m", "vmscope", "attach", pid], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert run.stderr == ""
    assert run.returncode == 0
    assert run.stdout.startswith(f"{pid} is ready: CPython version {version}.")
    assert child.ask("sys.modules['vmscope'].status().path") == f"/tmp/hsperfdata_root/{pid}"
    assert child.ask("[t.name for t in threading.enumerate()]") == "['MainThread', 'Thread-1 (listen)']"
    assert child.ask("sorted(name for name in globals() if 'attach' in name or name == 'run')") == "[]"
    again = vmscope("attach", pid)
    assert again.stdout == run.stdout
    assert vmscope("cmd", pid, "VM.version").stdout.splitlines()[0] in run.stdout


def test_the_twin(start: Start) -> None:
    """Where there is no extension for its version."""
    child = start(BUSY, env={"VMSCOPE_NATIVE": "0"})
    run = vmscope("attach", str(child.pid))
    assert (run.returncode, run.stderr) == (0, "")
    assert child.ask("sys.modules['vmscope'].status().implementation") == "python"
    assert child.ask("[t.name for t in threading.enumerate()]") == "['MainThread', 'Thread-1 (listen)']"


def test_one_whose_options_forbid_the_socket(start: Start) -> None:
    """It is visible from then on, and that it cannot be asked is said."""
    child = start(BUSY, env={"VMSCOPE_TOOL_OPTIONS": "-XX:+DisableAttachMechanism"})
    run = vmscope("attach", str(child.pid))
    assert run.returncode == 1
    assert "which cannot be asked: switched off by -XX:+DisableAttachMechanism" in run.stderr
    assert child.ask("sys.modules['vmscope'].status().path") == f"/tmp/hsperfdata_root/{child.pid}"


def test_what_had_been_roots(start: Start, private_user: User) -> None:
    """A server's worker, which only root may look into, and one that has put its rights aside for a moment."""
    for change in ("os.setgid({0}); os.setuid({0})", "os.setegid({0}); os.seteuid({0})"):
        child = start(f"import os\n{change.format(private_user.uid)}\n{BUSY}")
        run = vmscope("attach", str(child.pid))
        assert (run.returncode, run.stderr) == (0, "")
        assert child.ask("sys.modules['vmscope'].status().running") == "True"


def test_a_program_that_waits(start: Start) -> None:
    """It is not started now, and said so; it is when the wait ends, and the script is gone."""
    child = start(BLOCKED)
    run = vmscope("attach", "--timeout=500ms", str(child.pid))
    assert run.returncode == 1
    assert run.stdout == ""
    assert "its main thread has run no Python code for 0.5 s (it starts when" in run.stderr
    assert child.ask("'vmscope' in sys.modules") == "True"
    assert vmscope("attach", str(child.pid)).returncode == 0


def test_a_program_that_forbids_it(start: Start) -> None:
    for child in (start(BUSY, env={"PYTHON_DISABLE_REMOTE_DEBUG": "1"}), start(BUSY, "-X", "disable-remote-debug")):
        run = vmscope("attach", str(child.pid))
        assert run.returncode == 1
        assert "forbids to be asked from outside" in run.stderr
        assert child.ask("'vmscope' in sys.modules") == "False"


def test_a_program_that_cannot_import_it(
    python: str, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as before, and the error says what to install where."""
    child = start(BUSY)
    monkeypatch.setattr(script, "__file__", str(tmp_path / "attach" / "script.py"))
    with pytest.raises(errors.NotAttachable, match="cannot import vmscope") as caught:
        remote.start_vmscope(Target(child.pid))
    assert caught.value.hint.endswith(f"{os.path.realpath(python)} -m pip install vmscope")
    assert child.ask("[name for name in sys.modules if 'vmscope' in name]") == "[]"


def test_one_that_breaks_half_way(start: Start, tmp_path: Path) -> None:
    """What has been imported until then is taken out again."""
    package = tmp_path / "vmscope"
    package.mkdir()
    (package / "part.py").write_text("")
    (package / "__init__.py").write_text("import vmscope.part\nraise RuntimeError('broken')\n")
    child = start(BUSY, env={"PYTHONPATH": str(tmp_path)})
    with pytest.raises(errors.AttachError, match="RuntimeError: broken"):
        remote.start_vmscope(Target(child.pid))
    assert child.ask("[name for name in sys.modules if 'vmscope' in name]") == "[]"


def test_a_program_that_dies_meanwhile(start: Start) -> None:
    child = start(BLOCKED)
    timer = threading.Timer(0.3, child.kill)
    timer.start()
    try:
        with pytest.raises(errors.NoSuchProcess, match="ended while it was asked"):
            remote.start_vmscope(Target(child.pid))
    finally:
        timer.join()


def test_other_users(python: str, start: Start, private_user: User) -> None:
    """Root reaches a user's program, by a client of either version; a user does not reach root's."""
    become = BECOME.format(uid=private_user.uid, gid=private_user.gid, name=private_user.name)
    theirs = start(become + BUSY)
    run = vmscope("attach", str(theirs.pid))
    assert run.returncode == 0, run.stderr
    assert theirs.ask("sys.modules['vmscope'].status().path") == f"/tmp/hsperfdata_{private_user}/{theirs.pid}"
    roots = start(BUSY)
    code = f"""
import vmscope.attach.remote, vmscope.reader.machine, subprocess
from vmscope.errors import VMScopeError
{become}
try:
    vmscope.attach.remote.start_vmscope(vmscope.attach.target.Target({roots.pid}))
except VMScopeError as error:
    print(type(error).__name__)
"""
    asked = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (asked.stdout, asked.stderr) == ("AccessDenied\n", "")
    assert roots.ask("'vmscope' in sys.modules") == "False"


@pytest.mark.parametrize(
    ("scope", "said", "advice"),
    [
        (None, "", "CAP_SYS_PTRACE" if os.geteuid() == 0 else "run this as root"),
        ("1", " (kernel.yama.ptrace_scope is 1)", "CAP_SYS_PTRACE" if os.geteuid() == 0 else "run this as root"),
        ("3", " (kernel.yama.ptrace_scope is 3)", "no process may until this system is rebooted"),
    ],
    ids=["without Yama", "1", "3"],
)
def test_where_ptrace_is_restricted(
    scope: str | None, said: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As remote_exec raises it; the way through /proc/PID/root and the socket needs no ptrace."""
    file = tmp_path / "ptrace_scope"
    if scope is not None:
        file.write_text(f"{scope}\n")
    monkeypatch.setattr(remote, "_PTRACE_SCOPE", str(file))
    error = remote._refused(Target(os.getpid()), "PermissionError", "[Errno 1] Operation not permitted")
    assert str(error) == f"Permission denied: this user may not look into process {os.getpid()}{said}"
    assert advice in error.hint


def test_a_container(python: str) -> None:
    """With a /tmp of its own it cannot be given the script: it is said where to ask from."""
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("needs root and unshare")
    inside = 'mount -t tmpfs none /tmp && exec "$0" -c "$1"'
    with Child(["unshare", "--mount", "sh", "-c", inside, os.path.realpath(python), BUSY]) as child:
        child.read_until(b"ready\n")
        run = vmscope("attach", str(child.pid))
        assert (run.returncode, run.stdout) == (1, "")
        assert "lives in a container, in which vmscope cannot be started from outside" in run.stderr
        assert f"(inside it, its pid is {child.pid}: run vmscope attach {child.pid} there)" in run.stderr
        assert child.ask("'vmscope' in sys.modules") == "False"


# -- on every version -----------------------------------------------------------------------------


def test_older_versions(start_python: StartPython) -> None:
    """Where nothing can be done from outside, the error names the ways that there are."""
    if sys.version_info >= remote.OLDEST:
        pytest.skip("this CPython can be asked from outside")
    child = start_python(BUSY)
    run = vmscope("attach", str(child.pid))
    assert (run.returncode, run.stdout) == (1, "")
    version = f"CPython {sys.version_info[0]}.{sys.version_info[1]}"
    assert f"process {child.pid} is {version}, in which vmscope cannot be started from outside" in run.stderr
    for way in ("vmscope run", "vmscope autostart on", "vmscope.start()"):
        assert way in run.stderr
    assert child.ask("1 + 1") == "2"


def test_what_is_no_python(start_python: StartPython) -> None:
    child = Child(["sleep", "60"])
    with child:
        assert remote.python_version(child.pid) is None
        run = vmscope("attach", str(child.pid))
        assert run.returncode == 1
        assert "is not a VM" in run.stderr
        assert child.process.poll() is None
    assert remote.python_version(os.getpid()) == sys.version_info[:2]


def test_a_program_that_embeds_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no Python to run with a script; only a vmscope of its version can tell it what to do."""
    embedded = (3, sys.version_info[1] + 20)
    monkeypatch.setattr(remote, "python_version", lambda pid: embedded)
    with Child(["sleep", "60"]) as child:
        with pytest.raises(errors.NotAttachable, match="sleep, which has CPython 3") as caught:
            remote.start_vmscope(Target(child.pid))
        assert f"a vmscope of CPython 3.{embedded[1]}" in caught.value.hint
        assert not glob(f"/tmp/vmscope-attach-{child.pid}-*")


@pytest.mark.parametrize("kind", ["good", "missing", "broken", "late"])
def test_the_script_by_itself(start_python: StartPython, tmp_path: Path, kind: str) -> None:
    """Run by other means, as a program that is no 3.14 can be made to."""
    child = start_python(BUSY, options=["-I", "-S"])  # so that it does not find vmscope
    target = Target(child.pid)
    with pytest.MonkeyPatch.context() as patch:
        if kind in ("missing", "broken"):
            patch.setattr(script, "__file__", str(tmp_path / "attach" / "script.py"))
        if kind == "broken":
            (tmp_path / "__init__.py").write_text("import sys; sys.modules['vmscope.part'] = sys\n1 / 0\n")
        given = script.Script(target)
    folder = os.path.dirname(given.path)
    try:
        assert os.stat(folder).st_mode & 0o777 == 0o700
        if kind == "late":
            given.abandon()
        assert child.ask(f"exec(open('{given.path}').read(), {{}})") == "None"
        if kind == "late":
            assert not os.path.exists(folder)
            answer = None
        else:
            answer = given.answer()
    finally:
        given.remove()
    assert not os.path.exists(folder)
    loaded = child.ask("sorted(name for name in sys.modules if 'vmscope' in name)[:1]")
    if kind in ("good", "late"):
        assert answer in (None, f"started\n/tmp/hsperfdata_root/{child.pid}\n")
        assert child.ask("sys.modules['vmscope'].status().running") == "True"
    else:
        assert answer is not None
        assert answer.partition("\n")[0] == {"missing": "ModuleNotFoundError", "broken": "ZeroDivisionError"}[kind]
        assert loaded == "[]"
