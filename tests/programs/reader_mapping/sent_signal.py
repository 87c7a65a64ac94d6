import os
import signal
import sys
import threading

from vmscope.native import _native  # type: ignore[attr-defined]

fd = os.open(sys.argv[1], os.O_RDWR)
mapping = _native.Mapping(fd, os.fstat(fd).st_size)
seen = []
signal.signal(signal.SIGBUS, lambda *_: seen.append(1))  # type: ignore[has-type]
stop = threading.Event()


def read():
    while not stop.is_set():
        mapping.read_in_order((0, mapping.size), (0, 8), (0, mapping.size))


thread = threading.Thread(target=read)
thread.start()
for wanted in range(1, 21):
    os.kill(os.getpid(), signal.SIGBUS)
    while len(seen) < wanted:
        pass
stop.set()
thread.join()
os.ftruncate(fd, 8)
try:
    mapping.read(4096 * 2, 8)
except OSError:
    print("guarded", len(seen))
