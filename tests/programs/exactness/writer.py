import threading

import vmscope

gauges = [vmscope.gauge(f"t.gauge.{i}") for i in range(8)]
histogram = vmscope.histogram("t.histogram", bounds=[1])
text = vmscope.text("t.text", capacity=40)


def write():
    while True:
        for value in (-1, 0x0101010101010101, 1 << 62):
            for gauge in gauges:
                gauge.set(value)
        histogram.observe(0.5)
        text.set("a" * 40)
        text.set("b" * 39)


for gauge in gauges:
    gauge.set(-1)
threading.Thread(target=write, daemon=True).start()
