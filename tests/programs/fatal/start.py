import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time

import vmscope


def start(*options):
    vmscope.start("-XX:PerfDataSaveFile=saved-%p", *options)
    total = vmscope.counter("test.total")
    total.add(42 - total.value)
    print(os.getpid(), vmscope.status().path, flush=True)


libc = ctypes.CDLL(None)
