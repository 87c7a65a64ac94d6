"""How libraries are found, loaded, refused and unloaded: as HotSpot 17 does it, in its words."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.native import PROGRAM, build, compiler, full_jdk
from tests.support import JDK, JVM, PATIENCE, Child
from vmscope.errors import LibraryError
from vmscope.tool import agents, host

SLEEPER = "import sys; print('up', flush=True); sys.stdin.readline()"
STARTED = ("Agent_OnLoad", "Agent_OnAttach", "Agent_OnUnload", "Error occurred", "Could not find", "agent library")


@pytest.fixture(scope="module")
def jdk17() -> JDK:
    return full_jdk(17)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, jdk17: JDK) -> Path:
    """Libraries, good and bad."""
    folder = tmp_path_factory.mktemp("libraries")
    good = build(PROGRAM / "plain.c", folder, jdk17)
    for name, options in {
        "noload": ["-DNO_LOAD"],
        "noattach": ["-DNO_ATTACH"],
        "empty": ["-DNO_LOAD", "-DNO_ATTACH"],
    }.items():
        other = folder / name
        other.mkdir()
        build(PROGRAM / "plain.c", other, jdk17, *options).rename(folder / f"lib{name}.so")
    (folder / "needed.c").write_text("int needed(void) { return 1; }\n")
    needed = build(folder / "needed.c", folder, jdk17)
    (folder / "needy").mkdir()
    needy = build(PROGRAM / "plain.c", folder / "needy", jdk17, "-Wl,--no-as-needed", f"-L{folder}", "-lneeded")
    needy.rename(folder / "libneedy.so")
    needed.unlink()
    other_machine = bytearray(good.read_bytes())
    other_machine[18:20] = (0xB7).to_bytes(2, "little")  # AArch64's number
    (folder / "libother.so").write_bytes(other_machine)
    shutil.copy(good, folder / "lib ä\udcff,.so")
    (folder / "libtext.so").write_text("This is no library.\n")
    (folder / "libfolder.so").mkdir()
    return folder


def run(command: list[str], variables: dict[str, str] | None = None) -> tuple[int, list[str]]:
    """The status, and of the lines those that agents and their loading say."""
    done = subprocess.run(
        command,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="surrogateescape",
        timeout=2 * PATIENCE,
        check=False,
    )
    return done.returncode, [comparable(line) for line in done.stdout.splitlines() if line.startswith(STARTED)]


def comparable(line: str) -> str:
    """Both say of a library for another machine that it is one, each in its own words; and bytes that are no text are
    written as they are, or as Python writes them."""
    line = re.sub("[\udc80-\udcff]", lambda byte: f"\\u{ord(byte[0]):x}", line)
    return re.sub(r" \((Possible cause: can't load AARCH64|it is for another bridge: AArch64).*\)", " (AArch64)", line)


def java(jdk: JDK, options: list[str], variables: dict[str, str] | None = None) -> tuple[int, list[str]]:
    return run([jdk.tool("java"), "-XX:+UseSerialGC", *options, "-version"], variables)


def python(options: list[str], variables: dict[str, str] | None = None) -> tuple[int, list[str]]:
    return run([sys.executable, "-m", "vmscope", "run", *options, "-c", "pass"], variables)


# -- at start -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        ["-agentpath:FOLDER/libplain.so"],
        ["-agentpath:FOLDER/libplain.so="],
        ["-agentpath:FOLDER/libplain.so=0,a=b=c é"],
        ["-agentpath:FOLDER/libplain.so=0", "-agentpath:FOLDER/libplain.so=00", "-agentpath:FOLDER/libnoattach.so"],
        ["-agentpath:FOLDER/libplain.so=3"],
        ["-agentpath:FOLDER/libplain.so=-1"],
        ["-agentpath:FOLDER/libmissing.so=0"],
        ["-agentpath:FOLDER/libnoload.so"],
        ["-agentpath:FOLDER/libneedy.so"],
        ["-agentpath:FOLDER/libother.so"],
        ["-agentpath:FOLDER/libtext.so"],
        ["-agentpath:FOLDER/libfolder.so"],
        ["-agentpath:FOLDER/libplain"],
        ["-agentpath:FOLDER/lib ä\udcff,.so=0 \udcfe,é"],
        ["-agentpath:FOLDER/libmissing\udcff.so"],
        ["-agentpath:libplain.so"],
        ["-agentlib:plain=0"],
        ["-agentlib:missing"],
        ["-agentlib:libplain.so"],
        ["-agentlib:FOLDER/libplain.so"],
    ],
    ids=lambda options: ascii(" ".join(options).replace("FOLDER/", "")),
)
@pytest.mark.parametrize("on_path", [False, True], ids=["", "LD_LIBRARY_PATH"])
def test_a_library_at_start(jdk17: JDK, folder: Path, options: list[str], on_path: bool) -> None:
    options = [option.replace("FOLDER", str(folder)) for option in options]
    variables = {"LD_LIBRARY_PATH": str(folder)} if on_path else {}
    expected = java(jdk17, options, variables)
    assert expected[1]
    assert python(options, variables) == expected


@pytest.mark.parametrize("option", ["lib:missing", "path:FOLDER/libneedy.so", "path:FOLDER/libtext.so", "lib:plain=3"])
def test_the_newest_has_the_same_words_but_for_one(folder: Path, option: str) -> None:
    option = "-agent" + option.replace("FOLDER", str(folder))
    variables = {"LD_LIBRARY_PATH": str(folder)}
    status, lines = java(full_jdk(25), [option], variables)
    lines = [line.replace("library failed Agent_OnLoad:", "library failed to init:") for line in lines]
    assert python([option], variables) == (status, lines)
    assert status == 1


def test_the_environment_s_come_first(jdk17: JDK, folder: Path) -> None:
    library = f"-agentpath:{folder}/libplain.so"
    found = java(jdk17, [f"{library}=0 last"], {"JAVA_TOOL_OPTIONS": f"{library}=0first {library}=00"})
    assert [line.split()[0] for line in found[1]] == ["Agent_OnLoad"] * 3 + ["Agent_OnUnload"] * 3
    assert python([f"{library}=0 last"], {"VMSCOPE_TOOL_OPTIONS": f"{library}=0first {library}=00"}) == found


def test_one_that_fails_ends_the_others(jdk17: JDK, folder: Path) -> None:
    """The specification wants those before it unloaded, which HotSpot does not do."""
    options = [f"-agentpath:{folder}/libplain.so={text}" for text in ("0first", "7", "0last")]
    status, lines = java(jdk17, options)
    assert (status, lines[:2]) == (1, ["Agent_OnLoad 0first", "Agent_OnLoad 7"])
    assert python(options) == (1, [*lines[:2], "Agent_OnUnload (no options)", *lines[2:]])


def test_the_folders_of_a_property_come_before_the_loader_s(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "libnoload.so", tmp_path / "libplain.so")
    said = "Could not find Agent_OnLoad function in the agent library: plain"
    for first, second, status in ((folder, tmp_path, 0), (tmp_path, folder, 1)):
        found = python([f"-Djava.library.path=/nowhere::{first}:{second}", "-agentlib:plain"])
        assert found[0] == status
        assert (said in found[1]) == (status == 1)
        variables = {"LD_LIBRARY_PATH": str(second)}
        assert python([f"-Djava.library.path={first}", "-agentlib:plain"], variables) == found


def test_a_name_no_library_can_have() -> None:
    with pytest.raises(LibraryError, match=r"Could not find agent library /a.b\.so in absolute path"):
        agents.agent_of(host.vm(), "-agentpath:/a\0b.so")


# -- while the program runs -----------------------------------------------------------------------


class Ask(Protocol):
    def __call__(self, pid: int, *words: str) -> list[str]: ...


def jcmd(jdk: JDK) -> Ask:
    def ask(pid: int, *words: str) -> list[str]:
        done = jdk.run("jcmd", str(pid), "JVMTI.agent_load", *words)
        return [str(done.returncode), *done.stdout.replace(f"{pid}:\n", "", 1).splitlines()]

    return ask


def cmd(pid: int, *words: str) -> list[str]:
    command = [sys.executable, "-m", "vmscope", "cmd", str(pid), "JVMTI.agent_load", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return [str(done.returncode), *done.stdout.splitlines()]


def jattach(pid: int, *words: str) -> list[str]:
    done = subprocess.run(
        ["jattach", str(pid), "load", *words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return [str(done.returncode), *done.stdout.splitlines()]


@pytest.fixture(scope="module")
def jvm(jdk17: JDK) -> Iterator[Child]:
    with JVM(jdk17, "-XX:+UseSerialGC") as jvm:
        yield jvm


@pytest.fixture(scope="module")
def vm() -> Iterator[Child]:
    command = [sys.executable, "-m", "vmscope", "run", "-XX:+EnableDynamicAgentLoading", "-c", SLEEPER]
    with Child(command) as child:
        assert child.readline() == "up"
        yield child


LOADS = [
    ["FOLDER/libplain.so"],
    ["FOLDER/libplain.so", "0"],
    ["FOLDER/libplain.so", "5"],
    ["FOLDER/libplain.so", "-3"],
    ["FOLDER/libnoload.so", "0a=b"],
    ["FOLDER/libnoattach.so"],
    ["FOLDER/libempty.so"],
    ["FOLDER/libmissing.so"],
    ["FOLDER/libneedy.so"],
    ["FOLDER/libother.so"],
    ["FOLDER/libtext.so"],
    ["FOLDER/libfolder.so"],
    ["libmissing.so", "0"],
]


@pytest.mark.parametrize("words", LOADS, ids=lambda words: " ".join(words).replace("FOLDER/", ""))
def test_a_library_that_a_client_loads(jdk17: JDK, folder: Path, jvm: Child, vm: Child, words: list[str]) -> None:
    words = [word.replace("FOLDER", str(folder)) for word in words]
    ask = jcmd(jdk17)
    expected = [comparable(line) for line in ask(jvm.pid, *words)]
    assert [comparable(line) for line in ask(vm.pid, *words)] == expected
    assert [comparable(line) for line in cmd(vm.pid, *words)] == expected


@pytest.mark.skipif(shutil.which("jattach") is None, reason="no jattach: apt-get install jattach")
@pytest.mark.parametrize("words", LOADS, ids=lambda words: " ".join(words).replace("FOLDER/", ""))
def test_a_library_that_jattach_loads(folder: Path, jvm: Child, vm: Child, words: list[str]) -> None:
    path, *options = (word.replace("FOLDER", str(folder)) for word in words)
    expected = [comparable(line) for line in jattach(jvm.pid, path, "true", *options)]
    assert len(expected) > 2
    assert [comparable(line) for line in jattach(vm.pid, path, "true", *options)] == expected


def test_what_a_client_loaded_is_unloaded_in_the_list_s_order(jdk17: JDK, folder: Path) -> None:
    """Each load is one more, and those that refused are none."""
    sleeper = [sys.executable, "-m", "vmscope", "run", "-XX:+EnableDynamicAgentLoading"]
    sleeper += [f"-agentpath:{folder}/libplain.so=0", "-c", SLEEPER]
    with Child(sleeper) as child:
        assert [child.readline(), child.readline()] == ["Agent_OnLoad 0", "up"]
        for words in (["0"], ["3"], []):
            jcmd(jdk17)(child.pid, f"{folder}/libplain.so", *words)
        info = jdk17.run("jcmd", str(child.pid), "VM.info").stdout
        assert info.count(f"  {folder}/libplain.so=0\n") == 2
        assert info.count(f"  {folder}/libplain.so=\n") == 1
        child.send("close")
        lines = child.rest().decode().splitlines()
    assert lines == [
        "Agent_OnAttach 0",
        "Agent_OnAttach 3",
        "Agent_OnAttach (no options)",
        *["Agent_OnUnload (no options)"] * 3,
    ]


def test_whom_a_program_is_warned_of(folder: Path) -> None:
    """Also of a library that lacks Agent_OnAttach, and of one that refuses: a JVM each time, as it is closed again,
    here once, whatever a client does again and again. Not of one that is not there."""
    jdk = full_jdk(25)
    loads = ["noattach", "plain 3", "plain 0", "plain 0", "missing", "noattach"]
    warned = []
    sleeper = [sys.executable, "-m", "vmscope", "run", "-c", SLEEPER]
    for child in (JVM(jdk, "-XX:+UseSerialGC"), Child(sleeper, merge_stderr=True)):
        with child:
            for load in loads:
                name, *options = load.split()
                jcmd(jdk)(child.pid, f"{folder}/lib{name}.so", *options)
            child.process.terminate()
            said = child.rest().decode().splitlines()
        warned.append([re.findall(r"/lib(\w+)\.so", line) for line in said if "WARNING" in line and "/lib" in line])
    assert warned[0] == [["noattach"], ["plain"], ["plain"], ["noattach"]]
    assert warned[1] == [["noattach"], ["plain"]]


def test_no_name_is_the_library_lib_so(jvm: Child, vm: Child) -> None:
    """A client's load without words; in Python no module is asked for."""
    if shutil.which("jattach") is None:
        pytest.skip("no jattach: apt-get install jattach")
    expected = jattach(jvm.pid)
    assert expected[-2] == "lib.so: cannot open shared object file: No such file or directory"
    assert jattach(vm.pid) == expected


