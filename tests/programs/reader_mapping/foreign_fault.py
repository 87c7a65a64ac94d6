import faulthandler
import mmap
import os
import sys
import threading

from vmscope.native import _native  # type: ignore[attr-defined]

path, handler = sys.argv[1], sys.argv[2]
if handler == "faulthandler":
    faulthandler.enable()
fd = os.open(path, os.O_RDWR)
big = _native.Mapping(fd, os.fstat(fd).st_size)
other = mmap.mmap(fd, mmap.PAGESIZE * 8)

rest = big.size - 8 * mmap.PAGESIZE
calls = {"read": lambda: big.read(0, rest), "read_in_order": lambda: big.read_in_order((0, rest), (0, rest))}
read = calls[sys.argv[3]]
threading.Thread(target=lambda: [read() for _ in iter(int, 1)], daemon=True).start()
for _ in range(200):
    try:
        big.read(big.size - 8, 8)
    except OSError:
        pass
os.ftruncate(fd, mmap.PAGESIZE)
print("touching", flush=True)
other[mmap.PAGESIZE * 4]
print("unreachable", flush=True)
