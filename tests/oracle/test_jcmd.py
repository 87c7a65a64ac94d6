"""vmscope jcmd and JDK 17's jcmd, on the same VMs, over many command lines."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import programs
from tests.conftest import StartJVM, StartPython, StartVMScope
from tests.oracle.isolated import isolated
from tests.oracle.jdk_tools import vmscope
from tests.support import JDK, JVM

PID = "PID"  # in a command line: the JVM's
LINES = [
    [PID],
    [PID, "help"],
    [PID, "help", "VM.version"],
    [PID, "help Thread.print"],
    [PID, "help", "-all"],
    [PID, "help", "nonsense"],
    [PID, "VM.version"],
    [PID, "VM.command_line"],
    [PID, "VM.flags"],
    [PID, "VM.flags", "-all"],
    [PID, "VM.system_properties"],
    [PID, "VM.uptime"],
    [PID, "VM.uptime", "-date"],
    [PID, "GC.heap_info"],
    [PID, "VM.log", "list"],
    [PID, "VM.info"],
    [PID, "GC.run"],
    [PID, "Thread.print"],
    [PID, "GC.class_histogram"],
    [PID, "nonsense"],
    [PID, "VM.version", "x", "y"],
    [PID, "VM.set_flag", "NoSuchFlag", "1"],
    [PID, "GC.heap_dump"],
    [PID, "JVMTI.agent_load", "/none.so"],
    [PID, ""],
    [PID, " ", ""],
    [PID, "stop"],
    [PID, "VM.version\nstop\nVM.uptime"],
    [PID, "VM.version\n\nVM.version"],
    [PID, "VM.version\n\n"],
    [PID, "-l"],
    [PID, "-h"],
    [PID, "tägl\u00efch"],
    [PID, "VM.version", "-J-Dx=y"],
    ["-J-Dx=y", PID, "VM.version"],
    [PID, "PerfCounter.print"],
    [PID, "PerfCounter.print", "x"],
    [PID, "x", "PerfCounter.print"],
    ["+" + PID, "VM.version"],
    ["000" + PID, "VM.version"],
    ["4194305", "VM.version"],
    ["4194305", "PerfCounter.print"],
    ["99999999999", "VM.version"],
    ["99999999999999999999", "VM.version"],
    ["no.such.Class", "VM.version"],
    ["no.such.Class"],
    ["0x1", "VM.version"],
    ["1.0", "VM.version"],
    ["", "VM.version"],
    ["-x", "VM.version"],
    ["-5"],
    ["--", PID],
    [PID, "-f"],
    [PID, "-f", "/none"],
    [PID, "-f", "/"],
    [PID, "-f", "a", "b"],
    [PID, "VM.version", "-f"],
    ["-h", "x"],
    ["-help"],
    ["--help"],
    ["-?"],
    ["-J"],
]
FILES = [
    "VM.version",
    "VM.version\n",
    "VM.version\n\nVM.flags\n",
    "VM.version\r\nVM.flags\rVM.version",
    "",
    "\n",
    "stop",
    "VM.version\n  stop \nVM.flags\n",
    "VM.version\nnonsense\nVM.version\n",
    "help VM.version\n# VM.version\n",
    "VM.version\n\n\n",
]

Run = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def jvm17(jdk17: JDK) -> Iterator[JVM]:
    """A JVM that has opened its socket and found out its time zone, so that its first answer is as its second."""
    jvm = JVM(jdk17, "-XX:+UseSerialGC", "-Xmx32m", "-Xint")
    try:
        assert jdk17.run("jcmd", str(jvm.pid), "VM.system_properties").returncode == 0
        yield jvm
    finally:
        jvm.kill()


def still(text: str) -> str:
    """Without what changes from one moment to the next."""
    text = re.sub(r"(?m)^(sun\.(os\.hrt\.ticks|perfdata\.timestamp|rt\.\w+Time|rt\._sync\w+)=).*", r"\1", text)
    text = re.sub(r"\d+(\.\d+)?", "0", text)
    return re.sub(r"0x\w+|\b[0-9a-f]{4,}\b", "x", text)


def compare(theirs: Run, mine: Run) -> None:
    """The same but for times and addresses; a stack trace is one line of ours; help explains in other words."""
    assert mine.returncode == theirs.returncode
    begin = theirs.stdout.find("Usage: jcmd")
    if begin >= 0:
        assert mine.stdout.split("\n\n")[0] == "\n".join(
            line.rstrip() for line in theirs.stdout[begin:].split("\n")[:3]
        )
    else:
        assert alike(theirs.stdout, mine.stdout)
    if "\n\tat " in theirs.stderr:
        assert len(mine.stderr.splitlines()) == 1
    else:
        assert mine.stderr == theirs.stderr


def alike(theirs: str, mine: str) -> bool:
    """Numbers that move may change a table's padding, and a histogram's or a thread's line with them."""
    if mine == theirs:
        return True
    a, b = (" ".join(still(text).split()) for text in (theirs, mine))
    return a == b


