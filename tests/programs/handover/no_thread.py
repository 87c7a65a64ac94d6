import os
import resource
import sys

import vmscope

vmscope.start()
limits = resource.getrlimit(resource.RLIMIT_NPROC)


def limit(most):
    resource.setrlimit(resource.RLIMIT_NPROC, (most, limits[1]))


def fork():
    try:
        os.fork()
    except BlockingIOError:
        return True


print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
