import os

from gevent import monkey  # type: ignore[import-untyped]

monkey.patch_all()
import time

import gevent

time.sleep(2)  # longer than the limit
ours, childs = os.pipe()
if not os.fork():
    os.write(childs, b"x")
    os._exit(0)
assert os.read(ours, 1) == b"x"
gevent.sleep(0.1)  # the loop of gevent works on
print("done")
