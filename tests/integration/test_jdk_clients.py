"""Every tool of the JDK that attaches, of three JDKs, and jattach, on a Python process: each works, and what it shows
is what this process is."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import programs
from tests.support import JDK, PATIENCE, Child, python_command
from vmscope.commands import Argument
from vmscope.commands.registry import TABLE, find

PROGRAM = programs.source("jdk_clients/program")


@pytest.fixture(scope="module")
def shop() -> Iterator[Child]:
    """One program that all tests here look at."""
    with ExitStack() as stack:
        child = Child(python_command(PROGRAM))
        stack.callback(child.kill)
        child.read_until(b"ready\n")
        yield child


@pytest.fixture(params=[17, 21, 25])
def jdk(request: pytest.FixtureRequest) -> JDK:
    found = JDK.find(request.param)
    if found is None:
        pytest.skip(f"no JDK {request.param}: run make jdks")
    return found


class Tools:
    """A JDK's tools on one process."""

    def __init__(self, jdk: JDK, pid: int) -> None:
        self.jdk = jdk
        self.pid = pid

    def run(self, tool: str, *arguments: str, status: int = 0) -> str:
        """Its standard output; of one that is to fail, both outputs."""
        if not self.jdk.has(tool):
            pytest.skip(f"no {tool} in {self.jdk.bin}")
        done = (
            self.jdk.run(tool, *arguments, str(self.pid))
            if tool != "jcmd"
            else self.jdk.run(tool, str(self.pid), *arguments)
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr if status else done.stdout

    def jcmd(self, command: str, status: int = 0) -> str:
        first, _, rest = self.run("jcmd", command, status=status).partition("\n")
        assert first == f"{self.pid}:"
        return rest


@pytest.fixture
def tools(jdk: JDK, shop: Child) -> Tools:
    return Tools(jdk, shop.pid)


def test_jcmd(tools: Tools) -> None:
    python = sys.version.split()[0]
    assert f"Python {python}\n" in tools.jcmd("VM.version")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}: \d+\.\d{3} s\n", tools.jcmd("VM.uptime -date")
    )
    assert tools.jcmd("GC.run").split()[1:3] == ["unreachable", "objects"]
    information = tools.jcmd("VM.info")
    assert f"  Process: pid {tools.pid}, " in information
    assert f"  Socket: /tmp/.java_pid{tools.pid}\n" in information
    assert "(this command)" in information
    assert tools.jcmd("JVMTI.data_dump") == "Command executed successfully\n"
    assert "IllegalArgumentException: Unknown diagnostic command" in tools.jcmd("VM.uptimes", status=1)
    assert "Unknown argument 'x' in diagnostic command." in tools.jcmd("VM.uptime x", status=1)


def test_help_and_all_that_it_lists(tools: Tools) -> None:
    """Each command without arguments, where it can do without, and its help."""
    listed = tools.jcmd("help").splitlines()
    names = listed[1 : listed.index("")]
    assert names == sorted(TABLE)
    everything = tools.jcmd("\n".join(f"help {name}" for name in names if name != "help"))
    assert [line for line in everything.splitlines() if line in names] == [name for name in names if name != "help"]
    for name in names:
        if f"Syntax : {name} [options] <" not in everything and f"Syntax : {name}  <" not in everything:
            assert tools.jcmd(name)


