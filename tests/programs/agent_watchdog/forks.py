import os
import threading
import time


def child():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


for number in range(20):
    pid = os.fork()
    if not pid:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    if number % 2:
        time.sleep(0.001)  # forks at several distances
pid = os.fork()
if not pid:
    child()
found = 0, 0
while not found[0]:
    time.sleep(0.05)  # the program's own wait, which the command comes into
    found = os.waitpid(pid, os.WNOHANG)
assert os.waitstatus_to_exitcode(found[1]) == 7
print("the child has ended", flush=True)
child()