def test_vmscope_attach_loads_a_library(folder: Path, vm: Child) -> None:
    def attach(text: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "vmscope", "attach", str(vm.pid), text]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.returncode, done.stdout, done.stderr

    assert attach("./libplain.so=0") == (0, f"{vm.pid} has loaded ./libplain.so\n", "")
    status, _, errors = attach("libplain.so=6")
    assert (status, errors) == (1, f"vmscope: agent libplain.so: process {vm.pid} says: return code: 6\n")
    assert f"{folder}/libmissing.so was not loaded. {folder}/libmissing.so: cannot" in attach("libmissing.so")[2]
    assert attach("=0") == (2, "", "vmscope: attach takes an agent, not '=0' (vmscope attach --help shows how)\n")


def test_threads_that_load_the_first_agents_at_once(folder: Path) -> None:
    """There is one JavaVM, and what each Agent_OnAttach asks of it is answered."""
    code = f"""
import sys, threading
from vmscope import tool
sys.setswitchinterval(1e-6)
gate = threading.Barrier(8)
def load():
    gate.wait()
    tool.load_agent({str(folder / "libplain.so")!r}, "0")
threads = [threading.Thread(target=load) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("Agent_OnLoad was not called for", len(tool.vm().environments))
"""
    command = [sys.executable, "-m", "vmscope", "run", "-c", code]
    status, lines = run(command)
    assert status == 0
    assert sorted(lines) == [
        *["Agent_OnAttach 0"] * 8,
        "Agent_OnLoad was not called for 8",
        *["Agent_OnUnload (no options)"] * 8,
    ]


