import multiprocessing
import sys
import time

import vmscope

vmscope.start()


def work():
    time.sleep(100)


if __name__ == "__main__":
    multiprocessing.freeze_support()
    worker = multiprocessing.get_context("spawn").Process(target=work, daemon=True)
    worker.start()
    print(worker.pid, vmscope.status().implementation, flush=True)
    sys.stdin.read()
    worker.kill()
