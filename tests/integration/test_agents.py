"""Agents: found, loaded, listed and unloaded, in each of the ways in which a program starts and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from tests import programs
from tests.environment import Environment
from tests.support import PATIENCE, Child
from vmscope import native, vm

AGENT = programs.source("agents/agent")

# Linked as L: only the names that end in _L count.
LINKED = """
import types
from vmscope import tool
def say(word):
    return lambda *arguments: print(word, *arguments[1:], flush=True)
module = types.SimpleNamespace(agent_on_load_shop=say("load_shop"), agent_on_unload_shop=say("unload_shop"),
    agent_on_attach_shop=say("attach_shop"), agent_on_load=say("load"), agent_on_unload=say("unload"))
tool.link_agent("shop", module)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "loud.py").write_text(AGENT)
    (tmp_path / "broken.py").write_text("import nothing_of_this_name")
    (tmp_path / "wrong.py").write_text("1 / 0")
    (tmp_path / "plain.py").write_text("")
    (tmp_path / "failing_end.py").write_text(
        "def agent_on_load(vm, options): pass\ndef agent_on_unload(vm): raise ValueError('at the end')\n"
    )
    return tmp_path


def vmscope(folder: Path, *words: str, env: dict[str, str] | None = None) -> tuple[int, list[str], str]:
    """`vmscope run`'s exit status, lines of output, and errors."""
    run = subprocess.run(
        [sys.executable, "-m", "vmscope", "run", *words],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},  # in the order of the agents' own lines
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return run.returncode, run.stdout.splitlines(), run.stderr


def python(folder: Path, code: str) -> tuple[int, list[str], str]:
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return run.returncode, run.stdout.splitlines(), run.stderr


# -- a VM's life ----------------------------------------------------------------------------------


def test_from_onload_to_dead(folder: Path) -> None:
    program = "import atexit, sys; atexit.register(print, 'atexit', flush=True); print(sys.argv, flush=True)"
    assert vmscope(folder, "-pyagent:loud=a=b", "-c", program, "x") == (
        0,
        [
            "load 'a=b' ONLOAD",
            "a=b VM_START",
            "a=b VM_INIT",
            "['-c', 'x']",
            "atexit",
            "a=b VM_DEATH",
            "unload DEAD",
        ],
        "",
    )


def test_the_same_agent_twice_is_two_in_the_list_s_order(folder: Path) -> None:
    env = {"VMSCOPE_TOOL_OPTIONS": "-pyagent:loud=1"}
    show = "from vmscope import tool; print(*tool.vm().agents, flush=True)"
    status, lines, errors = vmscope(folder, "-pyagent:loud", "-c", show, env=env)
    assert (status, errors) == (0, "Picked up VMSCOPE_TOOL_OPTIONS: -pyagent:loud=1\n")
    assert lines == [
        "load '1' ONLOAD",
        "load '' ONLOAD",
        "1 VM_START",
        "none VM_START",
        "1 VM_INIT",
        "none VM_INIT",
        "<Agent loud=1> <Agent loud>",
        "1 VM_DEATH",
        "none VM_DEATH",
        "unload DEAD",
        "unload DEAD",
    ]


@pytest.mark.parametrize(
    ("end", "status", "in_order"),
    [
        ("import sys; sys.exit(5)", 5, True),
        ("1 / 0", 1, True),
        ("raise KeyboardInterrupt", -signal.SIGINT, True),
        ("import os; os._exit(4)", 4, False),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, False),
        ("import os; os.kill(os.getpid(), 15)", -signal.SIGTERM, True),
        ("import os; os.kill(os.getpid(), 1)", -signal.SIGHUP, True),
        ("import signal, sys; signal.signal(15, lambda *_: sys.exit(6)); signal.raise_signal(15)", 6, True),
        ("import vmscope; vmscope.stop()", 0, True),
        ("import threading; threading.Thread(target=print, args=('thread',)).start()", 0, True),
    ],
)
def test_each_way_to_end(folder: Path, end: str, status: int, in_order: bool) -> None:
    found, lines, _ = vmscope(folder, "-pyagent:loud", "-c", end)
    assert found == status
    assert (lines[-2:] == ["none VM_DEATH", "unload DEAD"]) == in_order
    assert lines.count("unload DEAD") == in_order