def test_jinfo(tools: Tools) -> None:
    text = tools.run("jinfo")
    assert text.index("Java System Properties:") < text.index("VM Flags:") < text.index("VM Arguments:")
    assert "shop.name=corner shop\n" in tools.run("jinfo", "-sysprops").replace("\\ ", " ")
    assert f"java.version={sys.version.split()[0]}\n" in text
    in_force = tools.run("jinfo", "-flags").split()
    assert {"-XX:+EnableDynamicAgentLoading", "-XX:+UsePerfData", "-XX:PerfMaxStringConstLength=1024"} <= set(in_force)
    assert "jvm_args: -Dshop.name=corner shop -XX:+Enable" in text
    assert tools.run("jinfo", "-flag", "PerfDataMemorySize") == "-XX:PerfDataMemorySize=131072\n"
    assert tools.run("jinfo", "-flag", "NoSuch") == "no such flag 'NoSuch'\n"
    for value in ("21", "50"):
        assert tools.run("jinfo", "-flag", f"PerfDataSamplingInterval={value}") == ""
        assert tools.run("jinfo", "-flag", "PerfDataSamplingInterval") == f"-XX:PerfDataSamplingInterval={value}\n"
    assert tools.run("jinfo", "-flag", "+PerfDataSaveToFile") == ""
    assert tools.run("jinfo", "-flag", "PerfDataSaveToFile") == "-XX:+PerfDataSaveToFile\n"
    assert tools.run("jinfo", "-flag", "-PerfDataSaveToFile") == ""
    assert "flag UsePerfData cannot be changed" in tools.run("jinfo", "-flag", "-UsePerfData", status=1)


def test_jmap(tools: Tools, tmp_path: Path) -> None:
    for what in ("-histo", "-histo:live"):
        assert re.search(r"^ +\d+: +12345 +\d+ +\S*Basket\b", tools.run("jmap", what), re.MULTILINE)
    assert "BuiltinImporter" in tools.run("jmap", "-clstats")
    assert re.search(r"^ +12345 +\S*Basket$", tools.run("jmap", "-finalizerinfo"), re.MULTILINE)
    histogram = tmp_path / "histogram"
    assert tools.run("jmap", f"-histo:file={histogram}") == f"Heap inspection file created: {histogram}\n"
    assert "Basket" in histogram.read_text()


def test_heap_dumps(tools: Tools, tmp_path: Path) -> None:
    plain, live, packed = (tmp_path / name for name in ("plain.hprof", "live.hprof", "packed.hprof.gz"))
    for dump, options in ((plain, "format=b"), (live, "live,format=b"), (packed, "format=b,gz=1")):
        assert str(dump) in tools.run("jmap", f"-dump:{options},file={dump}")
        content = gzip.decompress(dump.read_bytes()) if dump is packed else dump.read_bytes()
        assert content.startswith(b"JAVA PROFILE 1.0.2\0")
        assert b"Basket" in content
    assert "File exists" in tools.run("jmap", f"-dump:format=b,file={plain}", status=1)
    assert "File exists" in tools.jcmd(f"GC.heap_dump {plain}", status=1)
    before = plain.stat().st_ino
    assert str(plain) in tools.jcmd(f"GC.heap_dump -overwrite {plain}")
    assert plain.stat().st_ino != before


def test_jstack(tools: Tools) -> None:
    plain, long = tools.run("jstack"), tools.run("jstack", "-l", "-e")
    for text in (plain, long):
        assert '"MainThread"' in text
        assert '"the customer"' in text
        assert "wait_for_the_lock" in text
    assert len(long) > len(plain)


def test_counters_by_both_ways(tools: Tools, shop: Child) -> None:
    """jcmd reads the region; asked through the socket, Python answers the same names."""
    region = {line.partition("=")[0] for line in tools.jcmd("PerfCounter.print").splitlines()}
    asked = set(jattach(shop, "jcmd", "PerfCounter.print").splitlines())
    names = {line.partition("=")[0] for line in asked}
    assert {name for name in region if not name.startswith("sun.perfdata.")} == names


# -- jattach --------------------------------------------------------------------------------------


