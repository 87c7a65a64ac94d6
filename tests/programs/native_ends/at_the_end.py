import sys
import threading
import time


class Late:
    def __init__(self):
        self.me = self

    def __del__(self):
        def method():
            return 1

        method()


keep = [Late() for _ in range(10)]
sys.late = Late()  # type: ignore[attr-defined]


def loop():
    def method():
        pass

    while 1:
        method()
        time.sleep(0.0001)  # others run in between


for _ in range(3):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(0.05)  # they are in the middle