def test_a_signal_ends_the_process_whatever_goes_wrong(folder: Path) -> None:
    program = """
import signal, time
from vmscope import runtime
runtime.VM.exit = lambda: 1 / 0
signal.raise_signal(15)
time.sleep(1)  # it would end by now
print("goes on")
"""
    status, lines, _ = vmscope(folder, "-pyagent:loud", "-c", program)
    assert (status, "goes on" in lines) == (-signal.SIGTERM, False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_that_the_option_leaves_alone(folder: Path, number: int) -> None:
    program = f"import signal; print(signal.getsignal({number}).name, flush=True); signal.raise_signal({number})"
    status, lines, _ = vmscope(folder, "-Xrs", "-pyagent:loud", "-c", program)
    assert (status, lines[-1]) == (-number, "SIG_DFL")


@pytest.mark.parametrize(
    "work",
    [
        "time.sleep(600)",
        pytest.param(
            "sum(range(10 ** 15))",
            marks=pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="a handler in Python waits"),
        ),
    ],
    ids=["asleep", "busy in C"],
)
def test_a_signal_ends_the_vm_at_once_where_there_is_no_agent(work: str, tmp_path: Path) -> None:
    saved = tmp_path / "region"
    program = f"import vmscope, time; print(vmscope.status().path, flush=True); {work}"
    command = [sys.executable, "-m", "vmscope", "run", f"-XX:PerfDataSaveFile={saved}", "-c", program]
    with Child(command) as child:
        path = child.readline()
        assert os.path.exists(path)
        os.kill(child.pid, signal.SIGTERM)
        assert child.process.wait(PATIENCE) == -signal.SIGTERM
        assert not os.path.exists(path)
        assert vm(f"file:{saved}").values()["sun.rt.javaCommand"] == "-c"


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="a handler in Python waits")
def test_a_second_signal_ends_what_does_not_come_back_from_c(folder: Path, tmp_path: Path) -> None:
    saved = tmp_path / "region"
    program = """
import ctypes, threading
import vmscope
mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
threading.Timer(0.3, print, [vmscope.status().path], {"flush": True}).start()
lock(mutex), lock(mutex)
"""
    options = [f"-XX:PerfDataSaveFile={saved}", "-pyagent:loud"]
    with Child([sys.executable, "-m", "vmscope", "run", *options, "-c", program], cwd=folder) as child:
        while not (path := child.readline()).startswith("/"):
            assert path, "it has ended"
        for number in (signal.SIGTERM, signal.SIGHUP):  # at the same time, as some managers send them
            os.kill(child.pid, number)
        time.sleep(1.1)  # it would end by now
        assert child.process.poll() is None, "an agent may want to hear of the end"
        os.kill(child.pid, signal.SIGTERM)
        assert child.process.wait(PATIENCE) == -signal.SIGTERM
        assert not os.path.exists(path)
        assert vm(f"file:{saved}").values()["sun.rt.javaCommand"] == "-c"


def test_a_signal_without_the_extension(folder: Path) -> None:
    program = (
        "import os; from vmscope import native; print(native.IMPLEMENTATION, flush=True); os.kill(os.getpid(), 15)"
    )
    status, lines, _ = vmscope(folder, "-pyagent:loud", "-c", program, env={"VMSCOPE_NATIVE": "0"})
    assert (status, lines[-3:]) == (-signal.SIGTERM, ["python", "none VM_DEATH", "unload DEAD"])


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin's is a handler in Python")
def test_nobody_sees_that_signals_are_taken(folder: Path) -> None:
    program = "import signal; print([number for number in (1, 15) if signal.getsignal(number) is not signal.SIG_DFL])"
    assert vmscope(folder, "-pyagent:loud", "-c", program)[1][3] == "[]"


