"""Tools that start Pythons and read what these print: byte for byte the same with autostart and without."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from pathlib import Path

import pytest

from tests import programs
from tests.environment import Environment, is_published
from vmscope import native

pytestmark = pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the extension is not built")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """With pip, made and installed by Pythons that are autostarted themselves."""
    made = Environment(tmp_path_factory.mktemp("hosts") / "venv", guests=True)
    made.switch("on")
    status, _, errors = made.run("-m", "ensurepip")
    assert (status, errors) == (0, "")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of one module and one script."""
    path = tmp_path_factory.mktemp("wheels") / "shop-1.0-py3-none-any.whl"
    metadata = {
        "shop.py": "def main():\n    print('open')\n",
        "shop-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n",
        "shop-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "shop-1.0.dist-info/entry_points.txt": "[console_scripts]\nshop = shop:main\n",
    }
    record = "".join(f"{name},,\n" for name in [*metadata, "shop-1.0.dist-info/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**metadata, "shop-1.0.dist-info/RECORD": record}.items():
            archive.writestr(name, text)
    return path


def without_times(text: str) -> str:
    return re.sub(r"\d+(\.\d+)? ?m?s\b", "TIME", text)


# -- installers -----------------------------------------------------------------------------------


def test_pip(environment: Environment, wheel: Path) -> None:
    pip = ["-m", "pip", "--disable-pip-version-check", "--no-input", "--no-color"]
    for command in (
        ["list", "--format=json", "--path", str(environment.site)],
        ["install", "--no-index", "--no-deps", "--force-reinstall", str(wheel)],
        ["show", "-f", "shop"],
        ["check"],
        ["install", "--no-index", "no-such-package"],
    ):
        without, having = environment.both(*pip, *command)
        if command[0] != "install":
            assert having == without
        assert having[0] == (1 if command[-1] == "no-such-package" else 0)
        assert having[2] == without[2]
    assert environment.run(program="shop") == (0, "open\n", "")
    assert environment.run(*pip, "uninstall", "-y", "shop")[0::2] == (0, "")


def test_pip_builds_a_source_in_an_environment_of_its_own(environment: Environment, tmp_path: Path) -> None:
    """The build back end is in the source; each hook runs in a Python whose output pip reads."""
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (tmp_path / "backend.py").write_text(
        """
import os, time, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    time.sleep(0.1)  # an autostart comes in that time
    with zipfile.ZipFile(os.path.join(folder, "yard-1.0-py3-none-any.whl"), "w") as archive:
        archive.writestr("yard.py", "")
        archive.writestr("yard-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: yard\\nVersion: 1.0\\n")
        tags = "Root-Is-Purelib: true\\nTag: py3-none-any\\n"
        archive.writestr("yard-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\n" + tags)
        archive.writestr("yard-1.0.dist-info/RECORD", "")
    return "yard-1.0-py3-none-any.whl"
"""
    )
    command = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "wheel",
        "--no-index",
        "--no-deps",
        "-q",
        "-w",
        str(tmp_path),
        str(tmp_path),
    ]
    without, having = environment.both(*command)
    assert having == without == (0, "", "")


def test_uv(environment: Environment, wheel: Path, tmp_path: Path) -> None:
    """It asks the interpreter, by a program whose output it parses."""
    uv = shutil.which("uv") or str(ROOT / "build" / "uv" / "bin" / "uv")
    if not os.access(uv, os.X_OK):
        pytest.skip("no uv: make setup installs one")
    options = ["--offline", "--no-config", "--no-python-downloads", "--python", environment.python]

    def ask(*command: str) -> tuple[int, str, str]:
        cache = tmp_path / f"cache{time.monotonic_ns()}"  # so that it asks anew
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "UV_CACHE_DIR": str(cache)}
        run = subprocess.run(
            [uv, *command, *options], env=env, capture_output=True, text=True, timeout=60, cwd=tmp_path
        )
        return run.returncode, without_times(run.stdout), without_times(run.stderr)

    for command in (
        ["pip", "list"],
        ["pip", "install", "--reinstall", str(wheel)],
        ["pip", "freeze"],
        ["pip", "uninstall", "shop"],
        ["run", "--no-project", "python", "-c", "import time; time.sleep(0.1); print('ran')"],  # an autostart comes
    ):
        answers = []
        for state in ("off", "on"):
            environment.switch(state)
            assert ask("pip", "install", str(wheel))[0] == 0
            answers.append(ask(*command))
        assert answers[0] == answers[1]
        assert answers[0][0] == 0


def test_an_environment_is_made(environment: Environment, tmp_path: Path) -> None:
    """By an autostarted Python, with pip; what is made has autostart off."""
    target = tmp_path / "inner"
    without, having = environment.both("-m", "venv", "--clear", str(target))
    assert having == without == (0, "", "")
    inner = [str(target / "bin" / "python"), "-c", "import sys; print('vmscope' in sys.modules)"]
    assert subprocess.run(inner, capture_output=True, text=True).stdout == "False\n"


# -- tests in processes ---------------------------------------------------------------------------


def shown(output: str) -> str:
    """Without what differs from run to run: times, the order in which tests end, and in which worker."""
    return re.sub(r"[.F]{8}|gw\d", "", without_times(output))


