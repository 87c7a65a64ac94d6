import gc
import time

import vmscope
from tests.programs.sandbox import answer

times = [0, 0, 0]
began = 0


def watch(phase, info):
    global began
    if phase == "start":
        began = time.monotonic_ns()
    else:
        times[info["generation"]] += time.monotonic_ns() - began


gc.collect()
vmscope.start("-XX:PerfDataSaveFile=saved", "-XX:PerfDataSamplingInterval=0")  # nobody else wants the GIL
gc.callbacks.append(watch)
kept = []
for i in range(200_000):
    pair = []
    pair.append(pair)
    kept.append([i])
for _ in range(5):
    gc.collect()
gc.collect(0)
gc.collect(1)
gc.disable()
vmscope.stop()
answer(stats=gc.get_stats(), times=times)