def test_an_agent_that_came_late_hears_of_a_signal(folder: Path) -> None:
    program = "import os; from vmscope import tool; tool.load_agent('loud'); os.kill(os.getpid(), 15)"
    status, lines, _ = vmscope(folder, "-c", program)
    assert (status, lines[-2:]) == (-signal.SIGTERM, ["none VM_DEATH", "unload DEAD"])


def test_a_forked_child_ends_in_order_by_a_signal(folder: Path) -> None:
    program = """
import os
pid = os.fork()
if not pid:
    os.kill(os.getpid(), 15)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
    status, lines, _ = vmscope(folder, "-pyagent:loud", "-c", program)
    assert (status, lines[3:6]) == (0, ["none VM_DEATH", "unload DEAD", "-15"])


def test_an_ignored_signal_stays_ignored(folder: Path) -> None:
    program = "import os, signal; os.kill(os.getpid(), 1); print(signal.getsignal(1).name)"
    code = f"""
import signal, subprocess, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
sys.exit(subprocess.run([sys.executable, "-m", "vmscope", "run", "-c", {program!r}]).returncode)
"""
    assert python(folder, code) == (0, ["SIG_IGN"], "")


def test_start_shows_no_signal_but_the_one_that_tells_agents_of_the_end(folder: Path) -> None:
    code = """
import signal
before = [signal.getsignal(number) for number in signal.valid_signals()]
import vmscope
vmscope.start("-pyagent:loud")
after = [signal.getsignal(number) for number in signal.valid_signals()]
print([number for number, old, new in zip(signal.valid_signals(), before, after) if old != new] == [signal.SIGRTMAX])
"""
    status, lines, errors = python(folder, code)
    assert (status, errors) == (0, "")
    assert "True" in lines


# -- what can go wrong at start -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("-pyagent:loud=three", "agent loud: agent_on_load returned 3"),
        ("-pyagent:loud=raise", "agent loud: agent_on_load raised ValueError: not that (FOLDER/loud.py, line 28)"),
        ("-pyagent:loud=exit", "agent loud: agent_on_load raised SystemExit: 0 (FOLDER/loud.py, line 30)"),
        ("-pyagent:missing", "agent missing: no module is called missing"),
        ("-pyagent:loud.missing", "agent loud.missing: no module is called loud.missing"),
        ("-pyagent:plain", "agent plain: it has no agent_on_load"),
        (
            "-pyagent:broken",
            "agent broken: its import raised ModuleNotFoundError: No module named 'nothing_of_this_name' "
            "(FOLDER/broken.py, line 1)",
        ),
        (
            "-pyagent:wrong",
            "agent wrong: its import raised ZeroDivisionError: division by zero (FOLDER/wrong.py, line 1)",
        ),
        ("-agentpath:/missing/libx.so=a", "agent library /missing/libx.so in absolute path, with error: /missing/libx"),
        ("-agentpath:FOLDER/plain.py", "agent library FOLDER/plain.py in absolute path, with error: FOLDER/plain.py: "),
        ("-agentlib:jdwp=a", "agent library jdwp on the library path, with error: libjdwp.so: cannot open shared"),
        ("-agentlib:sys", "agent library sys on the library path, with error: libsys.so: cannot open shared"),
        ("-agentlib:__hello__", "agent library __hello__ on the library path, with error: lib__hello__.so: cannot"),
    ],
)
def test_an_agent_that_fails_ends_the_start(folder: Path, option: str, said: str) -> None:
    """What was loaded before it is unloaded; what comes after it is not loaded; the program does not run. Of a native
    library a JVM's two lines are shown."""
    option, said = (text.replace("FOLDER", str(folder)) for text in (option, said))
    words = ["-pyagent:loud=first", option, "-pyagent:loud=last", "-c", "print('program')"]
    status, lines, errors = vmscope(folder, *words)
    assert status == 1
    native = "Error occurred during initialization of VM\n" if "-pyagent" not in option else ""
    assert errors.startswith(f"{native}Could not find " if native else "vmscope: agent ")
    assert said in errors
    assert errors.removeprefix(native).count("\n") == 1
    assert [line for line in lines if "load '" not in line] == ["unload DEAD"]
    assert lines[0] == "load 'first' ONLOAD"
    assert "load 'last' ONLOAD" not in lines


