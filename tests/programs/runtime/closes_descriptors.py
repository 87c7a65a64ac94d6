import os
import time

import vmscope
from tests.programs.sandbox import _directory, answer

vmscope.start("-XX:PerfDataSamplingInterval=1")
counter = vmscope.counter("test.count")
time.sleep(0.05)  # the threads have come by
os.closerange(3, 1024)
files = [open(f"file.{i}", "w+b", buffering=0) for i in range(8)]
for file in files:
    file.write(bytes(1 << 20))
for _i in range(20):
    counter.inc()
    time.sleep(0.005)  # the mirror comes in between
answer(clean=all(os.pread(file.fileno(), 1 << 20, 0) == bytes(1 << 20) for file in files))
vmscope.stop()
answer(
    count=counter.value,
    left=os.listdir(f"/tmp/hsperfdata_{_directory.user_name(os.geteuid())}").count(str(os.getpid())),
)
os._exit(0)
