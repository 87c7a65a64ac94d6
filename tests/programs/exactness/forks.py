import json
import os
import signal
import sys
import threading

import vmscope

started, forks = sys.argv[1] == "started", int(sys.argv[2])
counter = vmscope.counter("t.counter")
gauge = vmscope.gauge("t.gauge")
histogram = vmscope.histogram("t.histogram", bounds=[1, 2])
if started:
    vmscope.start()
sys.setswitchinterval(1e-5)
stop, counts = False, []


def work():
    done = 0
    while not stop:
        counter.inc()
        gauge.add(2)
        histogram.observe(1.5)
        counter.labels(number=done % 50).inc()
        done += 1
    counts.append(done)


def child():
    signal.alarm(20)  # a child that hangs ends with this signal
    zero = (counter.value, gauge.value, histogram.count, counter.labels(number=7).value)
    for _ in range(10):
        counter.inc()
        gauge.inc()
        histogram.observe(0.5)
        counter.labels(number=7).inc()
    vmscope.counter("t.new").labels(a="b").inc()
    values = (counter.value, gauge.value, histogram.cells, counter.labels(number=7).value)
    return zero == (0, 0, 0, 0) and values == (10, 10, (5_000_000_000, 10, 0, 0), 10)  # type: ignore[unreachable]


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
statuses = []
for _ in range(forks):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if child() else 1)
    statuses.append(os.waitpid(pid, 0)[1])
stop = True
for thread in threads:
    thread.join()
print(json.dumps([s for s in statuses if s]))
print(json.dumps([sum(counts), counter.value, gauge.value // 2, histogram.count]))