@pytest.mark.parametrize(
    ("option", "instead"),
    [("-pyagent:", "-pyagent:MODULE"), ("-agentlib:=a", "-agentlib:NAME"), ("-agentpath:", "-agentpath:FILE")],
)
def test_an_option_without_a_name(folder: Path, option: str, instead: str) -> None:
    status, lines, errors = vmscope(folder, option, "-c", "print('program')")
    assert (status, lines) == (2, [])
    assert f"{option} names no agent (write {instead} or {instead}=OPTIONS)" in errors


def test_an_unload_that_raises_is_logged(folder: Path) -> None:
    status, lines, errors = vmscope(folder, "-pyagent:failing_end", "-pyagent:loud", "-c", "pass")
    assert status == 0
    assert lines[-1] == "unload DEAD"
    assert errors.startswith("agent failing_end: agent_on_unload raised\n")
    assert errors.endswith("ValueError: at the end\n")


FAILING = """
from vmscope import tool
def agent_on_load(vm, options):
    env = vm.get_env()
    env.set_event_callbacks({tool.Event.DATA_DUMP_REQUEST: lambda env: 1 / 0})
    env.set_event_notification_mode(True, tool.Event.DATA_DUMP_REQUEST)
agent_on_attach = agent_on_load
"""
TWELVE_DUMPS = programs.source("agents/twelve_dumps")
COUNTED = ["10", "10 10", "1 1"]


@pytest.mark.parametrize("first", ["", "import logging", "import logging; logging.getLogger('vmscope')"])
def test_what_goes_wrong_in_an_agent_is_counted_and_never_printed(folder: Path, first: str) -> None:
    (folder / "failing.py").write_text(FAILING)
    code = f"{first}\nfrom vmscope import tool\ntool.load_agent('failing')\n{TWELVE_DUMPS}"
    assert python(folder, code) == (0, COUNTED, "")


@pytest.mark.parametrize(
    "first", ["", "import logging; logging.getLogger('vmscope').addHandler(logging.NullHandler())"]
)
def test_under_vmscope_run_it_is_shown(folder: Path, first: str) -> None:
    (folder / "failing.py").write_text(FAILING)
    status, lines, errors = vmscope(folder, "-pyagent:failing", "-c", f"{first}\n{TWELVE_DUMPS}")
    assert (status, lines) == (0, COUNTED)
    assert errors.count("agent failing: its callback for DATA_DUMP_REQUEST raised") == 10
    assert errors.count("ZeroDivisionError") == 10


@pytest.mark.parametrize("logger", ["", "vmscope", "vmscope.tool"])
def test_a_program_s_own_logging_is_told_once(folder: Path, logger: str) -> None:
    (folder / "failing.py").write_text(FAILING)
    configured = f"""
import logging, sys
handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(type("Short", (logging.Formatter,), {{"formatException": lambda *_: ""}})("log %(name)s"))
logging.getLogger({logger!r}).addHandler(handler)
"""
    for how in (
        vmscope(folder, "-pyagent:failing", "-c", configured + TWELVE_DUMPS),
        python(folder, f"{configured}\nfrom vmscope import tool\ntool.load_agent('failing')\n{TWELVE_DUMPS}"),
    ):
        assert how[2] == ""
        assert [line for line in how[1] if line] == ["log vmscope.tool"] * 10 + COUNTED


