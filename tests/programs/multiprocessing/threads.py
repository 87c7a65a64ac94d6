import os
import sys
import threading
import time
import warnings

warnings.simplefilter("ignore")  # the program has threads of its own
import vmscope

vmscope.start()
count = vmscope.counter("test.count")
over = threading.Event()


def work():
    while not over.is_set():
        count.inc()


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
wrong = 0
for _ in range(200):
    pid = os.fork()
    if pid == 0:
        before = count.value
        count.add(3)
        os._exit(0 if (before, count.value) == (0, 3) else 1)
    wrong += os.waitpid(pid, 0)[1] != 0
over.set()
for thread in threads:
    thread.join()
print(wrong)
