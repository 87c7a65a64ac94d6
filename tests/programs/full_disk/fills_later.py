import sys

import vmscope
from tests.programs.sandbox import answer, errno, tree

vmscope.start("-XX:PerfDataSamplingInterval=10")
path = vmscope.status().path
counter = vmscope.counter("test.later")
try:
    with open("/tmp/filler", "wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
except OSError as error:
    full = error.errno == errno.ENOSPC
counter.add(0x1122334455667788)
wanted = (0x1122334455667788).to_bytes(8, sys.byteorder)
from tests.wait import wait_for

wait_for(lambda: wanted in open(path or "", "rb").read())
answer(full=full, seen=wanted in open(path or "", "rb").read())
vmscope.stop()
answer(tree=tree())
