"""The grammar of commands and their arguments, against a JVM that is asked the same."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from tests.conftest import StartJVM
from tests.oracle.raw_attach import ask
from tests.support import JDK
from vmscope.commands import execute
from vmscope.commands.arguments import ILLEGAL, Argument, parse
from vmscope.errors import CommandError


def flag(name: str) -> Argument:
    return Argument(name, "", "BOOLEAN", default="false", option=True)


# What JDK 17's commands take, of those that do nothing or next to it in an idle JVM. Compiler.queue takes nothing.
TAKES = {
    "VM.uptime": (flag("-date"),),
    "Compiler.queue": (),
    "help": (Argument("command name", ""), flag("-all")),
    "JVMTI.agent_load": (Argument("library path", "", mandatory=True), Argument("agent option", "")),
    "GC.heap_dump": (
        Argument("filename", "", mandatory=True),
        flag("-all"),
        Argument("-gz", "", "INT", default="1"),
        flag("-overwrite"),
    ),
    "VM.native_memory": (
        *map(flag, ("summary", "detail", "baseline", "summary.diff", "detail.diff", "shutdown", "statistics")),
        Argument("scale", "", default="KB", option=True),
    ),
}

LINES = r"""
VM.uptime -x
VM.uptime x
VM.uptime help
VM.uptime -date -date
VM.uptime -date=false -date=true
VM.uptime "-date"
VM.uptime '-date'
VM.uptime -date="true"
VM.uptime -date='true'
VM.uptime -date=""
VM.uptime -date=
VM.uptime "-date=true"
VM.uptime -date=TRUE
VM.uptime -date=tru
VM.uptime -date=true=x
VM.uptime   -date
VM.uptime "-date
VM.uptime -date="true
VM.uptime =
VM.uptime =true
VM.uptime -
VM.uptime -date , x
VM.uptime "" -x
VM.uptime =a -x
VM.uptime -date "" x
Compiler.queue x
Compiler.queue ""
Compiler.queue "
Compiler.queue -
Compiler.queue =
help -a
help x y
help =x y
help "x y"
help "x" "y"
help x=1 y
help -all x y
help "x
help 'x"
help "x\"y"
help "x\\"
help "x\" y
JVMTI.agent_load
JVMTI.agent_load /nonexistent/a b
JVMTI.agent_load /nonexistent/a "b c"
JVMTI.agent_load /nonexistent/a b c
JVMTI.agent_load ""
JVMTI.agent_load "/nonexistent/a"b
JVMTI.agent_load "/nonexistent/a"b c
GC.heap_dump
GC.heap_dump /nonexistent/a b
GC.heap_dump -gz=x /nonexistent/a
GC.heap_dump -gz= /nonexistent/a
GC.heap_dump -gz /nonexistent/a
GC.heap_dump -gz=1x /nonexistent/a
GC.heap_dump -gz=1. /nonexistent/a
GC.heap_dump -gz="1 " /nonexistent/a
GC.heap_dump -gz=" 1" /nonexistent/a
GC.heap_dump -gz=+1 /nonexistent/a
GC.heap_dump -gz=+ /nonexistent/a
GC.heap_dump -gz=0x1 /nonexistent/a
GC.heap_dump -gz=-1 /nonexistent/a
GC.heap_dump -gz=99999999999999999999 /nonexistent/a
GC.heap_dump -gz="1"x /nonexistent/a
GC.heap_dump -all=tru /nonexistent/a
GC.heap_dump -gz=1,2 /nonexistent/a
VM.native_memory foo
VM.native_memory summary scale
VM.native_memory scale=KB scale=MB
""".strip().splitlines()

PIECES = [
    *("summary", "detail", "baseline", "scale", "statistics", "x", "-", "true", "false", "KB", "1"),
    *("=", "=", "=", " ", " ", " ", '"', '"', "'", "\\", ","),
]


def ours(line: str) -> str:
    """ "" for a line that is understood, or what the client is shown."""
    name, _, text = line.partition(" ")
    try:
        parse(text, TAKES[name])
    except CommandError as error:
        return str(error)
    return ""


def theirs(pid: int, line: str) -> str:
    status, body = ask(pid, "jcmd", line)
    if not body.startswith(ILLEGAL):
        return ""
    assert status == "-1"
    return body.rstrip("\n")


@pytest.fixture(params=[17, 25])
def pid(request: pytest.FixtureRequest, start_jvm: StartJVM) -> int:
    jdk = JDK.find(request.param)
    if jdk is None:
        pytest.skip(f"no JDK {request.param}")
    return start_jvm("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m", jdk=jdk).pid


def test_arguments(pid: int) -> None:
    answers = [theirs(pid, line) for line in LINES]
    assert len(set(answers)) > 15
    assert [(line, ours(line)) for line in LINES] == list(zip(LINES, answers, strict=True))


def test_arguments_at_random(pid: int) -> None:
    dice = random.Random(6)
    lines = ["VM.native_memory " + "".join(dice.choices(PIECES, k=dice.randint(1, 9))) for _ in range(1500)]
    lines = [line for line in lines if len(line) < 45 and not odd(line)]  # it cuts off long answers
    wrong = [(line, jvm, mine) for line in lines if (jvm := theirs(pid, line)) != (mine := ours(line))]
    assert not wrong, f"{len(wrong)} of {len(lines)}: {wrong[:10]}"


def odd(line: str) -> bool:
    """Whether a quote opens in the middle of a word, of which a JVM then loses the first character, or at the end."""
    return any(c in "\"'" and (line[at - 1] not in " =" or at + 1 == len(line)) for at, c in enumerate(line))


def test_lines(pid: int, tmp_path: Path) -> None:
    """Several commands at once, comments, and `stop`."""
    for text, count in (("VM.uptime\nVM.uptime", 2), ("# x\nVM.uptime", 1), ("VM.uptime\nstop\nVM.uptime", 1)):
        assert ask(pid, "jcmd", text)[1].count(" s\n") == count


HELP_LINES = """
VM.version -h
VM.version -help
VM.version --help
VM.version x -h
VM.version -h=true
VM.version "-h"
VM.version -?
help -h
nonsense -h
GC.heap_dump --help /nonexistent/a
GC.heap_dump /nonexistent/a-h
GC.heap_dump "/nonexistent/a -h"
VM.version   -h
GC.run -H
""".strip().splitlines()


def test_help_by_an_option(start_jvm: StartJVM) -> None:
    """As JDK 25 understands it; older ones do not."""
    jdk = JDK.find(25)
    if jdk is None:
        pytest.skip("no JDK 25")
    pid = start_jvm("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m", jdk=jdk).pid
    assert {line: explains(ask(pid, "jcmd", line)[1]) for line in HELP_LINES} == {
        line: explains(answer(line)) for line in HELP_LINES
    }


def explains(text: str) -> str:
    """The command whose help it is, or why there is none."""
    lines = text.splitlines()
    return lines[0] if any(line.startswith("Syntax") for line in lines) or "Help unavailable" in text else ""


def answer(line: str) -> str:
    out = io.StringIO()
    try:
        execute(line, out)
    except CommandError as error:
        return str(error)
    return out.getvalue()
