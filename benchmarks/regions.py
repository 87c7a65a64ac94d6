"""300 live regions of 170 numbers: found and read, sampled again, listed."""

from __future__ import annotations

from collections.abc import Iterator

import vmscope
from benchmarks.measure import Figure, call, in_turns, output, peak_memory, process
from benchmarks.world import bare_python, fleet, jdk, vmscope_command
from vmscope.reader.sampler import Sampler

SIZE = 300
NUMBERS = 170


def read_all() -> int:
    """Finds every live VM, opens its region and reads all its values; gives back how many."""
    count = 0
    for vm in vmscope.vms():
        with vm:
            count += len(vm.values())
    return count


def figures(rounds: int) -> Iterator[Figure]:
    jps = [jdk().tool("jps"), "-lv"]
    ps = vmscope_command("ps")
    with fleet(SIZE, NUMBERS) as vms:
        pids = [vm.pid for vm in vms]
        if read_all() < SIZE * NUMBERS:
            raise RuntimeError("not every value was read")
        _check(jps, pids)
        read = in_turns({"vmscope.vms(), values()": call(read_all, 3), "jps -lv": process(jps)}, rounds)
        yield Figure(
            "300 regions listed and read, to `jps -lv`", read["vmscope.vms(), values()"], read["jps -lv"], 0.04
        )

        sampler = Sampler(vms)
        buffer = sampler.sample()
        if len(buffer) != SIZE * NUMBERS:
            raise RuntimeError(f"the sample has {len(buffer)} values")
        target = memoryview(bytearray(buffer.nbytes)).cast("q")

        def memcpy() -> None:
            target[:] = buffer

        # Call by call, so that the copy meets the cache as a sample leaves it, as it would in a program.
        again = in_turns({"sample": call(sampler.sample), "memcpy": call(memcpy)}, 20 * rounds)
        yield Figure("their 51,000 numbers again, to a memcpy of them", again["sample"], again["memcpy"], 10)

        _check(ps, pids)
        listed = in_turns({"vmscope ps": process(ps), "jps -lv": process(jps)}, rounds)
        yield Figure("`ps` of 300 VMs, to `jps -lv`", listed["vmscope ps"], listed["jps -lv"], None)
        yield Figure("peak memory of `ps` of 300 VMs", peak_memory(ps, 3), None, 40e6)
        yield Figure("peak memory of a bare Python", peak_memory(bare_python(), 3), None, None)


def _check(command: list[str], pids: list[int | None]) -> None:
    shown = output(command).split()
    if any(str(pid) not in shown for pid in pids):
        raise RuntimeError(f"{' '.join(command)} does not show every VM")
