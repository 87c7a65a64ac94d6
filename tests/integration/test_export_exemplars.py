"""Exemplars, from the call that gives one to Prometheus's storage."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartVMScope
from tests.debugger import free_port
from tests.integration.test_export_server import OPENMETRICS, Start, start
from tests.prometheus import start_prometheus
from tests.wait import wait_for

__all__ = ["start"]

numbers = count()
DROPIN = """
import os
from vmscope.integrations import prometheus
prometheus.install()
from prometheus_client import Counter, Histogram
"""


def openmetrics(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/metrics", headers={"Accept": OPENMETRICS})
        return connection.getresponse().read().decode()
    except ConnectionRefusedError:
        return ""
    finally:
        connection.close()


def exemplars(text: str) -> dict[str, str]:
    """By what stands before the value, without the labels of the row."""
    lines = [line.partition(" # ") for line in text.splitlines() if not line.startswith("#")]
    return {
        re.sub(r'service="[^"]*",user="\w+",?', "", head.rpartition(" ")[0]): last for head, _, last in lines if last
    }


SHOP = """
sold = Counter("sold", "What was sold.", ["what"])
delay = Histogram("delay", "How long.", buckets=(1, 2))
own = vmscope.histogram("shop.delay", bounds=[0.1, 1])
sold.labels("tea").inc(2, exemplar={"trace_id": "parent"})
pipes = []
for number in range(2):
    reads, writes = os.pipe()
    if os.fork() == 0:
        [os.close(pipe) for pipe in (*pipes, writes)]  # its parent's end is its own too
        sold.labels("tea").inc(exemplar={"trace_id": f"counter{number}", "span_id": "a b"})
        sold.labels("tea").inc(0.5)
        delay.observe(1.5, exemplar={"trace_id": f"bucket{number}"})
        own.labels(path="/%s").observe(7, exemplar={"trace_id": f"own{number}"})
        os.read(reads, 1)
        os._exit(0)
    pipes.append(writes)
"""


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Prometheus: apt-get install prometheus")
@pytest.mark.parametrize("native", ["1", "0"])
def test_prometheus_stores_them(tmp_path: Path, start: Start, start_vmscope: StartVMScope, native: str) -> None:
    service = f"exemplars{os.getpid()}-{next(numbers)}"
    child = start_vmscope(
        f"-Dvmscope.service={service}", code=DROPIN + SHOP, env={**os.environ, "VMSCOPE_NATIVE": native}
    )
    exporter = start(f"--vms={service}")
    begin = time.time() - 60
    with ExitStack() as stack:
        server = start_prometheus(stack, tmp_path, exporter.port, "--enable-feature=exemplar-storage")

        def stored(expression: str) -> set[tuple[float, str, str]]:
            found = server.get("query_exemplars", query=expression, start=str(begin), end=str(time.time() + 60))
            return {
                (float(each["value"]), each["labels"]["trace_id"], row["seriesLabels"].get("le", ""))
                for row in found
                for each in row["exemplars"]
            }

        wait_for(lambda: stored("sold_total") and stored("delay_bucket") and stored("shop_delay_seconds_bucket"))
        # that of the process that counted last
        assert {trace for _, trace, _ in stored("sold_total")} & {"counter0", "counter1"}
        assert stored("delay_bucket") <= {(1.5, f"bucket{number}", "2.0") for number in range(2)}
        assert stored("shop_delay_seconds_bucket") <= {(7.0, f"own{number}", "+Inf") for number in range(2)}
    shown = exemplars(openmetrics(exporter.port))
    assert sorted(shown) == [
        'delay_bucket{le="2.0"}', 'shop_delay_seconds_bucket{path="/%s",le="+Inf"}', 'sold_total{what="tea"}'
    ]  # fmt: skip
    assert re.fullmatch(r'\{trace_id="counter[01]",span_id="a b"\} 1\.0 \d+\.\d+', shown['sold_total{what="tea"}'])
    assert "trace_id" not in exporter.get()[1].decode()
    child.ask("[os.write(pipe, b'1') for pipe in pipes]")


def test_a_program_shows_its_own(start_vmscope: StartVMScope) -> None:
    port = free_port()
    start_vmscope(
        f"-Dvmscope.service=inside{os.getpid()}-{next(numbers)}",
        f"-XX:Export=:{port}",
        code=DROPIN + 'Counter("sold", "What was sold.").inc(exemplar={"trace_id": "abc"})',
    )
    wait_for(lambda: exemplars(openmetrics(port)).get("sold_total{}", "").startswith('{trace_id="abc"} 1.0 '))


def test_a_child_has_none_of_its_parent_s(start: Start, start_vmscope: StartVMScope) -> None:
    service = f"exemplars{os.getpid()}-{next(numbers)}"
    code = """
