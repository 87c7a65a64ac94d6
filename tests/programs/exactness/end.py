import atexit
import sys
import threading
import time

import vmscope

counter = vmscope.counter("t.counter")
gauge = vmscope.gauge("t.gauge")
histogram = vmscope.histogram("t.histogram", bounds=[1])
text = vmscope.text("t.text")
child = counter.labels(a="b")
updates = [
    counter.inc,
    gauge.dec,
    child.inc,
    lambda: histogram.observe(1),
    lambda: text.set("x"),
    lambda: counter.labels(a="b").inc(),
    lambda: histogram.labels(a="b").observe(2),
    lambda: histogram.time().__enter__().__exit__(None, None, None),
]


def update_all(updates=updates):
    for update in updates:
        update()


class Dying:
    def __del__(self, update_all=update_all):
        update_all()


def work():
    while True:
        update_all()


def at_exit():
    update_all()
    vmscope.counter("t.at.exit").inc()


update_all()
if sys.argv[1] == "started":
    vmscope.start(f"-XX:PerfDataSaveFile={sys.argv[2]}")
atexit.register(at_exit)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
dying = Dying()
dying.cycle = dying  # type: ignore[attr-defined]
sys.last = Dying()  # type: ignore[attr-defined]  # goes with the sys module, after all others
time.sleep(0.05)  # the mirror is at work
