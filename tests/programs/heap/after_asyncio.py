import asyncio
import gc
import resource
import sys

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
