"""The command line on Windows, and what it says of what cannot be done there."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import PATIENCE
from tests.windows.conftest import StartProgram
from vmscope import win32


def vmscope(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-m", "vmscope", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def said(*arguments: str) -> str:
    run = vmscope(*arguments)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def test_ps_shows_it(start_program: StartProgram) -> None:
    program = start_program()
    [row] = json.loads(said("ps", "--json", str(program.pid)))
    assert (row["pid"], row["kind"], row["main"], row["user"]) == (program.pid, "CPython", "-c", win32.user_name())
    assert row["threads"] >= 1
    assert row["rss"] > 1 << 20
    assert 0 <= row["uptime"] < 120
    assert str(program.pid) in said("ps", "--all")
    assert vmscope("ps", "4000000").returncode == 1


def test_counters_and_stat_show_its_numbers(start_program: StartProgram) -> None:
    program = start_program("vmscope.start()\nvmscope.counter('shop.sales').add(7)\nvmscope.gauge('shop.depth').set(3)")
    lines = [line.split() for line in said("counters", str(program.pid), "shop.*").splitlines()[1:]]
    assert lines == [["shop.depth", "3"], ["shop.sales", "7"]]
    assert "THR" in said("stat", str(program.pid), "100ms", "2").upper() or said("stat", str(program.pid), "1", "1")


def test_the_drop_ins_work(start_program: StartProgram) -> None:
    program = start_program("vmscope.start('-Da=b')")
    assert f"{program.pid} -c -Da=b" in said("jps", "-lmv").splitlines()
    assert said("jps", "-q").split() != []
    heads = said("jstat", "-gcutil", str(program.pid)).split()[:5]
    assert heads == ["S0", "S1", "E", "O", "M"]
    assert "sun.rt.jvmVersion=" in said("jcmd", str(program.pid), "PerfCounter.print")


def test_run_starts_a_program(tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text("import sys, vmscope\nprint(vmscope.status().running, sys.argv[1:])\nsys.exit(3)\n")
    run = vmscope("run", "-XX:PerfDataMemorySize=128k", str(script), "a", "b")
    assert (run.returncode, run.stdout.split("\n")[0], run.stderr) == (3, "True ['a', 'b']", "")
    assert vmscope("run", "-c", "print(7)").stdout == "7\n"
    saved = tmp_path / "saved"
    assert vmscope("run", f"-XX:PerfDataSaveFile={saved}", "-m", "this").returncode == 0
    assert saved.stat().st_size == 65536


@pytest.mark.parametrize(
    "command", [("cmd", "VM.version"), ("attach",), ("jcmd", "VM.version")], ids=lambda row: row[0]
)
def test_what_needs_attach_says_so(command: tuple[str, ...], start_program: StartProgram) -> None:
    program = start_program()
    run = vmscope(command[0], str(program.pid), *command[1:])
    assert run.returncode == 1
    assert "on Windows no VM is attached to" in run.stdout + run.stderr
    assert "Traceback" not in run.stderr
    assert program.ask("vmscope.status().attach_path") == "None"
    assert "no named pipe" in program.ask("vmscope.status().attach_reason")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """The python.exe of a virtual environment, as `venv` makes it where it copies."""
    home = Path(sys.executable).parent
    scripts = tmp_path / "environment" / "Scripts"
    (scripts.parent / "Lib" / "site-packages").mkdir(parents=True)
    scripts.mkdir()
    for name in ("python.exe", f"python{sys.version_info[0]}{sys.version_info[1]}.dll", "VCRUNTIME140.dll"):
        shutil.copy(home / name, scripts)
    (scripts.parent / "pyvenv.cfg").write_text(f"home = {home}\n")
    return scripts / "python.exe"


def test_autostart_makes_each_python_of_an_environment_visible(environment: Path) -> None:
    def autostart(word: str) -> list[str]:
        run = vmscope("autostart", word, python=str(environment))
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout.splitlines()[:2]

    def path() -> str:
        run = subprocess.run(
            [environment, "-c", "import sys, time; time.sleep(0.5); "  # an autostart comes in that time
             "print('vmscope.runtime' in sys.modules and sys.modules['vmscope.runtime'].VM.status().path)"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=True,
        )  # fmt: skip
        return run.stdout.strip()

    file = environment.parent.parent / "Lib" / "site-packages" / "vmscope_autostart.pth"
    assert autostart("status") == ["autostart    off", f"file         {file}"]
    assert path() == "False"
    assert autostart("on") == ["autostart    on", f"file         {file}"]
    assert path().startswith(win32.temporary_folder())
    assert autostart("status") == ["autostart    on", f"file         {file}"]
    assert autostart("off") == ["autostart    off", f"file         {file}"]
    assert not file.exists()
    assert path() == "False"


def test_an_autostarted_python_is_seen(tmp_path: Path, start_program: StartProgram) -> None:
    # An autostart comes in that time.
    code = "from vmscope.boot import autostart\nautostart()\nimport time\ntime.sleep(0.5)\n"
    program = start_program(code)
    assert program.ask("vmscope.status().path").endswith(f"\\{program.pid}")
    assert str(program.pid) in said("jps", "-q").split()
