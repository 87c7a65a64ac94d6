import os
import sys
import threading
import time

import vmscope

vmscope.start()
count = vmscope.counter("test.count")
for number in range(150):
    count.inc()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if count.value == 0 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    if number % 10 == 0:
        time.sleep(0.01)  # the mirror comes in between
time.sleep(0.3)  # the mirror comes twice a second at least
from vmscope import reader

with reader.vm(os.getpid()) as vm:
    print(vm.values()["test.count"])