def test_agents_that_came_and_went_cost_the_next_nothing(folder: Path) -> None:
    """Their environments are disposed of; nobody is told of changes any more on their behalf."""
    code = f"""
import vmscope
from vmscope import tool
from vmscope.tool.jni.bridge import bridge
for options in ["0", "5"] * 50:
    try:
        tool.unload_agent(tool.load_agent({str(folder / "libplain.so")!r}, options))
    except vmscope.VMScopeError as error:
        assert "failed to init" in str(error)
print("Agent_OnLoad:", len(bridge(tool.vm(), "nobody")._in_use))
"""
    status, lines = run([sys.executable, "-m", "vmscope", "run", "-c", code])
    each = ["Agent_OnAttach 0", "Agent_OnUnload (no options)", "Agent_OnAttach 5"]
    assert (status, lines) == (0, [*each * 50, "Agent_OnLoad: 0"])


# -- linked into the program ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, jdk17: JDK) -> Path:
    """Embeds this Python, and has the agent `shop`: Agent_OnLoad_shop and so on."""
    folder = tmp_path_factory.mktemp("program")
    settings = sysconfig.get_config_var
    include = jdk17.home / "include"
    command = [
        *(compiler(), "-std=c11", "-rdynamic", "-DSUFFIX=_shop", str(PROGRAM / "host.c"), str(PROGRAM / "plain.c")),
        *(f"-I{include}", f"-I{include}/linux", f"-I{sysconfig.get_path('include')}", "-o", str(folder / "program")),
        *(f"-L{settings('LIBDIR')}", f"-Wl,-rpath,{settings('LIBDIR')}", f"-lpython{settings('LDVERSION')}"),
        *str(settings("LIBS")).split(),
        *str(settings("SYSLIBS")).split(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        pytest.skip(f"no program can be linked with Python here: {done.stderr.strip()[-200:]}")
    return folder / "program"


def embedded(program: Path, words: list[str], code: str = "pass", variables: dict[str, str] | None = None) -> list[str]:
    """What a run of vmscope in that program says."""
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [
            str(program),
            "-c",
            f"from vmscope.cli import main; import sys; sys.exit(main({['run', *words, '-c', code]!r}))",
        ],
        env={**os.environ, "PYTHONHOME": sys.base_prefix, "PYTHONPATH": paths, **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "option", ["-agentlib:shop=0a", "-agentpath:/nowhere/libshop.so=0a", "-agentpath:FOLDER/libshop.so=0a"]
)
def test_a_linked_agent_wins(program: Path, folder: Path, option: str) -> None:
    """Over a library of its name; for a path the file's name counts, and the file need not exist."""
    shutil.copy(folder / "libplain.so", folder / "libshop.so")
    variables = {"LD_LIBRARY_PATH": str(folder)}
    assert embedded(program, [option.replace("FOLDER", str(folder))], variables=variables) == [
        "Agent_OnLoad_shop 0a",
        "Agent_OnUnload_shop (no options)",
    ]


@pytest.mark.parametrize("option", ["-pyagent:shop=0a", "-agentlib:shop=0a", "attach", "load_agent"])
def test_a_linked_agent_wins_over_a_module_of_its_name(program: Path, tmp_path: Path, option: str) -> None:
    (tmp_path / "shop.py").write_text("print('a module')\nagent_on_load = agent_on_attach = lambda vm, options: 0\n")
    paths = os.pathsep.join(filter(None, [str(tmp_path), *sys.path]))
    code, words, entry = "pass", [option], "Agent_OnLoad_shop"
    if option == "load_agent":
        code, words, entry = "from vmscope import tool; tool.load_agent('shop', '0a')", [], "Agent_OnAttach_shop"
    elif option == "attach":
        code, words, entry = (
            "import vmscope; vmscope.stop(); vmscope.start('-pyagent:shop=0a')",
            [],
            "Agent_OnAttach_shop",
        )
    lines = embedded(program, words, code, {"PYTHONPATH": paths})
    assert lines == [f"{entry} 0a", "Agent_OnUnload_shop (no options)"]
    other = embedded(program, ["-pyagent:store"], variables={"PYTHONPATH": paths})
    assert "no module is called store" in other[-1]


@pytest.mark.parametrize("path", ["shop", "libshop", "/nowhere/shop.so", "/nowhere/libshop", "/nowhere/libshop.so.1"])
def test_a_file_that_is_called_otherwise_is_not_linked(program: Path, path: str) -> None:
    """As HotSpot 17 has it: the name of a linked agent's file has both `lib` and `.so`."""
    assert embedded(program, [f"-agentpath:{path}=0"]) == [
        "Error occurred during initialization of VM",
        f"Could not find agent library {path} in absolute path, with error: {path}: cannot open shared object file: "
        "No such file or directory",
    ]


def test_a_linked_agent_s_own_functions_count_alone(program: Path, folder: Path) -> None:
    """What is linked as `shop` is no other agent; and it is loaded each time that it is named."""
    lines = embedded(program, ["-agentlib:shop", f"-agentpath:{folder}/libplain.so=0", "-agentlib:shop=0"])
    assert lines == [
        "Agent_OnLoad_shop (no options)",
        "Agent_OnLoad 0",
        "Agent_OnLoad_shop 0",
        "Agent_OnUnload_shop (no options)",
        "Agent_OnUnload (no options)",
        "Agent_OnUnload_shop (no options)",
    ]
    assert embedded(program, ["-agentlib:shop=4"]) == [
        "Agent_OnLoad_shop 4",
        "Error occurred during initialization of VM",
        "agent library failed to init: shop",
    ]


def test_a_linked_agent_attaches_and_stays(program: Path, folder: Path) -> None:
    code = f"""
import vmscope
from vmscope import tool
shutil = __import__("shutil")
shutil.copy({str(folder / "libplain.so")!r}, {str(folder / "libshop.so")!r})
agent = tool.load_agent({str(folder / "libshop.so")!r}, "0b")
print(agent, len(tool.vm().environments), flush=True)
for wrong in (lambda: tool.unload_agent(agent), lambda: tool.load_agent("/anywhere/libshop.so", "9")):
    try:
        wrong()
    except vmscope.VMScopeError as error:
        print(type(error).__name__, error, flush=True)
"""
    assert embedded(program, [], code) == [
        "Agent_OnAttach_shop 0b",
        f"<Agent {folder}/libshop.so=0b, linked> 1",
        f"AgentError agent {folder}/libshop.so: it is linked into the program, and never unloaded",
        "Agent_OnAttach_shop 9",
        "LibraryError agent library failed to init: /anywhere/libshop.so",
        "Agent_OnUnload_shop (no options)",
    ]
