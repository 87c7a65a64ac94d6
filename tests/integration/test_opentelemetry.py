"""Observable instruments of OpenTelemetry over a fork."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import os, sys, time
from opentelemetry.metrics import Observation
from vmscope.counters.registry import REGISTRY
from vmscope.integrations import asked, opentelemetry
asked.INTERVAL = 0.01
provider = opentelemetry.MeterProvider()
provider.get_meter("m").create_observable_gauge("otel.pid", [lambda _: [Observation(os.getpid())]])
provider.force_flush()
def is_own():
    return REGISTRY.float_gauge("otel.pid").value == os.getpid()
pid = os.fork()
if pid == 0:
    end = time.monotonic() + 30
    while not is_own() and time.monotonic() < end:
        time.sleep(0.01)  # the thread asks
    os._exit(0 if is_own() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), is_own())
"""


def test_a_forked_child_asks_on_a_thread_of_its_own() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", CODE]  # of os.fork, which sees the thread
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("0 True\n", "")
