"""One diagnostic command by `vmscope cmd` and `vmscope jcmd`, to the JDK's jcmd: whole processes."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Figure, in_turns, output, process
from benchmarks.world import IDLE, bare_python, jdk, vmscope_command
from tests.support import JVM, Child


def figures(rounds: int) -> Iterator[Figure]:
    with JVM(jdk(), "-Xmx64m") as java, Child(vmscope_command("run", "-c", IDLE)) as python:
        python.read_until(b"ready\n")
        of_java = ("jcmd", str(java.pid), "VM.version")
        theirs = [jdk().tool("jcmd"), *of_java[1:]]
        if output(vmscope_command(*of_java)) != output(theirs):
            raise RuntimeError("vmscope jcmd and the JDK's do not agree")
        of_python = [jdk().tool("jcmd"), str(python.pid), "VM.version"]
        if output(vmscope_command("jcmd", str(python.pid), "VM.version")) != output(of_python):
            raise RuntimeError("vmscope jcmd and the JDK's do not agree on a Python VM")
        found = in_turns(
            {
                "python -c pass": process(bare_python()),
                "vmscope cmd (JVM)": process(vmscope_command("cmd", *of_java[1:])),
                "vmscope cmd (Python)": process(vmscope_command("cmd", *of_python[1:])),
                "vmscope jcmd (JVM)": process(vmscope_command(*of_java)),
                "jcmd (JVM)": process(theirs),
                "jcmd (Python)": process(of_python),
            },
            rounds,
        )
    yield Figure(
        "`vmscope cmd PID VM.version` of a JVM, to jcmd", found["vmscope cmd (JVM)"], found["jcmd (JVM)"], 0.35
    )
    yield Figure(
        "`vmscope cmd PID VM.version` of a Python, to jcmd", found["vmscope cmd (Python)"], found["jcmd (Python)"], 0.35
    )
    yield Figure(
        "`vmscope jcmd PID VM.version` of a JVM, to jcmd", found["vmscope jcmd (JVM)"], found["jcmd (JVM)"], 0.5
    )
    yield Figure(
        "`vmscope cmd PID VM.version`, to a bare Python", found["vmscope cmd (JVM)"], found["python -c pass"], None
    )
