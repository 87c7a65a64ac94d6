"""`vmscope run` beside `python`: the same program sees and does the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import vmscope
from tests.conftest import StartVMScope
from tests.support import JDK, PATIENCE
from vmscope import native

SHOW = """\
import sys
print(sys.argv, sys.path[0], __name__, __file__ if "__file__" in globals() else None, __spec__ and __spec__.name)
print(sorted(globals()), sys.modules["__main__"].__dict__ is globals())
print(__loader__ if isinstance(__loader__, type) else type(__loader__).__name__, __package__, __doc__)
"""

FAILS = """\
def f():
    1 / 0

try:
    f()
except ZeroDivisionError as error:
    raise KeyError("x") from error
"""

OPTIONS = """\
import sys, warnings
print(sys.flags, sys.warnoptions, sys._xoptions, sys.dont_write_bytecode, sys.stdout.write_through, __debug__)
print(sys.argv, sys.path, "site" in sys.modules, [each[:3] for each in warnings.filters])
"""

PROGRAMS: dict[str, str | bytes] = {
    "show.py": SHOW,
    "options.py": OPTIONS,
    "no_suffix": SHOW,
    "package/__init__.py": "",
    "package/show.py": SHOW,
    "package/__main__.py": SHOW,
    "package/fails.py": FAILS,
    "package/relative.py": "from . import show\n",
    "app/__main__.py": SHOW,
    "failing/__main__.py": FAILS,
    "no_main/module.py": "",
    "fails.py": FAILS,
    "wrong.py": "def f(:\n",
    "imports_wrong.py": "import wrong\n",
    "group.py": "raise ExceptionGroup('several', [ValueError(1), TypeError('x')])\n",
    "latin.py": "# -*- coding: latin-1 -*-\nprint(len('\xe4'))\n".encode("latin-1"),
    "mark.py": b"\xef\xbb\xbfprint(1)\n",
    "reads.py": "import sys\nprint(sys.stdin.read())\n",
    "thread.py": "import threading\nthread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\n",
    "warns.py": "import warnings\nwarnings.warn('hello')\n",
    "pickles.py": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A, A.__module__)\n",
    "annotated.py": "def f(x: missing): pass\n",
    "hook.py": """\
import sys, traceback
def hook(kind, error, trace):
    names = [frame.name for frame in traceback.extract_tb(trace)]
    print(kind, names, trace is error.__traceback__, sys.last_traceback is trace, sys.excepthook is hook)
sys.excepthook = hook
1 / 0
""",
    "last.py": """\
import atexit, sys
atexit.register(lambda: print(sys.last_value, sys.last_traceback.tb_frame.f_code.co_name,
                              sys.excepthook is sys.__excepthook__))
1 / 0
""",
    "pool.py": """\
import multiprocessing
def twice(x):
    return 2 * x
