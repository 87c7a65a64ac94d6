"""VMObjectAlloc and SampledObjectAlloc: what is told of new objects, when, and what never is.

What needs processes of its own.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from vmscope.tool.spec.available_capabilities import TRACER, features

pytestmark = pytest.mark.skipif(TRACER not in features(), reason="PyRefTracer came with 3.13, and needs the GIL")


@pytest.fixture(autouse=True)
def small_heap() -> Iterator[None]:
    """Collections here leave alone what a worker has collected: thousands of tests."""
    gc.freeze()
    yield
    gc.unfreeze()


PROGRAM = """
import os, sys, threading
from vmscope import tool
env = tool.vm().get_env()
env.add_capabilities({tool.Capability.CAN_GENERATE_VM_OBJECT_ALLOC_EVENTS})
kept = []
env.set_event_callbacks({tool.Event.VM_OBJECT_ALLOC: lambda env, thread, thing, klass, size: kept.append(klass)})
env.set_event_notification_mode(True, tool.Event.VM_OBJECT_ALLOC)
import json, re, asyncio, decimal, email.message
json.loads(json.dumps({str(i): [i, float(i)] for i in range(300)}))
async def main():
    await asyncio.gather(*(asyncio.sleep(0) for _ in range(50)))
asyncio.run(main())
pid = os.fork()
if pid == 0:
    threading.Thread(target=lambda: [object() for _ in range(1000)]).start()
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(len(kept) > 5000)
"""


def test_a_whole_program_with_imports_a_fork_and_its_end(tmp_path: Any) -> None:
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PROGRAM],
        capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "True\n"), run.stderr
