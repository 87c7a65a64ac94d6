"""Tags and walks through the heap, beside gc, sys and the objects themselves. What needs processes of its own."""

from __future__ import annotations

import subprocess
import sys


def test_nothing_of_vmscope_s_own_is_met() -> None:
    """In a process of its own: here other tests have imported modules of vmscope twice."""
    code = "from tests.unit.tool import test_heap as heap; print(heap.own_objects_met(heap.live()))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")


AFTER_ASYNCIO = """
import asyncio, gc, resource, sys
from vmscope import native, tool
from vmscope.native.heap import class_histogram as census
async def main():
    for _ in range(3):
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, 1)
        await future
asyncio.run(main())
resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
env = tool.vm().get_env()
env.add_capabilities({tool.Capability.CAN_TAG_OBJECTS})
for _ in range(2):
    env.iterate_through_heap(0, None, tool.HeapCallbacks(heap_iteration=lambda *_: None))
    env.follow_references(0, None, None, tool.HeapCallbacks(heap_reference=lambda *_: None))
    for count_objects in (native.count_objects, census.count_objects):
        assert not [row for row in count_objects() if row[0].__name__ == "FutureIter"]
    gc.collect()
print("done")
"""


def test_what_c_code_has_freed_is_not_found() -> None:
    """_asyncio's free list, which CPython 3.12 shows as the module's references: held, it would never end."""
    run = subprocess.run(
        [sys.executable, "-c", AFTER_ASYNCIO], capture_output=True, text=True, timeout=120, check=False
    )
    assert (run.stdout, run.stderr, run.returncode) == ("done\n", "", 0)
