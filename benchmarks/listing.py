"""The commands that list VMs, with ten of them on the host: eight Pythons and two JVMs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Figure, Series, in_turns, output, process
from benchmarks.world import bare_python, jdk, ten_vms, vmscope_command


def figures(rounds: int) -> Iterator[Figure]:
    with ten_vms() as pids:
        found = _measure(rounds, pids, ps=vmscope_command("ps"), jps=[jdk().tool("jps")])
        yield Figure("`ps` of 10 VMs, to a bare Python", found["ps"], found["bare"], 2.0)
        yield Figure("`ps` of 10 VMs, to `jps`", found["ps"], found["jps"], 0.35)
        found = _measure(rounds, pids, ours=vmscope_command("jps", "-l"), theirs=[jdk().tool("jps"), "-l"])
        yield Figure("`jps -l` of 10 VMs, to a bare Python", found["ours"], found["bare"], None)
        yield Figure("`jps -l` of 10 VMs, to the JDK's", found["ours"], found["theirs"], None)


def _measure(rounds: int, pids: list[int], **commands: list[str]) -> dict[str, Series]:
    for command in commands.values():
        shown = output(command).split()
        if any(str(pid) not in shown for pid in pids):
            raise RuntimeError(f"{' '.join(command)} does not show every VM")
    commands = {"bare": bare_python(), **commands}
    return in_turns({label: process(command) for label, command in commands.items()}, rounds)
