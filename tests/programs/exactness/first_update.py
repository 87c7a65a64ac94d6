import json
import os
import time
from statistics import median

import vmscope

counter = vmscope.counter("t.counter")
for number in range(2000):
    vmscope.counter(f"t.many.{number}")
    counter.labels(number=number)
vmscope.start("-XX:PerfDataMemorySize=1m")
other = vmscope.counter("t.other")
now = time.perf_counter_ns


def timed(update):
    begin = now()
    update()
    return now() - begin


firsts, laters = [], []
for _ in range(41):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        for _ in range(50):
            timed(other.inc)  # the clock and this code are warm, the counter is not
        first = timed(counter.inc)
        later = median(timed(counter.inc) for _ in range(101))
        os.write(write, json.dumps([first, later]).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    first, later = json.loads(os.read(read, 100))
    firsts.append(first)
    laters.append(later)
print(json.dumps([median(firsts), median(laters)]))