if __name__ == "__main__":
    for way in ("spawn", "fork", "forkserver"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            print(way, pool.map(twice, range(3)))
""",
}


def python(*arguments: str, cwd: Path, vmscope: bool, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    command = [sys.executable, *(["-m", "vmscope", "run"] if vmscope else []), *arguments]
    if vmscope and env and env.get("PYTHONSAFEPATH"):
        command = [str(Path(sys.executable).with_name("vmscope")), "run", *arguments]
    run = subprocess.run(
        command,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
        input=FAILS,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return run.returncode, run.stdout, run.stderr


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name, text in PROGRAMS.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", SHOW)
    (tmp_path / "zipped").write_bytes(b"#!/usr/bin/env python3\n" + (tmp_path / "app.pyz").read_bytes())
    (tmp_path / "link.py").symlink_to("package/show.py")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["show.py"],
        ["show.py", "a", "-x", "--help"],
        ["./package/show.py", "a b"],
        ["-m", "show", "1"],
        ["-m", "package", "1"],
        ["-m", "package.show"],
        ["-c", SHOW, "1"],
        ["app", "1"],
        ["app.pyz", "1"],
        ["zipped", "1"],
        ["no_suffix"],
        ["link.py"],
        ["-", "1"],
    ],
    ids=lambda words: " ".join(words)[:24],
)
@pytest.mark.parametrize("safe", ["", "1"], ids=["", "safe path"])
def test_a_program_sees_the_same(programs: Path, arguments: list[str], safe: str) -> None:
    env = {"PYTHONSAFEPATH": safe} if safe else {}
    expected = python(*arguments, cwd=programs, vmscope=False, env=env)
    found = python(*arguments, cwd=programs, vmscope=True, env=env)
    assert found == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["fails.py"],
        ["-m", "fails"],
        ["-m", "package.fails"],
        ["failing"],
        ["-c", FAILS],
        ["-"],
        ["wrong.py"],
        ["-m", "wrong"],
        ["imports_wrong.py"],
        ["-m", "imports_wrong"],
        ["-c", "def f(:"],
        ["no_main"],
        ["package/relative.py"],
        ["group.py"],
        ["latin.py"],
        ["mark.py"],
        ["reads.py"],
        ["thread.py"],
        ["warns.py"],
        ["pickles.py"],
        ["annotated.py"],
        ["hook.py"],
        ["last.py"],
        ["-c", "raise SystemExit(-1)"],
        ["-c", "raise SystemExit(256)"],
        ["-c", "raise SystemExit([1])"],
        ["-c", "raise GeneratorExit"],
        ["-c", "raise SystemExit(3)"],
        ["-c", "raise SystemExit('a word')"],
        ["-c", "import sys; sys.exit()"],
        ["-c", "1/0"],
        ["-c", "raise KeyboardInterrupt"],
        ["-c", "import os; os._exit(7)"],
        ["-c", "import vmscope; raise vmscope.VMScopeError('mine')"],
        ["-c", "from __future__ import annotations\nprint(__annotations__ if 0 else 1)"],
        ["-c", "def f(x: missing): pass"],
        ["-m", "nothing_of_this_name"],
        ["-m", "package.nothing"],
        ["-m", "email"],
        ["pool.py"],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_a_program_ends_the_same(programs: Path, arguments: list[str]) -> None:
    assert python(*arguments, cwd=programs, vmscope=True) == python(*arguments, cwd=programs, vmscope=False)


@pytest.mark.parametrize(
    "options",
    [
        ["-u"],
        ["-O"],
        ["-OO", "-B"],
        ["-Bs", "-b"],
        ["-I"],
        ["-E", "-q"],
        ["-S"],
        ["-SPd"],
        ["-W", "error", "-Wignore::UserWarning"],
        ["-X", "dev"],
        ["-Xutf8=1", "-X", "frozen_modules=off", "-X", "own=1"],
        ["--check-hash-based-pycs", "always"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("kind", ["script", "-m", "-c"])
def test_python_s_own_options(programs: Path, options: list[str], kind: str) -> None:
    """Before, between and after the VM's; a word may hold some of them, and the program."""
    words = {"script": ["options.py", "1"], "-m": ["-m", "options", "1"], "-c": ["-c", OPTIONS, "1"]}[kind]
    expected = python(*options, *words, cwd=programs, vmscope=False, env={"PYTHONPATH": "elsewhere"})
    for before, after in (options, ["-Dx=1"]), (["-Dx=1"], options), (["-Dx=1", *options], ["-XX:+UsePerfData"]):
        found = python(*before, *after, *words, cwd=programs, vmscope=True, env={"PYTHONPATH": "elsewhere"})
        assert found == expected


@pytest.mark.parametrize("words", [["-Bm", "options", "1"], ["-moptions", "1"], ["-ucimport options"]])
def test_options_and_the_program_in_one_word(programs: Path, words: list[str]) -> None:
    assert python(*words, cwd=programs, vmscope=True) == python(*words, cwd=programs, vmscope=False)


def test_a_prompt_after_the_program(programs: Path) -> None:
    command = [sys.executable, "-m", "vmscope", "run", "-i", "-q", "-c", "import vmscope; x = 5"]
    asked = "print(x, vmscope.status().running)"
    run = subprocess.run(command, cwd=programs, input=asked, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (0, "5 True\n")


def test_a_python_with_options_is_one_process_with_the_vm_s(programs: Path) -> None:
    """It takes the place of the first one; VM options stay as they were given."""
    code = "import os, vmscope; print(os.getpid(), vmscope.status().flags.arguments)"
    command = [sys.executable, "-m", "vmscope", "run", "-O", "-XX:PerfDataMemorySize=128k", "-Da=b c", "-u", "-c", code]
    process = subprocess.Popen(command, cwd=programs, stdout=subprocess.PIPE, text=True)
    output, _ = process.communicate(timeout=60)
    assert output == f"{process.pid} ['-XX:PerfDataMemorySize=128k', '-Da=b c']\n"


def test_an_interrupt_is_a_signal_s_death(programs: Path) -> None:
    # The signal comes at once.
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)"
    assert python("-c", code, cwd=programs, vmscope=True)[0] == -signal.SIGINT


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a script"),
        (["-c"], "-c needs a word"),
        (["missing.py"], "cannot open missing.py: No such file or directory"),
        (["-XX:+Nonsense", "show.py"], "no flag is called Nonsense"),
        (["-XX:PerfDataMemorySize=1", "show.py"], "out of its range"),
        (["--nonsense", "show.py"], "--nonsense is not a VM option"),
        (["-Bz", "show.py"], "-Bz is not a VM option"),
        (["-Xnonsense", "show.py"], "-Xnonsense is not a VM option"),
        (["-W"], "-W needs a word"),
        (["@missing", "show.py"], "@missing: No such file or directory"),
    ],
)
def test_a_wrong_command_line(programs: Path, arguments: list[str], said: str) -> None:
    status, output, errors = python(*arguments, cwd=programs, vmscope=True)
    assert (status, output) == (2, "")
    assert said in errors
    assert errors.count("\n") == 1
    assert errors.startswith("vmscope: ")


