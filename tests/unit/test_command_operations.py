"""The attach protocol's operations, and each diagnostic command, as a client is answered. No socket is in between."""

from __future__ import annotations

import gc
import logging
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from vmscope import commands, flags, native, tool
from vmscope.commands import operations
from vmscope.commands.system_properties import stored
from vmscope.errors import OptionError
from vmscope.tool.agent import AgentVM


class Call:
    """What the listener hands over; it keeps each part that is sent."""

    snapshot = None

    def __init__(self, operation: str, *arguments: str, room: int = 1 << 30) -> None:
        self.operation, _, self.options = operation.partition(" ")
        self.arguments = (*arguments, *[""] * (3 - len(arguments)))
        self.parts: list[bytes] = []
        self.flushed = 0
        self.room = room

    def write(self, data: bytes) -> None:
        if len(b"".join(self.parts)) + len(data) > self.room:
            raise BrokenPipeError
        self.parts.append(data)

    def flush(self) -> None:
        self.flushed += 1


def serve(call: Call) -> None:
    """All of its steps."""
    for _ in operations.serve(call):
        pass


def ask(operation: str, *arguments: str) -> tuple[int, str]:
    """The status and the body."""
    call = Call(operation, *arguments)
    serve(call)
    status, _, body = b"".join(call.parts).decode().partition("\n")
    return int(status), body


def run(line: str) -> str:
    status, body = ask("jcmd", line)
    assert status == 0, body
    return body


def refused(operation: str, *arguments: str) -> str:
    status, body = ask(operation, *arguments)
    assert (status, body.count("\n")) == (-1, 1), body
    return body.rstrip("\n")


@pytest.fixture
def quiet_flags(monkeypatch: pytest.MonkeyPatch) -> flags.Flags:
    """This process's flags, at their defaults, which are put back; nobody is told of a change."""
    monkeypatch.setattr(flags, "in_force", flags.Flags())
    monkeypatch.setattr(flags, "on_change", None)
    return flags.in_force


# -- replies --------------------------------------------------------------------------------------


def test_an_operation_that_nobody_knows() -> None:
    assert refused("nosuch") == "Operation nosuch not recognized!"
    assert refused("") == "Operation  not recognized!"


def test_the_version_of_the_protocol() -> None:
    assert ask("getversion", "options") == (0, "2 progress")


def test_a_line_in_pieces() -> None:
    """As jattach sends it."""
    assert ask("jcmd", "help", "VM.uptime") == ask("jcmd", "help VM.uptime")
    assert ask("jcmd", "Python.modules", "vmscope.wire -kind=source")[1].startswith("Name")
    assert ask("jcmd") == (0, "")
    assert ask("printflag", "UsePerfData", "x", "y", "z") == ask("printflag", "UsePerfData")


def test_a_reply_that_is_sent_in_parts() -> None:
    def talk(out: commands.Output) -> None:
        out.write("one")
        out.flush()
        out.write("two")
        raise commands.registry.CommandError("it ended")  # type: ignore[attr-defined]

    command = commands.Command("T.talk", "Talks.", talk)
    commands.register(command)
    try:
        call = Call("jcmd", "T.talk")
        serve(call)
        assert call.parts == [b"0\none", b"twoit ended\n"]
        assert call.flushed == 2
    finally:
        commands.unregister(command)


@pytest.mark.parametrize("room", [0, 5, 100_000])
def test_a_client_that_goes(room: int, caplog: pytest.LogCaptureFixture) -> None:
    ended = []

    def talk(out: commands.Output) -> None:
        try:
            for _ in range(1000):
                out.write("x" * 1000)
        except BrokenPipeError:
            ended.append(True)
            raise

    command = commands.Command("T.talk", "Talks.", talk)
    commands.register(command)
    try:
        serve(Call("jcmd", "T.talk", room=room))
    finally:
        commands.unregister(command)
    assert ended == [True]
    assert not caplog.records


def test_text_that_no_client_could_read() -> None:
    command = commands.Command("T.odd", "Is odd.", lambda out: out.write("a\ud800\u20ac"))
    commands.register(command)
    try:
        assert run("T.odd") == "a\\ud800\u20ac"
    finally:
        commands.unregister(command)


# -- flags and properties -------------------------------------------------------------------------