def test_what_ran_before_may_have_used_the_interface(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("from vmscope import tool; tool.vm()")
    variables = {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}
    status, lines, errors = vmscope(folder, "-pyagent:loud", "-c", "print('program', flush=True)", env=variables)
    assert (status, errors) == (0, "")
    assert lines == ["attach '' LIVE", "program", "none VM_DEATH", "unload DEAD"]
    assert vmscope(folder, "-pyagent:loud=three", "-c", "print('program')", env=variables)[0] == 1


# -- linked agents --------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-agentlib:shop=a", "-agentpath:/nowhere/libshop.so=a", "-pyagent:shop=a"])
def test_a_linked_agent_s_own_names_win(folder: Path, option: str) -> None:
    (folder / "shop.py").write_text("raise SystemExit('it is linked: nothing of its name is loaded dynamically')")
    code = f"{LINKED}\nfrom vmscope.cli import main\nprint(main(['run', {option!r}, '-c', 'print(1, flush=True)']))"
    assert python(folder, code) == (0, ["load_shop a", "1", "0", "unload_shop"], "")


def test_a_linked_agent_attaches_and_stays(folder: Path) -> None:
    code = f"""{LINKED}
import vmscope
vmscope.start()
agent = tool.load_agent("shop", "b")
print(agent, agent.linked)
for wrong in (lambda: tool.unload_agent(agent), lambda: tool.link_agent("shop", module)):
    try:
        wrong()
    except vmscope.VMScopeError as error:
        print(type(error).__name__, error)
"""
    assert python(folder, code) == (
        0,
        [
            "attach_shop b",
            "<Agent shop=b, linked> True",
            "AgentError agent shop: it is linked into the program, and never unloaded",
            "WrongPhase agents are linked before the VM starts",
            "unload_shop",
        ],
        "",
    )


def test_linking_needs_the_entry_of_that_name(folder: Path) -> None:
    code = "from vmscope import tool; tool.link_agent('shop', type('module', (), {'agent_on_load': print}))"
    status, _, errors = python(folder, code)
    assert status == 1
    assert "AgentError: agent shop: <class '__main__.module'> has no agent_on_load_shop" in errors


EMBEDDING = r"""
#include <Python.h>
static PyObject *say(PyObject *name, PyObject *arguments)
{
    PySys_FormatStdout("%U %R\n", name, PySequence_GetItem(arguments, 1));
    Py_RETURN_NONE;
}
static PyObject *on_load(PyObject *self, PyObject *arguments) { return say(PyUnicode_FromString("load"), arguments); }
static PyMethodDef functions[] = {{"agent_on_load_built", on_load, METH_VARARGS}, {NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "built", NULL, -1, functions};
static PyObject *make(void) { return PyModule_Create(&definition); }
int main(int count, char **words)
{
    PyImport_AppendInittab("built", make);
    return Py_BytesMain(count, words);
}
"""


def test_an_agent_within_the_executable_is_linked(folder: Path) -> None:
    """By PyImport_AppendInittab: a program that embeds Python and has an agent of its own."""
    (folder / "main.c").write_text(EMBEDDING)
    settings = sysconfig.get_config_var
    library = f"python{settings('LDVERSION')}"
    build = subprocess.run(
        ["cc", "main.c", "-o", "program", f"-I{sysconfig.get_path('include')}", f"-L{settings('LIBDIR')}",
         f"-Wl,-rpath,{settings('LIBDIR')}", "-Wl,--export-dynamic", f"-l{library}",
         *settings("LIBS").split(), *settings("SYSLIBS").split()],
        cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    if build.returncode:
        pytest.skip(f"no program can be linked with Python here: {build.stderr.strip()[-200:]}")
    env = {**os.environ, "PYTHONHOME": sys.base_prefix, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        ["./program", "-c", "from vmscope.cli import main; main(['run', '-agentlib:built=x', '-c', 'print(1)'])"],
        cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "load 'x'\n1\n", "")


# -- while the program runs -----------------------------------------------------------------------


def test_attaching_and_unloading(folder: Path) -> None:
    code = programs.source("agents/attached")
    assert python(folder, code) == (
        0,
        [
            "attach 'a=b' LIVE",
            "[<Agent loud=a=b>] 1 loud",
            "unload LIVE",
            "[] 0",
            "agent loud: it is not loaded",
            "attach '' LIVE",
            "none VM_DEATH",
            "unload DEAD",
        ],
        "",
    )


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("loud", "three", "agent loud: agent_on_attach returned 3"),
        ("loud", "raise", "agent loud: agent_on_attach raised ValueError: not that"),
        ("failing_end", "", "agent failing_end: it has no agent_on_attach"),
        ("missing", "", "agent missing: no module is called missing"),
    ],
)
def test_an_agent_that_cannot_attach_ends_nothing(folder: Path, name: str, options: str, said: str) -> None:
    code = f"""
from vmscope import tool
try:
    tool.load_agent({name!r}, {options!r})
except RuntimeError as error:
    print(type(error).__name__, error, tool.vm().agents, tool.vm().environments, flush=True)
"""
    status, lines, errors = python(folder, code)
    assert (status, errors) == (0, "")
    assert lines[-1].startswith(f"AgentError {said}")
    assert lines[-1].endswith(" [] []")


