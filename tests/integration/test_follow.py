"""`vmscope run` reaches every Python that the program starts: each is a VM with the same options."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import vmscope
from tests import programs
from tests.wait import wait_for
from vmscope import flags, native

pytestmark = pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the extension is not built")

RUN = [sys.executable, "-m", "vmscope", "run", "-Dshop.name=x y", "-XX:PerfDataSamplingInterval=20"]

SPAWN = programs.source("follow/spawn")
SUBPROCESS = """
import subprocess, sys
sleepers = [subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1) for i in range(2)]
print([sleeper.pid for sleeper in sleepers], flush=True)
sys.stdin.readline()
for sleeper in sleepers:
    sleeper.communicate()
"""
RELOADER = """
import os, sys
from werkzeug._reloader import run_with_reloader
def main():
    print([os.getpid()], flush=True)
    sys.stdin.readline()
    os._exit(0)
run_with_reloader(main, reloader_type="stat")
"""


@contextmanager
def running(*command: str, cwd: Path, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    variables = {**os.environ, **(env or {})}
    with subprocess.Popen([*RUN, *command], cwd=cwd, stdin=pipe, stdout=pipe, text=True, env=variables) as process:
        try:
            yield process
        finally:
            process.kill()


def arguments(pid: int) -> str:
    """The VM options of a process; "" where it is no VM."""
    try:
        with vmscope.vm(pid) as vm:
            return vm.vm_arguments
    except vmscope.VMScopeError:
        return ""


def has_arguments(pid: int, wanted: str) -> bool:
    return arguments(pid) == wanted


def has_no_file(pid: int) -> bool:
    return not any(Path("/tmp").glob(f"hsperfdata_*/{pid}"))


@pytest.mark.parametrize(
    ("program", "words"),
    [(SPAWN, ["spawn"]), (SPAWN, ["forkserver"]), (SPAWN, ["fork"]), (SUBPROCESS, []), (RELOADER, [])],
    ids=["spawn", "forkserver", "fork", "subprocess", "reloader"],
)
def test_what_the_program_starts_is_a_vm_with_its_options(program: str, words: list[str], tmp_path: Path) -> None:
    if program is RELOADER:
        pytest.importorskip("werkzeug")
    (tmp_path / "shop.py").write_text(program)
    with running("shop.py", *words, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        pids = json.loads(process.stdout.readline())
        assert pids
        for pid in pids:
            wait_for(partial(has_arguments, pid, "-Dshop.name=x y -XX:PerfDataSamplingInterval=20"))
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.wait(60) == 0
        for pid in pids:
            wait_for(partial(has_arguments, pid, ""))


def test_workers_of_uvicorn(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    (tmp_path / "shop.py").write_text(
        "import os\nos.write(1, b'[%d]\\n' % os.getpid())\nasync def app(scope, receive, send): raise SystemExit\n"
    )
    with running(
        "-m", "uvicorn", "--workers", "2", "--port", "0", "--log-level", "critical", "shop:app", cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        pids = [json.loads(process.stdout.readline())[0] for _ in range(2)]
        for pid in pids:
            wait_for(partial(has_arguments, pid, "-Dshop.name=x y -XX:PerfDataSamplingInterval=20"))
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        for pid in [*pids, process.pid]:
            wait_for(partial(has_no_file, pid))


def test_uvicorn_of_one_process_leaves_nothing(tmp_path: Path) -> None:
    """It handles SIGTERM while it serves, puts the default action back, and ends itself by the signal."""
    pytest.importorskip("uvicorn")
    (tmp_path / "shop.py").write_text(
        "import os\n"
        "async def app(scope, receive, send):\n"
        "    while True:\n"
        "        message = await receive()\n"
        "        os.write(1, b'ready\\n')\n"
        "        await send({'type': message['type'] + '.complete'})\n"
    )
    with running("-m", "uvicorn", "--port", "0", "--log-level", "critical", "shop:app", cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        wait_for(partial(has_arguments, process.pid, "-Dshop.name=x y -XX:PerfDataSamplingInterval=20"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
        assert has_no_file(process.pid)


@pytest.mark.parametrize(
    ("option", "env"), [("-XX:-FollowChildren", {}), ("-Da=b", {"VMSCOPE": "0"})], ids=["switched off", "VMSCOPE=0"]
)
def test_what_is_not_followed(option: str, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text("import sys\nprint('vmscope.boot' in sys.modules)")
    code = f"import os, subprocess, sys; os.environ.update({env}); subprocess.run([sys.executable, 'child.py'])"
    with running(option, "-c", code, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.read() == "False\n"


def test_a_run_within_a_run_has_options_of_its_own(tmp_path: Path) -> None:
    show = "import vmscope; print(vmscope.status().flags.arguments)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-m', 'vmscope', 'run', '-Db=c', '-c', {show!r}])"
    with running("-Da=b", "-c", code, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.read() == "['-Db=c']\n"


def test_a_child_does_not_save_over_its_parent(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import vmscope; vmscope.start()'], check=True)"
    )
    with running("-XX:PerfDataSaveFile=saved", "-c", code, cwd=tmp_path) as process:
        assert process.wait(60) == 0
    with vmscope.vm(f"file:{tmp_path}/saved") as saved:
        assert "subprocess" in saved.command_line or saved.command_line == "-c"
        assert "PerfDataSaveFile" in saved.vm_arguments
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved"]


@pytest.mark.parametrize("words", [["a"], ["a b", "c"], ["it's", '"', "'\"'", "#", "# a", ""], ["\n", "\t x"]])
def test_options_travel_whole(words: list[str]) -> None:
    assert flags.split(flags.join(words)) == words
