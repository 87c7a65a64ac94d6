import os
import threading
import time

import vmscope
from tests.programs.sandbox import answer

stop = time.monotonic() + 1


def work(call):
    while time.monotonic() < stop:
        call()


threads = [threading.Thread(target=work, args=[call]) for call in (vmscope.start, vmscope.stop) * 2]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
vmscope.start()
answer(reason=vmscope.status().reason, there=os.path.exists(vmscope.status().path or ""))
vmscope.stop()
from tests.wait import wait_for

wait_for(lambda: len(os.listdir("/proc/self/task")) == 1)
answer(threads=len(os.listdir("/proc/self/task")))