@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line).replace("\n", "|") or "nothing")
def test_a_command_line(jdk17: JDK, jvm17: JVM, line: list[str]) -> None:
    words = [word.replace(PID, str(jvm17.pid)) for word in line]
    theirs, mine = jdk17.run("jcmd", *words), vmscope("jcmd", *words)
    if words[-1] in ("VM.info", "Thread.print", "GC.class_histogram"):  # never twice the same
        assert mine.stdout.splitlines()[:1] == theirs.stdout.splitlines()[:1]
        assert 0.9 < len(mine.stdout) / len(theirs.stdout) < 1.1
        assert (mine.returncode, mine.stderr) == (theirs.returncode, theirs.stderr) == (0, "")
        return
    compare(theirs, mine)


@pytest.mark.parametrize("number", range(len(FILES)))
def test_a_file_of_commands(jdk17: JDK, jvm17: JVM, tmp_path: Path, number: int) -> None:
    path = tmp_path / "commands"
    path.write_bytes(FILES[number].encode())
    words = [str(jvm17.pid), "-f", str(path)]
    compare(jdk17.run("jcmd", *words), vmscope("jcmd", *words))


def test_the_list_and_names(jdk17: JDK) -> None:
    """Regions that say they can be asked or not, odd ones, in jcmd's order; and live VMs by their names."""
    listed, named = isolated(
        r"""
        good = corpus.load("17.0.15-debian-g1")
        names = [name for name in corpus.names() if not name.startswith("made-")]
        kept = []
        for pid, name in zip([16 * n + 7 for n in range(1, 13)] + [900 + 31 * n for n in range(28)], names):
            kept.append(process(pid))
            publish(pid, corpus.load(name))
        odd = {
            301: good.replace(b"sun.rt.javaCommand", b"sun.rt.javaCommanx"),
            302: good.replace(b"sun.rt.jvmCapabilities", b"sun.rt.jvmCapabilitiex"),
            303: good.replace(b"1000000000", b"0000000000"),
            304: bytes(4096),
            305: good[:4096],
        }
        for pid, data in odd.items():
            kept.append(process(pid))
            publish(pid, data)
        lines = [["-l"], [], ["-l", "x"], ["no.such", "help"]]
        listed = [[run(facts["jcmd"], *line), ours("jcmd", *line)] for line in lines]
        for child in kept:
            child.kill()
            child.wait()
        import shutil
        shutil.rmtree("/tmp/hsperfdata_root")
        def start(*command):
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        ask = ["-importpass", "-keystore", "/none", "-alias"]
        java = [facts["java"], "-XX:+UseSerialGC", "-Xmx32m"]
        made = [
            start(*java, "sun.security.tools.keytool.Main", *ask, "a  b"),
            start(*java, "-m", "java.base/sun.security.tools.keytool.Main", *ask, "täglich"),
            start(*java, "-XX:+DisableAttachMechanism", "sun.security.tools.keytool.Main", *ask, "c"),
            start(*java, "-XX:-UsePerfData", "sun.security.tools.keytool.Main", *ask, "c"),
        ]
        for child in made:
            text = b""
            while not text.endswith(b"password:"):
                char = child.stdout.read(1)
                assert char, text
                text += char
        lines = [["-l"], ["keytool", "VM.version"], ["java.base", "VM.version"], ["keytool"], ["Main", "nonsense"],
                 ["a  b", "VM.version"], ["KeyTool", "VM.version"], ["keytool", "PerfCounter.print"]]
        lines += [[str(child.pid), "VM.version"] for child in made]
        named = [[run(facts["jcmd"], *line), ours("jcmd", *line)] for line in lines]
        env = dict(os.environ, LC_ALL="C")
        named.append([run(facts["jcmd"], "-l", env=env), ours("jcmd", "-l", env=env)])
        result = [listed, named]
        """,
        java=jdk17.tool("java"),
        jcmd=jdk17.tool("jcmd"),
    )
    for theirs, mine in listed + named:
        others = "".join(line for line in theirs[1].splitlines(keepends=True) if "sun.tools.jcmd.JCmd" not in line)
        compare(subprocess.CompletedProcess([], theirs[0], others, theirs[2]), subprocess.CompletedProcess([], *mine))
    assert len(listed[0][1][1].splitlines()) > 20
    assert named[1][1][1].count("OpenJDK") == 2