def test_flags(quiet_flags: flags.Flags) -> None:
    quiet_flags.add("-XX:PerfDataMemorySize=128k")
    quiet_flags.add("-XX:-UsePerfData", "environment")
    shown = run("VM.flags").split()
    assert shown[:2] == ["-XX:-UsePerfData", "-XX:PerfDataMemorySize=131072"]
    again = flags.Flags()
    again.add_all(shown)  # they are options, and all that are in force
    assert again.values() == quiet_flags.values()
    rows = {line.split()[1]: " ".join(line.split()) for line in run("VM.flags -all").splitlines()}
    assert set(rows) >= {row[0] for row in flags.FLAGS} | {"post_method_entry"}
    assert rows["UsePerfData"] == "bool UsePerfData = false {product} {environment}"
    assert rows["PerfDataMemorySize"] == "uintx PerfDataMemorySize = 131072 {product} {command line}"
    assert rows["PerfDataSaveFile"] == "ccstr PerfDataSaveFile = {manageable} {default}"
    assert ask("printflag", "UsePerfData") == (0, "-XX:-UsePerfData\n")
    assert ask("printflag", "PerfDataMemorySize") == (0, "-XX:PerfDataMemorySize=131072\n")
    assert ask("printflag", "NoSuch") == (0, "no such flag 'NoSuch'\n")


def test_what_capabilities_have_made_possible(quiet_flags: flags.Flags) -> None:
    environment = tool.vm().get_env()
    try:
        environment.add_capabilities({tool.Capability.CAN_TAG_OBJECTS})
        assert "walk_any_space" not in run("VM.flags")  # what can be given as an option
        assert "{tool interface} {ergonomic}" in next(
            line for line in run("VM.flags -all").splitlines() if " walk_any_space " in line
        )
        information = run("VM.info")
        assert "  Environment 0, of no agent: can_tag_objects\n" in information
    finally:
        environment.dispose_environment()


def test_setting_a_flag(quiet_flags: flags.Flags) -> None:
    assert run("VM.set_flag PerfDataSamplingInterval 1k") == ""
    assert quiet_flags.number("PerfDataSamplingInterval") == 1024
    assert ask("setflag", "PerfDataSaveToFile", "1") == (0, "")
    assert run('VM.set_flag PerfDataSaveFile "/tmp/a b"') == ""
    assert "{management}" in next(line for line in run("VM.flags -all").splitlines() if "PerfDataSaveFile" in line)
    assert ask("setflag", "PerfDataSaveFile", "") == (0, "")
    assert (quiet_flags.on("PerfDataSaveToFile"), quiet_flags.text("PerfDataSaveFile")) == (True, "")
    assert "does not exist" in refused("setflag", "NoSuch", "1")
    assert "cannot be changed while the VM runs" in refused("setflag", "UsePerfData", "1")
    assert "neither true, false, 1 nor 0" in refused("setflag", "PerfDataSaveToFile", "yes")
    assert "out of its range, 0 to 60000" in refused("setflag", "PerfDataSamplingInterval", "60001")
    assert "The argument 'string value' is mandatory." in refused("jcmd", "VM.set_flag PerfDataSaveFile")


