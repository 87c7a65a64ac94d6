# Busy for the first half of each period of the system's clock, asleep for the other. A line on standard input asks
# since when it did which.
import json
import sys
import threading
import time

import vmscope

vmscope.start()
phase = float(sys.argv[1])
changes = []


def busy(until):
    changes.append((time.monotonic(), "busy"))
    while time.monotonic() < until:
        pass


def idle(until):
    changes.append((time.monotonic(), "idle"))
    time.sleep(max(0.0, until - time.monotonic()))  # until the phase ends


def tell():
    sys.stdin.readline()
    print(json.dumps(changes), flush=True)


threading.Thread(target=tell, daemon=True).start()
print("ready", flush=True)
while True:
    begin = time.monotonic() // (2 * phase) * 2 * phase
    busy(begin + phase)
    idle(begin + 2 * phase)
