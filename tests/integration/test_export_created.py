"""When each counter, histogram and summary was created, in OpenMetrics."""

from __future__ import annotations

import os
import re
import time
from itertools import count

import pytest

from tests.conftest import StartJVM, StartVMScope
from tests.integration.test_export_exemplars import DROPIN, openmetrics
from tests.integration.test_export_server import Start, start
from tests.wait import wait_for

__all__ = ["start"]

numbers = count()
WORKERS = """
import time
from prometheus_client import Summary
sold = Counter("sold", "What was sold.", ["what"])
delay = Histogram("delay", "How long.", buckets=(1, 2))
size = Summary("size", "How much.")
own = vmscope.histogram("shop.delay", bounds=[0.1, 1])
vmscope.counter("shop.opened").inc()
forked, pipes = [], []
for number in range(2):
    reads, writes = os.pipe()
    forked.append(time.time())
    if (child := os.fork()) == 0:
        [os.close(pipe) for pipe in (*pipes, writes)]  # its parent's end is its own too
        sold.labels("tea" if number == 0 else "rum").inc(0.5)
        delay.observe(1)
        size.observe(2)
        own.observe(3)
        os.read(reads, 1)
        os._exit(0)
    pipes.append(writes)
    time.sleep(1.1)  # two times that can be told apart, by a clock of ms
"""


def created(text: str) -> dict[str, float]:
    """By the beginning of the line, without `_created`. Nothing else that grows lacks one."""
    found, wanted, kinds = {}, set(), dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    for line in text.splitlines():
        head, _, value = line.partition(" # ")[0].rpartition(" ")
        name, brace, labels = head.partition("{")
        if line.startswith("#"):
            continue
        if name.endswith("_created"):
            found[name.removesuffix("_created") + brace + labels] = float(value)
        for kind, suffix in (("counter", "_total"), ("histogram", "_count"), ("summary", "_count")):
            if name.endswith(suffix) and kinds.get(name.removesuffix(suffix)) == kind:
                wanted.add(name.removesuffix(suffix) + brace + labels)
    assert set(found) == wanted
    return found


@pytest.mark.parametrize("by", ["service", "pid"])
def test_of_services_and_of_processes(start: Start, start_vmscope: StartVMScope, by: str) -> None:
    service = f"created{os.getpid()}-{next(numbers)}"
    before = time.time()
    child = start_vmscope(f"-Dvmscope.service={service}", code=DROPIN + WORKERS)
    exporter = start(f"--vms={service}", f"--by={by}")
    first, second = eval(child.ask("forked"))
    wait_for(lambda: openmetrics(exporter.port).count('what="rum"') == 2, "both children are there")
    found = created(openmetrics(exporter.port))

    def times(beginning: str) -> list[float]:
        return sorted(value for name, value in found.items() if name.startswith(beginning))

    if by == "service":
        assert len(times("delay{")) == len(times("size{")) == len(times("shop_opened{")) == 1
        # a series is as old as the first process that has it
        assert before - 0.01 <= times("delay{")[0] <= first
        tea, rum = (found[next(name for name in found if f'what="{what}"' in name)] for what in ("tea", "rum"))
        assert first - 0.01 <= tea < second <= rum + 0.01
    else:
        assert len(times("delay{")) == len(times("shop_delay_seconds{")) == len(times("size{")) == 3
        parent, one, two = times("delay{")
        assert before - 0.01 <= parent <= first
        assert first - 0.01 <= one < second <= two + 0.01
    assert before <= times("vmscope_export_reads")[0] + 0.01
    child.ask("[os.write(pipe, b'1') for pipe in pipes]")


def test_of_a_jvm(start: Start, start_jvm: StartJVM) -> None:
    before = time.time()
    jvm = start_jvm(f"-Dvmscope.service=created{os.getpid()}-{next(numbers)}")
    found = created(openmetrics(start(f"--vms={jvm.pid}").port))
    times = [value for name, value in found.items() if name.startswith("jvm_gc_collection_seconds{")]
    assert times
    assert [each for each in times if not (before - 1 <= each <= time.time())] == []
