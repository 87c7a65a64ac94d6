import ctypes
import faulthandler
import sys
import threading
import time

import hammer  # type: ignore[import-not-found]

before, after = sys.argv[1:3]
if before == "faulthandler":
    faulthandler.enable()
threading.Thread(target=hammer.run, args=(1 << 60, 64), daemon=True).start()


def churn():
    while True:
        made = [threading.Thread(target=sorted, args=([1],)) for _ in range(5)]
        for each in made:
            each.start()
        for each in made:
            each.join()


threading.Thread(target=churn, daemon=True).start()
for _ in range(20):
    threading.Thread(target=sorted, args=([1],)).start()
if after == "faulthandler":
    faulthandler.enable()
print("crashing", flush=True)
ctypes.string_at(16)
