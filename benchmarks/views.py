"""One sample of a JVM by `jstat`, and of a Python."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Figure, in_turns, output, process
from benchmarks.world import IDLE, bare_python, jdk, vmscope_command
from tests.support import JVM, Child


def figures(rounds: int) -> Iterator[Figure]:
    with JVM(jdk(), "-Xmx64m") as java, Child(vmscope_command("run", "-c", IDLE)) as python:
        python.read_until(b"ready\n")
        of_java = vmscope_command("jstat", "-gcutil", str(java.pid))
        of_python = vmscope_command("jstat", "-gcutil", str(python.pid))
        theirs = [jdk().tool("jstat"), "-gcutil", str(java.pid)]
        if output(of_java) != output(theirs):
            raise RuntimeError(f"{' '.join(of_java)} and the JDK's jstat do not agree")
        output(of_python)
        found = in_turns(
            {
                "python -c pass": process(bare_python()),
                "vmscope jstat (JVM)": process(of_java),
                "vmscope jstat (Python)": process(of_python),
                "jstat": process(theirs),
            },
            rounds,
        )
    yield Figure("`jstat -gcutil` of a JVM, to the JDK's", found["vmscope jstat (JVM)"], found["jstat"], 0.35)
    yield Figure(
        "`jstat -gcutil` of a Python, to the JDK's of a JVM", found["vmscope jstat (Python)"], found["jstat"], 0.35
    )
    yield Figure(
        "`jstat -gcutil` of a JVM, to a bare Python", found["vmscope jstat (JVM)"], found["python -c pass"], None
    )
