import threading

import vmscope
from vmscope.counters.registry import REGISTRY
from vmscope.runtime import VM

vmscope.start()


def begin(daemon):
    leave = threading.Event()
    thread = threading.Thread(target=leave.wait, daemon=daemon)
    thread.start()
    return leave, thread


def daemons():
    VM._standard._sampler.sample()  # type: ignore[union-attr]
    return REGISTRY.get("python.threads.daemon").value  # type: ignore[union-attr]


first = begin(daemon=True)
found = [daemons(), daemons()]
first[0].set()
first[1].join()
second = begin(daemon=False)
found.append(daemons())
second[0].set()
print(found)