import os
delay = vmscope.histogram("shop.delay", bounds=[1])
delay.observe(0.5, exemplar={"trace_id": "parent"})
reads, writes = os.pipe()
if (child := os.fork()) == 0:
    os.close(writes)
    delay.observe(7, exemplar={"trace_id": "child"})
    os.read(reads, 1)
    os._exit(0)
"""
    child = start_vmscope(f"-Dvmscope.service={service}", code=code)
    exporter = start(f"--vms={service}", "--by=pid")
    pid = child.ask("child")
    wait_for(lambda: "child" in openmetrics(exporter.port))
    shown = exemplars(openmetrics(exporter.port))
    (of_child,) = (line for line in shown if f'pid="{pid}"' in line)
    assert 'trace_id="child"' in shown[of_child]
    assert len(shown) == 2
    child.ask("os.write(writes, b'1')")


def test_what_is_not_valid_is_not_shown(start: Start, start_vmscope: StartVMScope) -> None:
    """Texts are others': none of these breaks a line, and no gauge has an exemplar."""
    pytest.importorskip("prometheus_client")
    service = f"exemplars{os.getpid()}-{next(numbers)}"
    texts = {
        "a": '{trace_id="a"} 1',
        "b": '{trace_id="b"} nan 1',
        "c": '{trace_id="c"} 1 inf',
        "d": "{trace_id=d} 1 1",
        "e": '{trace_id="e",trace_id="f"} 1 1',
        "f": '{trace_id="' + "f" * 121 + '"} 1 1',
        "g": '{trace_id="g\\u000a# EOF"} 1 1 1',
        "h": "",
        "i": '{trace_id="\\u001b[31m\\u202e"} 1e3 1700000000.5',
        "k": '{trace_id="k"} 1 1e300',
        "l": '{trace_id="l"} 1 -1',
        "j": '{trace_id="' + "j" * 120 + '"} 1 1',
    }
    code = "".join(
        f"vmscope.counter('t.{name}').add(2)\nvmscope.text('t.{name}#exemplar', capacity=255).set({text!r})\n"
        for name, text in texts.items()
    )
    code += "vmscope.gauge('t.gauge').set(2)\nvmscope.text('t.gauge#exemplar').set('{a=\"b\"} 1 1')\n"
    start_vmscope(f"-Dvmscope.service={service}", code=code)
    exporter = start(f"--vms={service}")
    wait_for(lambda: "t_gauge{" in openmetrics(exporter.port))
    text = openmetrics(exporter.port)
    assert exemplars(text) == {
        "t_i_total{}": '{trace_id="\\\\x1b[31m\\\\u202e"} 1000.0 1700000000.500',
        "t_j_total{}": '{trace_id="' + "j" * 120 + '"} 1.0 1.000',
    }
    from prometheus_client.openmetrics import parser

    families: Any = parser.text_string_to_metric_families
    found = [sample for family in families(text) for sample in family.samples]
    assert [sample.exemplar.value for sample in found if sample.exemplar] == [1000.0, 1.0]


@pytest.mark.parametrize("native", ["1", "0"])
def test_labels_have_128_characters_at_most(start_vmscope: StartVMScope, native: str) -> None:
    code = """
def error(call, **labels):
    try:
        call(1, exemplar=labels)
    except Exception as error:
        return type(error).__name__
delay = vmscope.histogram("delay", bounds=[1])
"""
    child = start_vmscope(code=DROPIN + code, env={**os.environ, "VMSCOPE_NATIVE": native})
    for call in ("delay.observe", "Counter('c', 'd').inc", "Histogram('h', 'd').observe"):
        assert child.ask(f"(lambda call: [error(call, t='x' * long) for long in (127, 128)])({call})") == (
            "[None, 'ValueError']"
        )
    assert child.ask("delay.count") == "2"  # the value counts
    assert child.ask("error(delay.observe, **{'a b': 'c'})") == "ValueError"
    assert child.ask("delay.observe(1, exemplar=None)") == "None"