def test_a_change_that_the_vm_refuses(quiet_flags: flags.Flags, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise OptionError(f"not {name}", hint="try another")

    monkeypatch.setattr(flags, "on_change", refuse)
    assert refused("setflag", "Instrument", "asyncio") == "not Instrument: try another"
    assert (quiet_flags.text("Instrument"), quiet_flags.origins) == ("", {})


def test_properties(quiet_flags: flags.Flags) -> None:
    quiet_flags.add("-Dshop.name= a=b:c")
    status, text = ask("properties")
    assert status == 0
    assert text.splitlines()[0].startswith("#")
    assert "shop.name=\\ a\\=b\\:c" in text.splitlines()
    assert f"java.version={sys.version.split()[0]}" in text.splitlines()
    assert run("VM.system_properties").splitlines()[1:] == text.splitlines()[1:]
    names = [line.partition("=")[0] for line in text.splitlines()[1:]]
    assert names == sorted(names)
    agents = ask("agentProperties")[1]
    assert "sun.jvm.args=-Dshop.name\\= a\\=b\\:c\n" in agents
    assert "\nsun.java.command=" in agents


def test_properties_are_escaped() -> None:
    odd = {"a b": " x", "c=": "\t\n\\", "#": "!\u20ac\U0001f600\0", "e": ""}
    assert stored(odd).splitlines()[1:] == [
        "\\#=\\!\\u20AC\\uD83D\\uDE00\\u0000",
        "a\\ b=\\ x",
        "c\\==\\t\\n\\\\",
        "e=",
    ]


# -- what the program is --------------------------------------------------------------------------


def test_the_command_line(quiet_flags: flags.Flags) -> None:
    quiet_flags.add("-Da=b")
    lines = run("VM.command_line").splitlines()
    assert lines[:2] == ["VM Arguments:", "jvm_args: -Da=b"]
    assert [line.partition(":")[0] for line in lines[2:]] == [
        "java_command", "java_class_path (initial)", "python_executable", "python_command", "Launcher Type",
    ]  # fmt: skip
    assert f"python_executable: {sys.executable}" in lines


def test_information(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_THING", "shown")
    monkeypatch.setenv("SHOP_PASSWORD", "hidden")
    text = run("VM.info")
    titles = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        f"{title}:"
        for title in ("VM", "Region", "Flags", "Environment", "Platform", "Memory", "Threads", "Agents", "Modules")
    ] + ["Libraries:"]
    assert f"Process: pid {os.getpid()}, " in text
    assert "  PYTHON_THING=shown\n" in text
    assert "hidden" not in text
    assert "MainThread" in text
    assert "  pytest " in text
    assert re.findall(r"\w+Error: .*", text) == [], "a section that fails says so in its place"


def test_modules() -> None:
    lines = run("Python.modules vmscope.wire").splitlines()
    assert [line for line in lines if not line.startswith(("Name", "vmscope.wire", "Total = "))] == []
    assert lines[-1] == f"Total = {len(lines) - 2}"
    assert [
        line for line in run("Python.modules -kind=builtin").splitlines()[1:-1] if line.split()[1] != "builtin"
    ] == []
    assert "Total = 0" in run("Python.modules nosuch")


def test_modules_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in sys.modules may be anything, and none of it is run."""

    class Hostile:
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(f"{name} was asked for")

    class Metaclass(type):
        def __getattribute__(cls, name: str) -> object:
            raise AssertionError(f"{name} was asked for")

        def __hash__(cls) -> int:
            raise AssertionError("hashed")

    made = Metaclass.__new__(Metaclass, "Made", (), {"__module__": 3})
    monkeypatch.setitem(sys.modules, "a_hostile_one", Hostile())
    monkeypatch.setitem(sys.modules, "an_absent_one", None)
    text = run("Python.modules")
    assert "\na_hostile_one " in text
    assert "\nan_absent_one " in text
    assert run("VM.classloader_stats").count("\n") > 5
    assert run("GC.finalizer_info")
    del made


def test_loaders() -> None:
    lines = run("VM.classloader_stats").splitlines()
    assert lines[0].split() == ["Modules", "Classes", "Bytes", "Loader", "From"]
    total = next(line for line in lines if line.startswith("Total = "))
    count = sum(int(line.split()[0]) for line in lines[1 : lines.index(total)])
    assert f": {count} modules," in total
    assert any("BuiltinImporter" in line for line in lines), lines


# -- memory ---------------------------------------------------------------------------------------


class Finalized:
    def __del__(self) -> None:
        pass


def test_finalizers() -> None:
    import weakref

    kept = [Finalized() for _ in range(3)]
    finalizer = weakref.finalize(kept[0], print)
    text = run("GC.finalizer_info")
    finalizer.detach()
    name = f"{Finalized.__module__}.Finalized"
    assert text.startswith("No instances waiting for finalization found\n")
    assert f"\n         3  {name}\n" in text
    assert f"\n         1  {name}, print\n" in text


def test_collecting() -> None:
    gc.collect()
    cycle: list[object] = []
    cycle.append(cycle)
    del cycle
    before = gc.get_stats()[2]["collections"]
    words = run("GC.run").split()
    assert int(words[0]) >= 1
    assert words[1:3] == ["unreachable", "objects"]
    assert gc.get_stats()[2]["collections"] > before


def test_gc_stats() -> None:
    lines = run("Python.gc_stats").splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["Generation", "0", "1", "2"]
    assert abs(int(lines[3].split()[1]) - gc.get_stats()[2]["collections"]) <= 1
    assert f"Enabled: {'yes' if gc.isenabled() else 'no'}" in lines


# -- logging --------------------------------------------------------------------------------------


@pytest.fixture
def log_as_before() -> Iterator[None]:
    yield
    run("VM.log disable")


@pytest.mark.usefixtures("log_as_before")
def test_logging(tmp_path: Path) -> None:
    path = tmp_path / "log"
    logger = logging.getLogger("vmscope.tool")
    before = logger.getEffectiveLevel(), logging.getLogger("vmscope").handlers[:]
    assert run(f"VM.log what=tool=debug,all=error output={path}") == ""
    logger.debug("heard")
    logging.getLogger("vmscope.agents").warning("not heard")
    assert path.read_text().endswith("[DEBUG][vmscope.tool] heard\n")
    assert "not heard" not in path.read_text()
    shown = run("VM.log")
    assert " vmscope.tool: debug, so debug and above\n" in shown
    assert f" {path}\n" in shown
    assert run("VM.log what=tool=off,all=default list").count("off, so off and above") == 1
    assert run("VM.log disable") == ""
    assert (logger.getEffectiveLevel(), logging.getLogger("vmscope").handlers) == before
    logging.getLogger("vmscope.an_agent")
    assert run("VM.log what=an_agent=debug,commands=off") == ""
    assert run("VM.log disable") == ""
    for wrong in ("what=tool=loud", "what=", "what=a b", "what=..", "output=/nonexistent/log", "disable=x"):
        assert refused("jcmd", f"VM.log {wrong}")


@pytest.mark.usefixtures("log_as_before")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_who_can_read_a_log(mask: int, mode: int, tmp_path: Path) -> None:
    """Whom the program's umask lets read what it makes; it stands in the folder that the client names."""
    before = os.umask(mask)
    try:
        assert run(f"VM.log output={tmp_path / 'log'}") == ""
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == mode
    assert os.listdir(tmp_path) == ["log"]


@pytest.mark.usefixtures("log_as_before")
def test_a_client_makes_no_loggers() -> None:
    """logging keeps each for ever, and a placeholder for what stands before each dot."""
    known = logging.Logger.manager.loggerDict
    before = set(known)
    assert refused("jcmd", f"VM.log what={'a.' * 5000}a=debug").startswith("Invalid logger 'a.a.")
    assert refused("jcmd", "VM.log what=nosuch").startswith("Invalid logger 'nosuch': write all or ")
    assert set(known) == before


@pytest.mark.usefixtures("log_as_before")
def test_a_client_s_outputs_are_few_and_silent(tmp_path: Path, stderr: Callable[[], str]) -> None:
    """Each is a descriptor of the program's; logging shows a traceback for each record that cannot be written."""
    logger = logging.getLogger("vmscope.tool")
    assert run("VM.log output=/dev/full what=all=debug") == ""
    for _ in range(3):
        logger.error("one\x1b[2J")
    assert stderr() == ""
    for number in range(7):
        assert run(f"VM.log output={tmp_path}/{number}") == ""
    assert refused("jcmd", f"VM.log output={tmp_path}/8").startswith("there are 8 outputs already")
    logger.error("two\x1b[2J\x9b")
    assert (tmp_path / "6").read_text().endswith("[ERROR][vmscope.tool] two\\x1b[2J\\x9b\n")
    assert run("VM.log disable") == ""
    os.mkfifo(tmp_path / "pipe")
    assert refused("jcmd", f"VM.log output={tmp_path}/pipe").endswith("No such device or address"), "no reader"


# -- agents ---------------------------------------------------------------------------------------


class Agent:
    """A module, as far as an agent's loading goes."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.dumps = 0

    def agent_on_attach(self, vm: AgentVM, options: str) -> int:
        self.told.append(options)
        if options == "raise":
            raise OSError("no\nway")
        environment = vm.get_env()
        environment.set_event_callbacks({tool.Event.DATA_DUMP_REQUEST: self.dump})
        environment.set_event_notification_mode(True, tool.Event.DATA_DUMP_REQUEST)
        return int(options or 0)

    def dump(self, *_: object) -> None:
        self.dumps += 1


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    module = Agent()
    monkeypatch.setitem(sys.modules, "an_agent", module)
    yield module
    for loaded in [each for each in tool.vm().agents if each.name == "an_agent"]:
        tool.unload_agent(loaded)


@pytest.fixture
def stderr(capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: capfd.readouterr().err


def test_loading_an_agent(quiet_flags: flags.Flags, agent: Agent, stderr: Callable[[], str]) -> None:
    assert ask("load", "an_agent", "false", "") == (0, "return code: 0\n")
    warning = stderr()
    assert warning.startswith("WARNING: vmscope: a client loads the agent an_agent ")
    assert warning.count("\n") == 1
    assert run("JVMTI.agent_load an_agent 0") == "return code: 0\n"
    assert stderr() == "", "it was warned of"
    assert ask("load", "an_agent", "false", "7") == (0, "return code: 7\n")
    assert refused("load", "an_agent", "false", "raise").startswith(
        "an_agent was not loaded: agent_on_attach raised OSError: no way ("
    )
    assert refused("load", "nosuch", "false", "").startswith("nosuch was not loaded: no module is called nosuch; ")
    status, body = ask("load", "/nonexistent/libx.so", "true", "")
    reason = ".\n" if native.IMPLEMENTATION == "c" else ": native agents need vmscope's C part"
    assert status == -1
    assert body.startswith(f"/nonexistent/libx.so was not loaded{reason}")
    assert "instrument" in refused("load", "instrument", "false", "agent.jar=x")
    assert stderr() == "", "nothing was loaded"
    status, body = ask("load")
    assert status == -1
    assert body.startswith(" was not loaded")
    assert agent.told == ["", "0", "7", "raise"]
    assert run("JVMTI.data_dump") == ask("datadump")[1] == ""
    assert agent.dumps == 4, "two loads, two requests"
    assert "  an_agent=0\n" in run("VM.info")


def test_of_loads_that_left_nothing_the_latest_stays(
    quiet_flags: flags.Flags, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """The list of agents would grow with each; what is to be ended, or has an end to be told of, stays."""
    quiet_flags.add("-XX:+EnableDynamicAgentLoading")
    kinds = {
        "passing": lambda vm, options: None,
        "holding": lambda vm, options: vm.get_env() and None,
        "ending": lambda vm, options: vm.at_unload(int),
    }
    for name, attach in kinds.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(agent_on_attach=attach))
    unloading = SimpleNamespace(agent_on_attach=kinds["passing"], agent_on_unload=lambda vm: None)
    monkeypatch.setitem(sys.modules, "unloading", unloading)
    names = [*kinds, "unloading"]
    for number in range(3):
        for name in names:
            assert ask("load", name, "false", str(number)) == (0, "return code: 0\n")
    loaded = [each for each in tool.vm().agents if each.name in names]
    try:
        assert [each.options for each in loaded if each.name == "passing"] == ["2"]
        for name in names[1:]:
            assert [each.options for each in loaded if each.name == name] == ["0", "1", "2"]
    finally:
        for each in loaded:
            tool.unload_agent(each)


def test_loading_agents_without_a_warning(
    quiet_flags: flags.Flags, agent: Agent, stderr: Callable[[], str]
) -> None:  # fmt: skip
    quiet_flags.add("-XX:+EnableDynamicAgentLoading")
    assert ask("load", "an_agent", "false", "")[0] == 0
    assert stderr() == ""


def test_loading_agents_forbidden(quiet_flags: flags.Flags, agent: Agent) -> None:
    quiet_flags.add("-XX:-EnableDynamicAgentLoading")
    for request in (("load", "an_agent"), ("jcmd", "JVMTI.agent_load an_agent")):
        assert refused(*request).startswith("an_agent was not loaded: this program was started with -XX:-Enable")
    assert agent.told == []


# -- what other commands do -----------------------------------------------------------------------


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, object]]]:
    """What is asked of the registry, in place of it."""
    asked: list[tuple[str, dict[str, object]]] = []

    def invoke(name: str, out: commands.Output, **values: object) -> Iterator[None]:
        asked.append((name, values))
        out.write("text\n")
        yield

    monkeypatch.setattr("vmscope.commands.registry.invoke", invoke)
    return asked


def test_what_the_tools_ask_of_commands(recorded: list[tuple[str, dict[str, object]]], tmp_path: Path) -> None:
    path = tmp_path / "histogram"
    assert ask("threaddump", "-e -l") == ask("inspectheap", "-live") == ask("inspectheap", "") == (0, "text\n")
    assert (
        ask("threaddump", "-l")
        == ask("dumpheap", "/tmp/a", "-live", "3")
        == ask("dumpheap", "/tmp/a", "-all")
        == (0, "text\n")
    )
    assert ask("inspectheap", "-all", str(path), "2") == (0, f"Heap inspection file created: {path}\n")
    assert recorded == [
        ("Thread.print", {"l": True, "e": True}),
        ("GC.class_histogram", {"all": False}),
        ("GC.class_histogram", {"all": False}),
        ("Thread.print", {"l": True, "e": False}),
        ("GC.heap_dump", {"filename": "/tmp/a", "all": False, "gz": 3}),
        ("GC.heap_dump", {"filename": "/tmp/a", "all": True}),
        ("GC.class_histogram", {"all": True}),
    ]
    assert path.read_text() == "text\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert refused("inspectheap", "-all", str(path)) == f"Unable to create {path}: File exists"
    assert refused("inspectheap", "-some") == "Invalid argument to inspectheap operation: -some"
    assert refused("dumpheap", "/tmp/a", "-some") == "Invalid argument to dumpheap operation: -some"
    assert refused("dumpheap") == "No dump file specified"
    for level in ("0", "10", "x", "\u0663", "-1"):
        assert refused("dumpheap", "/tmp/a", "", level) == f"Compression level out of range (1-9): {level}"
