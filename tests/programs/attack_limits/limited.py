import gc
import os
import resource
import sys

import vmscope

vmscope.start()
counter = vmscope.counter("test.count")
hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
try:
    os.fork()
except BlockingIOError:
    pass
print(len(os.listdir("/proc/self/task")), flush=True)
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
counter.add(7)
for _ in sys.stdin:
    gc.collect()
