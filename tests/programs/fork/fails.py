import os
import resource

import vmscope
from tests.wait import wait_for

vmscope.start("-XX:PerfDataSamplingInterval=5")
counter = vmscope.counter("test.count")
limits = resource.getrlimit(resource.RLIMIT_NPROC)
resource.setrlimit(resource.RLIMIT_NPROC, (0, limits[1]))
print("ready", flush=True)
try:
    os.fork()
except BlockingIOError as error:
    print(type(error).__name__, flush=True)
resource.setrlimit(resource.RLIMIT_NPROC, limits)
input()
os.fork() or os._exit(0)
os.wait()
counter.add(5)
with vmscope.vm(os.getpid()) as vm:
    wait_for(lambda: vm.values().get("test.count") == 5)
    print(vm.values()["test.count"], flush=True)
