import os
import sys
import time
import warnings

warnings.simplefilter("error")
from tests.wait import wait_for
from vmscope import native

os.register_at_fork(
    before=native.before_fork, after_in_parent=native.after_fork_in_parent, after_in_child=native.after_fork_in_child
)
calls: list[float] = []
began = time.monotonic()
native.call_later(100_000_000, lambda: calls.append(time.monotonic() - began))
for _ in range(20):
    had = len(calls)
    if os.fork() == 0:
        time.sleep(0.15)  # longer than the parent's call takes to come
        os._exit(len(calls) - had)
    time.sleep(0.004)  # so that forks fall before and after it is due
wait_for(lambda: calls)
assert 0.1 <= calls[0] < 5, calls
time.sleep(0.05)  # a second call would come by now
for _ in range(20):
    assert os.wait()[1] == 0
assert len(calls) == 1
for _ in range(3):  # the thread has ended: no fork starts it again
    if os.fork() == 0:
        os._exit(0)
    assert os.wait()[1] == 0
assert len(os.listdir("/proc/self/task")) == 1
native.cancel_call()
