import os
import sys
import threading

from vmscope import tool

env = tool.vm().get_env()
env.add_capabilities({tool.Capability.CAN_GENERATE_VM_OBJECT_ALLOC_EVENTS})
kept = []
env.set_event_callbacks({tool.Event.VM_OBJECT_ALLOC: lambda env, thread, thing, klass, size: kept.append(klass)})  # type: ignore[has-type]
env.set_event_notification_mode(True, tool.Event.VM_OBJECT_ALLOC)
import asyncio
import decimal
import email.message
import json
import re

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