def test_the_agents_of_a_late_start_attach(folder: Path) -> None:
    code = """
import logging, os, vmscope
logging.basicConfig(format="%(message)s")
os.environ["VMSCOPE_TOOL_OPTIONS"] = "-pyagent:loud=environment"
for _ in range(2):
    vmscope.start("-pyagent:loud=three", "-pyagent:loud=given")
    print(vmscope.status().running, flush=True)
    vmscope.stop()
"""
    status, lines, errors = python(folder, code)
    attached = ["attach 'three' LIVE", "attach 'given' LIVE", "True"]
    assert status == 0
    assert errors == "agent loud: agent_on_attach returned 3\n" * 2
    assert lines[:7] == ["attach 'environment' LIVE", *attached, *attached]
    assert lines[7:] == [*(f"{each} VM_DEATH" for each in ("environment", "given", "given")), *["unload DEAD"] * 3]


def test_no_agent_attaches_while_agents_are_loaded(folder: Path) -> None:
    (folder / "eager.py").write_text(
        "def agent_on_load(vm, options):\n    from vmscope import tool\n    tool.load_agent('loud')"
    )
    status, _, errors = vmscope(folder, "-pyagent:eager", "-c", "pass")
    assert status == 1
    assert "agent eager: agent_on_load raised WrongPhase: agents attach in the phase LIVE, not in ONLOAD" in errors


def test_the_vm_s_flags(folder: Path) -> None:
    (folder / "asks.py").write_text(
        "def agent_on_load(vm, options):\n"
        "    flags = vm.flags()\n"
        "    print(flags['PerfDataMemorySize'], flags['UsePerfData'], flags['pop_frame'], flags['modify_any_class'])\n"
    )
    status, lines, errors = vmscope(folder, "-pyagent:asks", "-XX:PerfDataMemorySize=128k", "-c", "pass")
    assert (status, lines, errors) == (0, ["131072 True False True"], "")


# -- forked children ------------------------------------------------------------------------------


def test_a_forked_child_goes_on_with_its_agents(folder: Path) -> None:
    program = """
import os, sys
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
print("parent" if pid else "child", flush=True)
"""
    status, lines, _ = vmscope(folder, "-pyagent:loud", "-c", program)
    end = ["none VM_DEATH", "unload DEAD"]
    assert (status, lines[3:]) == (0, ["child", *end, "parent", *end])


