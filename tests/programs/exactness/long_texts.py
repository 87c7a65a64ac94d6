import threading
import time

import vmscope

text = vmscope.text("t.text", capacity=30_000)
texts = ["a" * 30_000, "b" * 30_000, "c" * 29_999]
text.set(texts[0])


def write():
    while True:
        for one in texts:
            text.set(one)
            time.sleep(0.0005)  # else the mirror hardly ever meets a whole one


threading.Thread(target=write, daemon=True).start()