def jattach(shop: Child, *arguments: str, status: int = 0) -> str:
    """What the VM answered."""
    tool = shutil.which("jattach")
    if tool is None:
        pytest.skip("no jattach: apt-get install jattach")
    done = subprocess.run(
        [tool, str(shop.pid), *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    assert f"response code = {-1 if status else 0}\n" in done.stdout
    return done.stdout.partition(" response code = ")[2].partition("\n")[2]


def test_jattach(shop: Child, tmp_path: Path) -> None:
    dump = tmp_path / "dump.hprof"
    assert "shop.name=corner shop\n" in jattach(shop, "properties").replace("\\ ", " ")
    assert "\nsun.jvm.args=-Dshop.name\\=corner shop " in jattach(shop, "agentProperties")
    assert '"the customer"' in jattach(shop, "threaddump")
    assert "Basket" in jattach(shop, "inspectheap")
    assert str(dump) in jattach(shop, "dumpheap", str(dump))
    assert dump.stat().st_size > 1_000_000
    assert "-XX:+UsePerfData\n" in jattach(shop, "printflag", "UsePerfData")
    assert jattach(shop, "setflag", "PerfDataSamplingInterval", "50").strip() == ""
    assert "does not exist" in jattach(shop, "setflag", "NoSuch", "1", status=255)
    assert jattach(shop, "jcmd", "VM.uptime", "-date").count(":") == 3
    assert "VM.log [options]" in jattach(shop, "jcmd", "help VM.log")
    assert "not recognized" in jattach(shop, "nosuch", status=255)


def test_loading_an_agent_with_its_command(shop: Child) -> None:
    assert "return code: 0\n" in jattach(shop, "load", "shop_agent", "false", "quiet")
    assert "Unknown" in jattach(shop, "jcmd", "Shop.say x", status=255)
    assert "return code: 0\n" in jattach(shop, "load", "shop_agent", "false")
    assert "abab" in jattach(shop, "jcmd", "Shop.say ab")
    assert "\tShop.say\n" not in jattach(shop, "jcmd", "help")
    assert "\nShop.say\n" in jattach(shop, "jcmd", "help")
    assert shop.ask("unload('shop_agent')") == "None"
    assert "Unknown" in jattach(shop, "jcmd", "Shop.say x", status=255)
    assert "nosuch was not loaded: no module is called nosuch" in jattach(shop, "load", "nosuch", "false", status=255)


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="breakpoints need CPython 3.12")
def test_an_agents_report(shop: Child) -> None:
    """trace, from outside, on a function of the program's: asked for while it runs, gone when it is unloaded."""
    name = "vmscope.agents.trace"
    assert "return code: 0\n" in jattach(shop, "load", name, "false", "match=__main__.sell")
    for _ in range(3):
        assert shop.ask("sell()") == "sold"
    header, row = jattach(shop, "jcmd", "Trace.print").strip().splitlines()
    assert header.split()[0] == "calls"
    assert (row.split()[0], row.split()[-1]) == ("3", "__main__.sell")
    assert shop.ask("unload('vmscope.agents.trace')") == "None"
    assert "Unknown" in jattach(shop, "jcmd", "Trace.print", status=255)


def test_the_program_has_seen_nothing(shop: Child) -> None:
    jattach(shop, "jcmd", "VM.log what=tool=debug")
    jattach(shop, "jcmd", "VM.log disable")
    assert shop.ask("sorted(each.name for each in threading.enumerate())") == "['MainThread', 'the customer']"
    assert shop.ask("threading.main_thread() is threading.current_thread()") == "True"


STATE = programs.source("jdk_clients/state")


def test_commands_leave_nothing_behind(tmp_path: Path) -> None:
    """In a program that takes every warning for an error: all commands that can do without arguments, twice."""
    program = "import vmscope\nvmscope.start()\n" + STATE
    with Child(python_command(program, options=["-X", "dev", "-W", "error"]), merge_stderr=True) as child:
        child.read_until(b"ready\n")
        lines = [
            *(
                name
                for name in sorted(TABLE)
                if not any(each.mandatory for each in arguments(name)) and name != "JFR.start"
            ),
            *(
                "Python.tracemalloc start",
                "Python.tracemalloc top",
                "Python.tracemalloc compare",
                "Python.tracemalloc stop",
                "JFR.start name=left",
                "JFR.stop name=left",
            ),
            *(
                f"VM.log what=all=debug output={tmp_path / 'log'}",
                "VM.log disable",
                "VM.set_flag PerfDataSamplingInterval 50",
            ),
        ]
        before = child.ask("state()")
        for line in lines * 2:
            assert jattach(child, "jcmd", line), line
        assert child.ask("state()") == before
        assert child.stop() == 0
        assert child.rest() == b""


def arguments(name: str) -> tuple[Argument, ...]:
    command = find(name)
    assert command is not None
    return command.arguments