def test_children_of_multiprocessing_end_in_order_too(folder: Path) -> None:
    (folder / "program.py").write_text("""
import multiprocessing
def work():
    print("work", flush=True)
if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    print(process.exitcode, flush=True)
""")
    status, lines, _ = vmscope(folder, "-pyagent:loud", "program.py")
    end = ["none VM_DEATH", "unload DEAD"]
    assert (status, lines[3:]) == (0, ["work", *end, "0", *end])


# -- autostart ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def autostarted(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    if native.IMPLEMENTATION != "c":
        pytest.skip("the extension is not built")
    made = Environment(tmp_path_factory.mktemp("environment") / "venv")
    (made.site / "loud.py").write_text(AGENT)
    made.switch("on")
    return made


LIFE = ["load '' ONLOAD", "none VM_START", "none VM_INIT", "atexit", "none VM_DEATH", "unload DEAD"]
PROGRAM = "import atexit; atexit.register(print, 'atexit', flush=True)"


def test_the_environment_alone_loads_agents_into_any_program(autostarted: Environment) -> None:
    env = {"VMSCOPE_TOOL_OPTIONS": "-pyagent:loud"}
    status, output, errors = autostarted.run("-c", PROGRAM, env=env)
    assert (status, output.splitlines(), errors) == (0, LIFE, "")


def test_a_program_that_starts_by_itself_does_not_load_them_again(autostarted: Environment) -> None:
    env = {"VMSCOPE_TOOL_OPTIONS": "-pyagent:loud -Da=1"}
    code = f"{PROGRAM}\nimport vmscope\nvmscope.start('-Db=2')\nprint(vmscope.status().flags.properties)"
    status, output, errors = autostarted.run("-c", code, env=env)
    assert (status, errors) == (0, "")
    assert output.splitlines() == [*LIFE[:3], "{'a': '1', 'b': '2'}", *LIFE[3:]]


def test_vmscope_s_own_commands_load_none_of_them(autostarted: Environment) -> None:
    env = {"VMSCOPE_TOOL_OPTIONS": "-pyagent:loud"}
    status, output, _ = autostarted.run("-Im", "vmscope", "ps", env=env)
    assert (status, "load" in output) == (0, False)
    status, output, _ = autostarted.run("-m", "vmscope", "run", "-c", PROGRAM, env=env)
    assert (status, output.splitlines()) == (0, LIFE)


@pytest.mark.parametrize(("option", "env"), [("-S", {}), ("-B", {"VMSCOPE": "0"})])
def test_what_skips_them(autostarted: Environment, option: str, env: dict[str, str]) -> None:
    env = {"VMSCOPE_TOOL_OPTIONS": "-pyagent:loud", **env}
    assert autostarted.run(option, "-c", "print(1)", env=env) == (0, "1\n", "")


def test_one_that_fails_is_left_out(autostarted: Environment) -> None:
    env = {"VMSCOPE_TOOL_OPTIONS": "-pyagent:loud=three -pyagent:loud"}
    status, output, errors = autostarted.run("-c", "print('program', flush=True)", env=env)
    assert (status, errors) == (0, "")
    assert output.splitlines() == ["load 'three' ONLOAD", *LIFE[:3], "program", *LIFE[4:]]


def test_no_agent_no_cost(autostarted: Environment) -> None:
    code = "import sys; print([name for name in sys.modules if name.startswith('vmscope.tool')])"
    assert autostarted.run("-c", code, env={"VMSCOPE_TOOL_OPTIONS": "-Dx=1"}) == (0, "[]\n", "")
    assert autostarted.run("-m", "vmscope", "run", "-c", code)[1] == "[]\n"


def test_a_signal_is_the_program_s_affair_where_it_was_autostarted(autostarted: Environment) -> None:
    env = {"VMSCOPE_TOOL_OPTIONS": "-pyagent:loud"}
    code = "import signal; print(signal.getsignal(15).name, flush=True); signal.raise_signal(15)"
    status, output, _ = autostarted.run("-c", code, env=env)
    assert (status, output.splitlines()) == (-signal.SIGTERM, [*LIFE[:3], "SIG_DFL"])
