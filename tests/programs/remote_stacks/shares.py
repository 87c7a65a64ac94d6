"""A main thread in which three functions take 60, 30 and 10 % of its time on a processor; or which is busy and idle."""

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


def busy():
    spin(0.02)


def idle():
    time.sleep(0.02)  # the share of the time that it waits is what is measured


def main(kind):
    print("ready", flush=True)
    while kind == "three":
        first()
        second()
        third()
    while True:
        busy()
        idle()


if __name__ == "__main__":
    import sys

    threading.Thread(target=threading.Event().wait, daemon=True).start()
    main(sys.argv[1])