def test_options_of_the_environment_come_first(programs: Path) -> None:
    code = "import vmscope; print(vmscope.status().flags.arguments)"
    env = {"VMSCOPE_TOOL_OPTIONS": "-Da=1"}
    status, output, errors = python("-Db=2", "-c", code, cwd=programs, vmscope=True, env=env)
    assert (status, output) == (0, "['-Da=1', '-Db=2']\n")
    assert errors == "Picked up VMSCOPE_TOOL_OPTIONS: -Da=1\n"


def test_a_save_that_fails_is_told(programs: Path) -> None:
    """Who asked for it on a command line would look for the file in vain; the status stays the program's."""
    command = [sys.executable, "-m", "vmscope", "run", "-XX:PerfDataSaveFile=nowhere/x", "-c", "exit(3)"]
    run = subprocess.run(command, cwd=programs, capture_output=True, text=True, timeout=60)
    said = f"vmscope: the region cannot be saved to {programs}/nowhere/x: No such file or directory\n"
    assert (run.returncode, run.stdout, run.stderr) == (3, "", said)


def test_jps_shows_it(jdk: JDK, programs: Path, start_vmscope: StartVMScope) -> None:
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    child = start_vmscope("-XX:PerfDataMemorySize=128k", "-Dshop=1", code=code)
    line = next(line for line in jdk.run("jps", "-lv").stdout.splitlines() if line.startswith(f"{child.pid} "))
    assert line.startswith(f"{child.pid} -c ")
    assert line.endswith("-XX:PerfDataMemorySize=128k -Dshop=1")


def test_the_class_path_is_the_programs(tmp_path: Path) -> None:
    """jinfo and VisualVM show it: of vmscope's own command nobody wants to know."""
    show = (
        "import sys, vmscope\nprint(vmscope.vm(0).values()['java.property.java.class.path'])\nprint(':'.join(sys.path))"
    )
    (tmp_path / "shop.py").write_text(show)
    for program in (["shop.py"], ["-m", "shop"], ["-c", show]):
        command = [sys.executable, "-m", "vmscope", "run", "-XX:PerfMaxStringConstLength=32k", *program]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        published, now = run.stdout.splitlines()
        assert published == now
        assert now.split(":")[0] == ("" if program[0] == "-c" else str(tmp_path))


LISTENER = """
from vmscope import tool

def agent_on_load(vm, options):
    env = vm.get_env()
    env.add_capabilities({tool.Capability.CAN_GENERATE_EXCEPTION_EVENTS})
    env.set_event_callbacks({tool.Event.EXCEPTION: lambda *given: print(type(given[4]).__name__)})
    env.set_event_notification_mode(True, tool.Event.EXCEPTION)
"""
NO_ERROR = "pass"
AT_EXIT = """
import atexit
def end():
    try:
        int("x")
    except ValueError:
        pass
atexit.register(end)
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs sys.monitoring")
@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="what the twin does is the program's")
@pytest.mark.parametrize(("program", "raised"), [(NO_ERROR, 0), (AT_EXIT, 1)])
@pytest.mark.parametrize("kind", ["script", "-c"])
def test_what_is_raised_before_and_after_the_program_is_not_the_program_s(
    tmp_path: Path, program: str, raised: int, kind: str
) -> None:
    (tmp_path / "listener.py").write_text(LISTENER)
    (tmp_path / "program.py").write_text(program)
    options = ["-pyagent:listener", "-XX:Instrument=exceptions"]
    options += ["-XX:+PerfDataSaveToFile", "-XX:PerfDataSaveFile=saved"]
    ran = ["program.py"] if kind == "script" else ["-c", program]
    run = subprocess.run(
        [sys.executable, "-m", "vmscope", "run", *options, *ran],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert run.stdout.split() == ["ValueError"] * raised
    assert vmscope.vm(f"file:{tmp_path / 'saved'}").values()["python.exceptions"] == raised
