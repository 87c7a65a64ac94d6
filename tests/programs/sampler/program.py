import ctypes
import sys
import threading
import time

import vmscope

vmscope.start("-XX:PerfDataSamplingInterval=20")


class Info(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
if mallinfo2:
    mallinfo2.restype = Info


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))


kept = []
print("ready", flush=True)
for line in sys.stdin:
    print(repr(eval(line)), flush=True)
