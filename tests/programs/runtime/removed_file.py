import os

import vmscope
from tests.programs.sandbox import answer

vmscope.start("-XX:PerfDataSamplingInterval=5")
path = vmscope.status().path
assert path is not None
os.unlink(path)
with open(path, "wb") as file:
    file.write(b"somebody else's")
counter = vmscope.counter("test.count")
counter.inc()
from tests.wait import wait_for

wait_for(lambda: any("another file stands there" in problem for problem in vmscope.status().problems))
vmscope.stop()
answer(count=counter.value, there=open(path).read())
os.unlink(path)