def test_pytest_xdist(environment: Environment, tmp_path: Path) -> None:
    """Its workers talk to it through their standard input and output."""
    (tmp_path / "test_shop.py").write_text(
        """
import multiprocessing, os, subprocess, sys, time, warnings
import pytest
def double(x): return 2 * x
@pytest.mark.parametrize("number", range(6))
def test_output(number, capfd):
    # An autostart comes in that time.
    run = subprocess.run([sys.executable, "-c", "import time; time.sleep(0.1); print(1)"], capture_output=True)
    assert (run.stdout, run.stderr) == (b"1\\n", b"")
    time.sleep(0.05)  # what it printed would be there by now
    assert capfd.readouterr() == ("", "")
def test_pool():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(double, range(5)) == [0, 2, 4, 6, 8]
def test_failure():
    assert 1 == 2
"""
    )
    command = [
        "-m",
        "pytest",
        "-n",
        "2",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "-W",
        "error",
        "--tb=line",
    ]
    without, having = environment.both(*command, "--color=no", "test_shop.py", cwd=tmp_path)
    assert having[0] == 1
    assert "1 failed, 7 passed" in having[1]
    assert shown(having[1]) == shown(without[1])
    assert having[2] == without[2] == ""


PROCESSES = programs.source("autostart_hosts/processes")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(environment: Environment, tmp_path: Path, method: str) -> None:
    script = tmp_path / "processes.py"
    script.write_text(PROCESSES)
    strict = ["-W", "error"]
    if method == "fork" and sys.version_info >= (3, 12):
        strict = ["-W", "error", "-W", "ignore::DeprecationWarning"]  # a pool has threads of its own when it forks anew
    without, having = environment.both(*strict, str(script), method, "")
    assert having == without
    assert (having[0], having[2]) == (0, "")
    folder = f"/tmp/hsperfdata_{pwd.getpwuid(os.geteuid()).pw_name}"
    # Each worker is visible, and gone afterwards: they end with os._exit, without atexit.
    assert environment.run(*strict, str(script), method, folder) == (0, having[1], "True\n[]\n")


# -- a server -------------------------------------------------------------------------------------


def test_gunicorn(environment: Environment, tmp_path: Path) -> None:
    """The master, which loads the application first, and its workers are VMs; its log is what it always is."""
    (tmp_path / "shop.py").write_text(
        "import os, time\n"
        "time.sleep(0.1)\n"  # an autostart comes in that time
        "def app(environ, respond):\n"
        "    respond('200 OK', [('Content-Type', 'text/plain')])\n"
        "    return [str(os.getpid()).encode()]\n"
    )

    def serve() -> tuple[list[str], dict[int, bool], list[int]]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            "-W",
            "error::DeprecationWarning",
            "-m",
            "gunicorn",
            "--preload",
            "-w",
            "2",
            "-b",
            f"127.0.0.1:{port}",
            "shop:app",
        ]
        with environment.start(*command, cwd=tmp_path) as process:
            pids = {process.pid}
            end = time.monotonic() + 20
            while len(pids) < 3 and time.monotonic() < end:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                        pids.add(int(answer.read()))
                except OSError:
                    time.sleep(0.05)  # the server does not listen yet
            time.sleep(0.2)  # those that end are gone by now
            seen = {pid: is_published(pid) for pid in sorted(pids)}
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=20)
        assert (process.returncode, output) == (0, b"")
        lines = re.sub(r"\[[-\d :+]+\] |\[\d+\]|pid: \d+|:\d+|\d\.\d+|\(\d+\)", "", errors.decode()).splitlines()
        return sorted(lines), seen, [pid for pid in pids if is_published(pid)]

    environment.switch("off")
    log, seen, _ = serve()
    assert [name for name, value in seen.items() if value] == []
    environment.switch("on")
    lines, seen, left = serve()
    assert lines == log
    assert len(seen) == 3
    assert [name for name, value in seen.items() if not value] == []
    assert left == []


DIARY = programs.source("autostart_hosts/diary")


@pytest.fixture
def diary(environment: Environment, tmp_path: Path) -> Path:
    """What an agent writes, that every program here loads by the variable `agents(diary)`: its pid, what happened."""
    (environment.site / "diary_agent.py").write_text(DIARY)
    return tmp_path / "diary"


def agents(diary: Path) -> dict[str, str]:
    return {"VMSCOPE_TOOL_OPTIONS": f"-pyagent:diary_agent={diary}", "DIARY": str(diary)}


def test_pytest_with_an_agent(environment: Environment, diary: Path, tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(
        "import os, sys\ndef test_agent():\n    assert 'load' in open(os.environ['DIARY']).read()\n"
    )
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"]
    status, output, errors = environment.run(*command, cwd=tmp_path, env=agents(diary))
    assert (status, errors) == (0, ""), output
    assert [line.split()[1] for line in diary.read_text().splitlines()] == ["load", "unload"]


def test_gunicorn_with_an_agent(environment: Environment, diary: Path, tmp_path: Path) -> None:
    """It is loaded once, by the master; each worker, which is forked, ends with it on its own account."""
    pytest.importorskip("gunicorn")
    (tmp_path / "shop.py").write_text(
        "import sys\nprint('worker ready', file=sys.stderr, flush=True)\n"  # from then on it ends by itself
        "def app(environ, respond):\n    respond('200 OK', [])\n    return [b'']\n"
    )
    command = ["-m", "gunicorn", "-w", "2", "-b", "127.0.0.1:0", "shop:app"]
    with environment.start(*command, cwd=tmp_path, env=agents(diary)) as process:
        assert process.stderr is not None
        ready = 0
        for line in process.stderr:
            ready += b"worker ready" in line
            if ready == 2:
                break
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    words = [line.split() for line in diary.read_text().splitlines()]
    assert process.returncode == 0
    assert words[0] == [str(process.pid), "load"]
    assert words[-1] == [str(process.pid), "unload"]
    assert sorted(word for _, word in words) == ["load", "unload", "unload", "unload"]
    assert len({pid for pid, _ in words}) == 3