def test_all_of_them(jdk17: JDK) -> None:
    """0: the JVMs one after the other; the JDK's asks itself too, and so fails or shows itself."""
    theirs, mine = isolated(
        r"""
        ask = ["sun.security.tools.keytool.Main", "-importpass", "-keystore", "/none"]
        made = [
            subprocess.Popen([facts["java"], *ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(3)
        ]
        deadline = time.monotonic() + 60
        while ours("jcmd", "-l")[1].count("keytool") < 3:
            assert time.monotonic() < deadline
        result = [run(facts["jcmd"], "0", "VM.command_line"), ours("jcmd", "0", "VM.command_line")]
        """,
        java=jdk17.tool("java"),
        jcmd=jdk17.tool("jcmd"),
    )
    assert mine[0] == 0
    assert mine[2] == ""
    assert mine[1].count("keytool") == 3
    assert (
        theirs[1].startswith(mine[1])
        or mine[1] in theirs[1]
        or all(part in theirs[1] for part in re.split(r"(?m)^(?=\d+:)", mine[1]))
    )


PYTHON_LINES = [
    [PID],
    [PID, "help", "-all"],
    [PID, "help", "VM.version"],
    [PID, "help", "Thread.print"],
    [PID, "help", "nonsense"],
    [PID, "VM.version"],
    [PID, "VM.command_line"],
    [PID, "VM.flags", "-all"],
    [PID, "VM.system_properties"],
    [PID, "VM.uptime"],
    [PID, "GC.run"],
    [PID, "nonsense"],
    [PID, "VM.version", "x"],
    [PID, "VM.set_flag", "NoSuchFlag", "1"],
    [PID, ""],
    [PID, "täglich"],
    [PID, "VM.version\n\nstop\nVM.flags"],
    [PID, "PerfCounter.print"],
]


def test_a_python_vm(jdk17: JDK, start_vmscope: StartVMScope) -> None:
    """The same answers of one, whichever client asks; and it is in the list."""
    vm = start_vmscope(code="vmscope.text('shop.name', capacity=40).set('t\u00e4glich')")
    for line in PYTHON_LINES:
        words = [word.replace(PID, str(vm.pid)) for word in line]
        compare(jdk17.run("jcmd", *words), vmscope("jcmd", *words))
    listed = [run.stdout.splitlines() for run in (jdk17.run("jcmd", "-l"), vmscope("jcmd", "-l"))]
    own = [[line for line in lines if line.startswith(f"{vm.pid} ")] for lines in listed]
    assert own[0] == own[1]
    assert len(own[0]) == 1


# What a server says, and how jcmd takes it: bytes after which the connection is closed.
ANSWERS = {
    "text": b"0\nhello\n",
    "nothing": b"0\n",
    "no end of line": b"0\nhello",
    "characters": "0\ntägl\u00efch \U0001f600 \ufffd\n".encode(),
    "no characters": b"0\n\xff\xfe\xc3\n",
    "a failure": b"-1\nsomething went wrong",
    "a failure of lines": b"-1\nsomething\nwent\r\nwrong\n",
    "a failure that says nothing": b"-1\n",
    "another version": b"101\nhello\n",
    "a status of its own": b"7\nseven\n",
    "no status": b"hello\n",
    "half a status": b"0",
    "an empty answer": b"",
    "an empty line": b"\n",
}
SERVER = programs.source("jcmd/server")


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_server_may_say(jdk17: JDK, start_python: StartPython, name: str) -> None:
    """A server of the test's own: the same request, and the same made of its answer."""
    server = start_python(SERVER, ANSWERS[name].hex())
    words = [str(server.pid), "Some.command", "täglich", "a=b"]
    for locale in ("C.UTF-8", "C"):
        env = {"LC_ALL": locale}
        theirs = subprocess.run(
            [jdk17.tool("jcmd"), *words], capture_output=True, env={**env, "PATH": "/usr/bin"}, timeout=30, check=False
        )
        asked = server.readline()
        mine = vmscope("jcmd", *words, env=env)
        if locale == "C.UTF-8":
            assert server.readline() == asked
        else:
            server.readline()  # arguments that are not ASCII are lost to Java in the C locale
        errors = theirs.stderr.decode()
        assert mine.returncode == theirs.returncode
        assert mine.stdout.encode("utf-8", "surrogateescape") == theirs.stdout
        if "\n\tat " in errors:
            assert len(mine.stderr.splitlines()) == 1
        else:
            assert mine.stderr == errors
    server.process.terminate()


@pytest.mark.parametrize("version", [17, 21, 25])
def test_jvms_of_all_versions(jdk17: JDK, start_jvm: StartJVM, version: int) -> None:
    """A JVM that nobody has asked before, then one that listens."""
    jdk = JDK.find(version)
    if jdk is None:
        pytest.skip(f"no JDK {version}: run make jdks")
    jvm = start_jvm("-Xmx32m", jdk=jdk)
    pid = str(jvm.pid)
    first = vmscope("jcmd", pid, "VM.version")
    assert first.stderr == ""
    for words in ([pid, "VM.version"], [pid, "VM.command_line"], [pid, "help"], [pid, "nonsense"]):
        compare(jdk17.run("jcmd", *words), vmscope("jcmd", *words))
    assert first.stdout == vmscope("jcmd", pid, "VM.version").stdout
