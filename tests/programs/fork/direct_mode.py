import os
import sys

import vmscope
from tests.programs.sandbox import answer
from tests.wait import wait_for
from vmscope.wire.decode import decode

vmscope.start("-XX:-PerfDataMirror", "-XX:PerfDataSamplingInterval=5")
counter = vmscope.counter("test.count")
counter.add(5)
path = vmscope.status().path
assert path is not None


def mapped(path):
    return any(line.split()[1] == "rw-s" for line in open("/proc/self/maps") if path in line)


def values(path):
    with open(path, "rb") as file:
        data = file.read()
    return decode(data).values(data)


pid = os.fork()
if pid == 0:
    counter.add(100)
    vmscope.counter("test.child").inc()
    wait_for(lambda: vmscope.status().path and values(vmscope.status().path).get("test.count") == 100)
    own = values(vmscope.status().path)
    answer(count=own["test.count"], child=own["test.child"], parents=mapped(path))
    sys.exit()
os.waitpid(pid, 0)
counter.inc()
direct = mapped(path)
wait_for(lambda: values(path)["test.count"] == 6)
answer(count=values(path)["test.count"], child="test.child" in values(path), direct=direct)
vmscope.stop()
answer(left=os.path.exists(path), mapped=mapped(path))
