"""The commands that list VMs, with ten of them on the host: eight Pythons and two JVMs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Figure, in_turns, output, process
from benchmarks.world import bare_python, jdk, ten_vms, vmscope_command


def figures(rounds: int) -> Iterator[Figure]:
    ps, jps = vmscope_command("ps"), [jdk().tool("jps")]
    ours_long, theirs_long = vmscope_command("jps", "-l"), [jdk().tool("jps"), "-l"]
    with ten_vms() as pids:
        for command in (ps, jps, ours_long, theirs_long):
            shown = output(command).split()
            missing = [pid for pid in pids if str(pid) not in shown]
            if missing:
                raise RuntimeError(f"{' '.join(command)} does not show {missing}")
        found = in_turns(
            {
                "python -c pass": process(bare_python()),
                "vmscope ps": process(ps),
                "vmscope jps -l": process(ours_long),
                "jps": process(jps),
                "jps -l": process(theirs_long),
            },
            rounds,
        )
    yield Figure("`ps` of 10 VMs, to a bare Python", found["vmscope ps"], found["python -c pass"], 2.0)
    yield Figure("`ps` of 10 VMs, to `jps`", found["vmscope ps"], found["jps"], 0.35)
    yield Figure("`jps -l` of 10 VMs, to the JDK's", found["vmscope jps -l"], found["jps -l"], None)
    yield Figure("`jps -l` of 10 VMs, to a bare Python", found["vmscope jps -l"], found["python -c pass"], None)
