"""Programs of known shares, for the sampler: each runs until its input ends."""

from __future__ import annotations

import sys
import threading
import time


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def first():
    spin(0.012)


def second():
    spin(0.006)


def third():
    spin(0.002)


def three():
    first()
    second()
    third()


def busy():
    spin(0.02)


def idle():
    time.sleep(0.02)  # the share of the time that it waits is what is measured


def half():
    busy()
    idle()


def power():
    pow(3, 1 << 22)  # one call in C, which keeps the GIL for most of a second


def one():
    while running:
        spin(0.01)


def other():
    while running:
        spin(0.01)


def two():
    threads = [threading.Thread(target=one, name="one"), threading.Thread(target=other, name="other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def deep(depth=1000):
    if depth:
        deep(depth - 1)
    else:
        spin(0.01)


def end_with_input():
    global running
    sys.stdin.readline()
    running = False


running = True
if __name__ == "__main__":
    sys.setrecursionlimit(3000)
    work = globals()[sys.argv[1]]
    threading.Thread(target=end_with_input, daemon=True, name="input").start()
    print("ready", flush=True)
    while running:
        work()
